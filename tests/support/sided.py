"""Two groups whose classes differ in other ways: what harms each of them is known."""

from __future__ import annotations

import numpy as np
from torch import nn

import augtree as at
from augtree.search import Cooldown
from augtree.tasks import Classification
from augtree.transforms import Flip, Posterize, Space, VerticalFlip


def sided(a: str, b: str, train: int = 64, val: int = 128, seed: int = 0) -> at.data.Dataset:
    """Groups a and b, in which the class says which half is brighter: the left or right, or the upper or lower."""
    rng, count = np.random.default_rng(seed), 2 * (train + val)
    labels, groups = rng.permutation(np.arange(count) // 2 % 2), np.arange(count) % 2
    pictures = rng.integers(0, 120, (count, 4, 4))
    for picture, label, group in zip(pictures, labels, groups, strict=True):
        (picture if (a, b)[group] == "upper or lower" else picture.T)[2 * label : 2 * label + 2] += 60
    split = ["train"] * 2 * train + ["val"] * 2 * val
    names = ["ab"[group] for group in groups]
    return at.data.from_arrays(pictures.astype(np.uint8), labels, groups=names, split=split, name="sided")


def linear() -> nn.Module:
    """A weight for each pixel."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))


APART = sided("left or right", "upper or lower")
ALIKE = sided("left or right", "left or right")
TASK = Classification(model=linear, steps=80, batch_size=64, lr=0.02, device="cpu")
SPACE = Space([Posterize(0.2)], basics=[Flip(1.0), VerticalFlip()])
QUICK = Cooldown(looks=(0.3, 0.6), look=0.2, shortest=4, tests=(), clear=3.0, cool=0.3, renew=4)
HOW = {"scorer": QUICK, "budget": 6, "alpha": 8, "eta": 0.3}
