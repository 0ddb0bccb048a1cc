"""The order in which a training sees its samples: shuffled anew in each epoch, from any position on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError
from augtree.keys import Key

Rows = NDArray[np.int64]
"""Indices of samples in the data set."""
Order = Callable[[int, int], tuple[Rows, Rows]]
"""From a position in an endless sequence of samples and a count: their rows, and the positions of their draws."""


def stream(rows: Rows, start: int, count: int, seed: int) -> tuple[Rows, Rows]:
    """Part of the endless sequence of shuffled epochs: the samples' rows, and the positions of their draws.

    Such a position differs between epochs and samples, and does not depend on which other samples there are.
    """
    size = len(rows)
    chosen, draw_ids = [], []
    for epoch in range(start // size, (start + count - 1) // size + 1):
        order = shuffled(rows.tobytes(), seed, epoch)
        low, high = max(start - epoch * size, 0), min(start + count - epoch * size, size)
        chosen.append(order[low:high])
        draw_ids.append(order[low:high] + (epoch << 32))
    return np.concatenate(chosen), np.concatenate(draw_ids)


def stream_of_batches(rows: Rows, size: int, start: int, count: int, seed: int) -> tuple[Rows, Rows]:
    """As `stream`, but each epoch drops the samples that do not fill a batch of this size, others each time."""
    epoch = len(rows) // size * size
    ends = [*range((start // epoch + 1) * epoch, start + count, epoch), start + count]
    parts = []
    for low, high in zip([start, *ends[:-1]], ends, strict=True):
        dropped = low // epoch * (len(rows) - epoch)
        parts.append(stream(rows, low + dropped, high - low, seed))
    chosen, draw_ids = (np.concatenate(column) for column in zip(*parts, strict=True))
    return chosen, draw_ids


@lru_cache(maxsize=4)
def shuffled(rows: bytes, seed: int, epoch: int) -> Rows:
    """The rows in the order of an epoch; cached, since large pictures are requested a batch at a time."""
    array = np.frombuffer(rows, np.int64)
    return array[np.argsort(Key.of(seed, array, role="order", step=epoch).uniform(), kind="stable")]


def require_rows(rows: Rows) -> Rows:
    """The rows, or an ArgumentError where there are none."""
    if not len(rows):
        raise ArgumentError("rows", "must not be empty")
    return rows
