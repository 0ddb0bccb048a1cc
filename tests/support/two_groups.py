"""Two groups of pictures, in one of which labels may be noise, and small models of them."""

import numpy as np
from torch import nn

import augtree as at
from augtree.tasks import Classification


def linear():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))


def normed():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))


def task(model=linear, **more):
    return Classification(
        **{"model": model, "steps": 200, "batch_size": 32, "lr": 0.05, "weight_decay": 1e-3, **more}
    )


def pictures(labels, rng, side=0, strength=40):
    """Noise, with a brighter half where the label is 1: the left one, or (side 1) the upper one."""
    x = rng.normal(110, 30, (len(labels), 1, 4, 4))
    part = x[:, :, :, :2] if side == 0 else x[:, :, :2, :]
    part += strength * labels[:, None, None, None]
    return np.clip(x, 0, 255).astype(np.uint8)


def two_groups(noise=False, sizes=(120, 120), sides=(0, 0), seed=0, strength=40):
    """Groups a and b; labels of b's training samples may be noise."""
    rng = np.random.default_rng(seed)
    xs, ys, groups, splits = [], [], [], []
    for group, size, side in zip("ab", sizes, sides, strict=True):
        for split, count in (("train", size), ("val", 200), ("test", 400)):
            y = rng.integers(0, 2, count)
            xs.append(pictures(y, rng, side, strength))
            ys.append(rng.integers(0, 2, count) if noise and group == "b" and split == "train" else y)
            groups += [group] * count
            splits += [split] * count
    return at.data.from_arrays(np.concatenate(xs)[:, 0], np.concatenate(ys), groups=groups, split=splits)


def forest(data, tree=None):
    share = 1 / len(data.group_names)
    return at.Forest({group: (tree or at.Tree(), share) for group in data.group_names})
