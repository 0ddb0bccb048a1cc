"""The multiplicative update of the groups' weights (mirror descent), and their effective sample size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError

Floats = NDArray[np.float64]
MIN_WEIGHT = 1e-6
"""The smallest weight: a group at 0 could never come back."""
MAX_LOG_RATIO_CHANGE = 1.0
"""The most by which one update changes the log ratio of two weights: d is a noisy estimate."""


def update(w: Floats, d: Floats, eta: float) -> Floats:
    """w_i exp(-eta d_i), scaled so that they sum to 1; a step that would go too far is shortened.

    >>> update(np.array([0.5, 0.5]), np.array([0.0, np.log(2)]), eta=1.0).round(4)
    array([0.6667, 0.3333])
    """
    if not (np.isfinite(d).all() and len(d) == len(w)):
        raise ArgumentError("d", f"must be a finite number for each of {len(w)} groups", d.tolist())
    log_range = eta * float(d.max() - d.min())
    logs = np.log(w) - eta * d * min(1.0, MAX_LOG_RATIO_CHANGE / max(log_range, MAX_LOG_RATIO_CHANGE))
    new = np.maximum(np.exp(logs - logs.max()), MIN_WEIGHT)
    return np.asarray(new / new.sum())


def effective_size(w: Floats, counts: NDArray[np.int64]) -> float:
    """N_w of the paper, (sum w_g^2 / n_g)^-1: the effective number of samples at these weights.

    >>> effective_size(np.array([0.5, 0.5]), np.array([20, 20]))
    40.0
    """
    return float(1 / np.sum(w**2 / counts))


def largest_remainder(w: Floats, count: int) -> NDArray[np.int64]:
    """How many of `count` samples each group has: whole numbers, nearest to the weights (largest remainders).

    >>> largest_remainder(np.array([0.5, 0.3, 0.2]), 9)
    array([4, 3, 2])
    """
    shares = w * count
    whole = np.floor(shares).astype(np.int64)
    rest = np.argsort(whole - shares, kind="stable")[: count - int(whole.sum())]
    whole[rest] += 1
    return whole
