"""What the built-in networks share."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn


class Inputs(NamedTuple):
    """What a model is made for: the form of its samples, and the number of its outputs.

    Examples
    --------
    >>> Inputs("image", channels=3, size=32, outputs=10).channels
    3

    """

    domain: str
    """The kind of samples: image or graph."""
    channels: int
    """The channels of pictures, or the features of nodes; 0 for graphs without node features."""
    size: int
    """The shorter side of pictures in pixels; 0 for graphs."""
    outputs: int
    """The number of outputs: classes or labels."""


class Model(nn.Module):
    """A built-in network: `features`, then the linear layer `fc`.

    Contrastive training replaces `fc` by a projection, and works with any module of this form.

    Examples
    --------
    >>> import torch
    >>> from augtree.models import build
    >>> model = build("cnn", Inputs("image", channels=1, size=8, outputs=10), width=4)
    >>> pictures = torch.zeros(2, 1, 8, 8)
    >>> model.features(pictures).shape, model(pictures).shape
    (torch.Size([2, 8]), torch.Size([2, 10]))

    """

    fc: nn.Linear
    """The classifier."""
    weights_note: str = ""
    """Which weights came from a file, where there was one."""

    def features(self, batch: Any) -> Tensor:
        """The inputs of the classifier [samples, features]."""
        raise NotImplementedError

    def forward(self, batch: Any) -> Tensor:
        """The logits [samples, outputs]."""
        logits: Tensor = self.fc(self.features(batch))
        return logits


def conv(channels: int, out: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size, up to its stride; without bias, since batch norm follows."""
    layer = nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def global_average(maps: Tensor) -> Tensor:
    """The mean of each feature map; unlike adaptive pooling, deterministic on every device."""
    return maps.mean((2, 3))
