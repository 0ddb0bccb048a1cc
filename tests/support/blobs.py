"""Data and models small enough to train within a test."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from augtree import Tree
from augtree.data import Dataset, from_arrays
from augtree.tasks import Classification
from augtree.training.state import State
from augtree.transforms import Rotate

MINE = Tree().with_node(1, Rotate(0.4), p=0.5)
POLICIES = {"b": None, "ra": "RandAugment", "a": MINE}
"""Not in the order of their names."""


def blobs(train=48, val=16, test=16, *, channels=3, **more) -> Dataset:
    """Noisy 8x8 pictures with a bright square, top left (class 0) or bottom right (class 1)."""
    count = train + val + test
    rng = np.random.default_rng(0)
    pictures, labels = rng.integers(0, 120, (count, channels, 8, 8)), np.arange(count) % 2
    for picture, label in zip(pictures, labels, strict=True):
        picture[(slice(None), *[slice(1, 4) if label == 0 else slice(4, 7)] * 2)] += 100
    split = ["train"] * train + ["val"] * val + ["test"] * test
    more = {"split": split, "name": "blobs", **more}
    return from_arrays(pictures.astype(np.uint8), more.pop("y", labels), **more)


def net(outputs=2) -> nn.Module:
    """A convolution (no bias: its gradient would be noise), a norm with buffers, and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, outputs)
    )


class Fragile(nn.Module):
    """Its numbers are no longer finite once it is trained on a picture that is bright all over."""

    def __init__(self):
        super().__init__()
        self.net = net()
        self.register_buffer("broken", torch.zeros(()))

    def forward(self, batch):
        if self.training and (batch.mean((1, 2, 3)) > 1).any():
            self.broken.fill_(float("inf"))
        return self.net(batch) + self.broken


def wide_net() -> nn.Module:
    """The same for three classes: wrong for two."""
    return net(3)


def forgetful_net() -> nn.Module:
    """With dropout."""
    return nn.Sequential(net(16), nn.Dropout(0.5), nn.Linear(16, 2))


def task(**more) -> Classification:
    """A short training on the CPU."""
    return Classification(**{"model": net, "steps": 6, "batch_size": 16, "lr": 0.05, "device": "cpu", **more})


def same(one: State, other: State) -> bool:
    """Whether two states have the same bits."""
    return one.step == other.step and all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


def rows(trainer, split="val") -> np.ndarray:
    """The rows of a split."""
    return trainer.data.indices(split)


def by_hand(pictures: Tensor, data: Dataset) -> Tensor:
    """Pictures normalised by the mean and deviation of the training pictures."""
    known = data.samples[torch.from_numpy(data.indices("train"))].double()
    mean, std = known.mean((0, 2, 3), keepdim=True), known.std((0, 2, 3), keepdim=True, correction=0)
    return ((pictures.double() - mean) / std).float()
