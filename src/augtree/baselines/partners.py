"""Draws for each sample of a batch a partner among those that it may have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.data import Dataset
from augtree.training.sampling import Rows


def drawn_partners(allowed: NDArray[np.bool_], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each row of `allowed` one of the columns that are true, all equally likely; -1 where there is none."""
    counts = allowed.sum(1)
    nth = np.minimum((uniform * counts).astype(np.int64), counts - 1)
    chosen: NDArray[np.int64] = (allowed.cumsum(1) > nth[:, None]).argmax(1)
    return np.where(counts > 0, chosen, -1)


def label_numbers(data: Dataset, rows: Rows) -> NDArray[np.int64]:
    """A number for each sample's label; multi-label, one for each set of labels."""
    labels: NDArray[Any] = data.labels.numpy()[rows]
    return np.unique(labels, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
