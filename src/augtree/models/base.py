"""What the built-in models have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn


class Inputs(NamedTuple):
    """What a model is made for."""

    domain: str
    """ "image" or "graph"."""
    channels: int
    """Of the pictures; or node features, where 0 is none."""
    size: int
    """The shorter side in pixels; 0 for graphs."""
    outputs: int
    """Classes."""


class Model(nn.Module):
    """A network of ours: `features`, then the classifier `fc`."""

    fc: nn.Linear
    weights_note: str = ""

    def features(self, batch: Any) -> Tensor:
        """What the classifier sees, [samples, features]."""
        raise NotImplementedError

    def forward(self, batch: Any) -> Tensor:
        """Logits [samples, outputs]."""
        logits: Tensor = self.fc(self.features(batch))
        return logits


def conv(inside: int, out: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size, up to its stride; batch norm follows, so it has no bias."""
    made = nn.Conv2d(inside, out, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(made.weight, mode="fan_out", nonlinearity="relu")
    return made


def averaged(maps: Tensor) -> Tensor:
    """The mean of each feature map; unlike adaptive pooling, deterministic on every device."""
    return maps.mean((2, 3))
