"""Residual networks (He et al. 2016), with torchvision's parameter names so that published weights can be loaded."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from augtree.errors import one_of
from augtree.models.base import Inputs, Model, conv, global_average

STEMS = ("auto", "small", "large")
SMALL_UP_TO = 64


class Block(nn.Module):
    """A residual block: a shortcut, and the residual branch `body`."""

    expansion: int

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * self.expansion
        self.downsample: nn.Sequential | None = None
        if channels != out or stride != 1:
            self.downsample = nn.Sequential(conv(channels, out, 1, stride), nn.BatchNorm2d(out))

    def body(self, x: Tensor) -> Tensor:
        """The residual branch."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """The sum of shortcut and residual branch, then a ReLU."""
        return F.relu(self.body(x) + (x if self.downsample is None else self.downsample(x)))


class Basic(Block):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__(channels, width, stride)
        self.conv1, self.bn1 = conv(channels, width, stride=stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width), nn.BatchNorm2d(width)

    def body(self, x: Tensor) -> Tensor:
        """The residual branch."""
        out: Tensor = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return out


class Bottleneck(Block):
    """1x1 to fewer channels, 3x3, 1x1 to more; the stride is at the 3x3, as in torchvision."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__(channels, width, stride)
        self.conv1, self.bn1 = conv(channels, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, stride=stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)

    def body(self, x: Tensor) -> Tensor:
        """The residual branch."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        out: Tensor = self.bn3(self.conv3(x))
        return out


class ResNet(Model):
    """Four stages; the small stem keeps the size, the large one divides it by four."""

    def __init__(self, inputs: Inputs, block: type[Block], blocks: tuple[int, int, int, int], stem: str) -> None:
        super().__init__()
        one_of("stem", stem, STEMS)
        self.large = stem == "large" or (stem == "auto" and inputs.size > SMALL_UP_TO)
        self.conv1 = conv(inputs.channels, 64, 7, 2) if self.large else conv(inputs.channels, 64)
        self.bn1 = nn.BatchNorm2d(64)
        expansion = block.expansion
        self.layer1 = stage(block, 64, 64, blocks[0], 1)
        self.layer2 = stage(block, 64 * expansion, 128, blocks[1], 2)
        self.layer3 = stage(block, 128 * expansion, 256, blocks[2], 2)
        self.layer4 = stage(block, 256 * expansion, 512, blocks[3], 2)
        self.fc = nn.Linear(512 * expansion, inputs.outputs)

    def features(self, batch: Tensor) -> Tensor:
        """The averages of the last feature maps."""
        x = F.relu(self.bn1(self.conv1(batch)))
        if self.large:
            x = F.max_pool2d(x, 3, 2, 1)
        return global_average(self.layer4(self.layer3(self.layer2(self.layer1(x)))))


def stage(block: type[Block], channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    """The blocks of one width, the first with the stride."""
    rest = [block(width * block.expansion, width, 1) for _ in range(blocks - 1)]
    return nn.Sequential(block(channels, width, stride), *rest)


def resnet18(inputs: Inputs, *, stem: str = "auto") -> ResNet:
    """ResNet-18."""
    return ResNet(inputs, Basic, (2, 2, 2, 2), stem)


def resnet50(inputs: Inputs, *, stem: str = "auto") -> ResNet:
    """ResNet-50."""
    return ResNet(inputs, Bottleneck, (3, 4, 6, 3), stem)
