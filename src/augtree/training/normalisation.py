"""The scale and shift that pictures are normalised by."""

from __future__ import annotations

import torch
from torch import Tensor

from augtree.training.sampling import Rows

COUNTED_AT_ONCE = 1024


def normalisation(pictures: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """Scale and shift that give the bytes of these pictures mean 0 and deviation 1 in each channel."""
    channels = pictures.shape[1]
    histogram = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(rows), COUNTED_AT_ONCE):
        part = pictures[torch.from_numpy(rows[start : start + COUNTED_AT_ONCE])]
        for c in range(channels):
            histogram[c] += torch.bincount(part[:, c].reshape(-1), minlength=256)
    share = histogram.double() / histogram.sum(1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64)
    mean = share @ values
    deviation = ((share * (values - mean[:, None]) ** 2).sum(1)).sqrt().clamp_min(1.0)
    scale = (1 / deviation).float().view(1, -1, 1, 1)
    return scale, (-mean / deviation).float().view(1, -1, 1, 1)
