"""Wide residual networks (Zagoruyko and Komodakis 2016)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from augtree.errors import ArgumentError, whole_number
from augtree.models.base import Inputs, Model, conv, global_average


class Block(nn.Module):
    """Twice norm, ReLU and convolution; where the width changes, the shortcut branches off after the first ReLU."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(channels), conv(channels, out, stride=stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(out), conv(out, out)
        self.shortcut = conv(channels, out, 1, stride) if channels != out or stride != 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """The sum of shortcut and residual branch."""
        active = F.relu(self.bn1(x))
        shortcut = x if self.shortcut is None else self.shortcut(active)
        out: Tensor = shortcut + self.conv2(F.relu(self.bn2(self.conv1(active))))
        return out


class WideResNet(Model):
    """Three stages of (depth - 4) / 6 blocks, with 16, 32 and 64 times the width in channels; no dropout."""

    def __init__(self, inputs: Inputs, depth: int, width: int) -> None:
        super().__init__()
        check_form(depth, width)
        self.conv1 = conv(inputs.channels, 16)
        self.layer1 = stage(16, 16 * width, depth, 1)
        self.layer2 = stage(16 * width, 32 * width, depth, 2)
        self.layer3 = stage(32 * width, 64 * width, depth, 2)
        self.bn = nn.BatchNorm2d(64 * width)
        self.fc = nn.Linear(64 * width, inputs.outputs)

    def features(self, batch: Tensor) -> Tensor:
        """The averages of the last feature maps."""
        return global_average(F.relu(self.bn(self.layer3(self.layer2(self.layer1(self.conv1(batch)))))))


def check_form(depth: int, width: int) -> None:
    """Raise for a depth or a width outside the family."""
    if whole_number("depth", depth, 10, 1000) % 6 != 4:
        raise ArgumentError("depth", "must be 6n + 4 (10, 16, 22, 28, 34, 40 ...)", depth)
    whole_number("width", width, 1, 64)


def stage(channels: int, out: int, depth: int, stride: int) -> nn.Sequential:
    """The blocks of one width, the first with the stride."""
    rest = [Block(out, out, 1) for _ in range((depth - 4) // 6 - 1)]
    return nn.Sequential(Block(channels, out, stride), *rest)
