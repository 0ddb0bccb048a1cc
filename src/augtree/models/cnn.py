"""A small network for tiny pictures, which trains within seconds on one processor."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from augtree.errors import whole_number
from augtree.models.base import Inputs, Model, conv, global_average


class Cnn(Model):
    """Three convolutions, with max pooling after the second and, for pictures of 16 pixels or more, the first."""

    def __init__(self, inputs: Inputs, *, width: int = 32) -> None:
        super().__init__()
        whole_number("width", width, 1, 1024)
        self.large, self.halved = inputs.size >= 16, inputs.size >= 4
        self.conv1, self.bn1 = conv(inputs.channels, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, 2 * width), nn.BatchNorm2d(2 * width)
        self.conv3, self.bn3 = conv(2 * width, 2 * width), nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, inputs.outputs)

    def features(self, batch: Tensor) -> Tensor:
        """The averages of the last feature maps."""
        x = F.relu(self.bn1(self.conv1(batch)))
        x = F.max_pool2d(x, 2) if self.large else x
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.max_pool2d(x, 2) if self.halved else x
        return global_average(F.relu(self.bn3(self.conv3(x))))
