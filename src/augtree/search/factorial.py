"""Two-level factorial designs: which factors are left out in which run of a look, and the effects of the factors.

Every factor is left out in half of the runs, and all columns are orthogonal, so that each run is evidence on every
factor. The first columns are the products of an odd number of generators (with at most half as many factors as runs,
no effect is mixed with the interaction of two others), then those of an even number. Columns without a factor hold
only interactions and the noise of the branches: their size says how far an effect can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Signs = NDArray[np.int64]
MAX_POWER = 6
"""The largest design has 2 to this power runs."""
NEGLIGIBLE = 0.0005
"""Smaller differences of losses are shown as such."""


class Effect(NamedTuple):
    """How much the loss falls where a factor is left out: above zero, the factor does harm."""

    harm: float
    se: float
    """The standard error, from the spread of the samples and the noise of the branches."""

    @property
    def z(self) -> float:
        """The harm in standard errors; 0 where there is no difference at all."""
        return self.harm / self.se if self.se > 0 else 0.0

    @property
    def size(self) -> str:
        """The size of the difference, with the standard error.

        >>> Effect(-0.25, 0.05).size, Effect(0.0001, 0.05).size, Effect(0.0001, 0.0001).size
        ('0.250 ± 0.050', 'less than 0.001 ± 0.050', 'less than 0.001')
        """
        if abs(self.harm) >= NEGLIGIBLE:
            return f"{abs(self.harm):.3f} ± {self.se:.3f}"
        return "less than 0.001" + (f" ± {self.se:.3f}" if self.se >= NEGLIGIBLE else "")


def signs(factors: int, spare: int = 0) -> Signs:
    """A row for each run and a column for each contrast, +1 where it is left out; the factors' columns come first.

    There are at least 8 runs, and at least `spare` columns without a factor. The first run leaves nothing out.

    >>> signs(3).tolist()[:2]
    [[-1, -1, -1, -1, -1, -1, -1], [1, -1, -1, 1, 1, 1, -1]]
    """
    power = next((k for k in range(3, MAX_POWER) if 2**k > factors + spare), MAX_POWER)
    base = np.array(list(product((-1, 1), repeat=power)), np.int64)[:, ::-1]
    orders = sorted(range(1, power + 1), key=lambda order: (order % 2 == 0, order))
    columns = [
        base[:, list(chosen)].prod(1) * (-1) ** (order + 1)
        for order in orders
        for chosen in combinations(range(power), order)
    ]
    return np.stack(columns, axis=1)


def most_factors() -> int:
    """The number of factors in the largest design."""
    return int(2**MAX_POWER - 1)


def contrasts(losses: Floats, design: Signs) -> Floats:
    """For each column and sample, how much lower its loss is in the runs without the factor than in those with it."""
    return np.asarray(-2 / len(design) * design.T @ losses)


def effect(found: Floats, noise: float) -> Effect:
    """The effect on some samples, given the differences of their losses and the noise of the branches."""
    spread = float(found.std(ddof=1)) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return Effect(float(found.mean()), float(np.hypot(spread, noise)))


def together(seen: Sequence[Effect]) -> Effect:
    """The effect in several looks together, weighted by the inverse variances."""
    if len(seen) == 1 or any(each.se == 0 for each in seen):
        return seen[-1]
    weights = [1 / each.se**2 for each in seen]
    harm = sum(w * each.harm for w, each in zip(weights, seen, strict=True)) / sum(weights)
    return Effect(harm, sum(weights) ** -0.5)


def noise_of(unused: Floats) -> float:
    """The root mean square of contrasts without a factor; 0 where there are none."""
    return float(np.sqrt((unused.mean(axis=1) ** 2).mean())) if len(unused) else 0.0


def shrunk(groups: dict[str, Effect]) -> tuple[Effect, dict[str, Effect]]:
    """The effect in all groups together, and each group's, shrunk towards it (DerSimonian and Laird 1986).

    Where the groups differ by no more than their noise, every group has the common effect.
    """
    means = np.array([effect.harm for effect in groups.values()])
    variances = np.array([max(effect.se, 1e-12) ** 2 for effect in groups.values()])
    weights = 1 / variances
    common = float((weights * means).sum() / weights.sum())
    variance = float(1 / weights.sum())
    excess = float((weights * (means - common) ** 2).sum()) - (len(means) - 1)
    scale = float(weights.sum() - (weights**2).sum() / weights.sum())
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    if between > 0:
        wide = 1 / (variances + between)
        common, variance = float((wide * means).sum() / wide.sum()), float(1 / wide.sum())
    out = {}
    for name, mean, own in zip(groups, means, variances, strict=True):
        pull = own / (own + between)
        var = (1 - pull) * own + pull**2 * variance
        out[name] = Effect(float(pull * common + (1 - pull) * mean), float(np.sqrt(var)))
    return Effect(common, float(np.sqrt(variance))), out
