"""scikit-learn's handwritten digits: 1,797 grey pictures of 8x8, which come with the package."""

from __future__ import annotations

import numpy as np
import torch

from augtree.data.dataset import Dataset
from augtree.data.splits import make_split
from augtree.errors import need


def read_digits(root: object = None, *, seed: int = 0) -> Dataset:  # noqa: ARG001 - no file is read
    """The digits, 60/20/20 by class. Nothing is usual for them: a flipped digit is another digit."""
    raw = need("sklearn.datasets", "train").load_digits()
    labels = raw.target.astype(np.int64)
    return Dataset(
        name="digits",
        samples=torch.from_numpy(np.rint(raw.images * 255 / 16).astype(np.uint8)[:, None].copy()),
        labels=torch.from_numpy(labels),
        classes=tuple("0123456789"),
        split=make_split(labels, seed=seed),
        groups=np.zeros(len(labels), np.int64),
        group_names=("all",),
        fill=0,
        source={"source": "digits", "seed": seed},
        notes=(f"split made: 60/20/20 by class, seed {seed}",),
    )
