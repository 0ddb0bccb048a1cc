"""How much each transform of a tree brought where it was confirmed, with its spread over bootstrap samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from augtree.runs.store import Run
from augtree.search.grow import Growth
from augtree.training.state import seed_of

BOOTSTRAPS = 1000
Gains = NDArray[np.float64]
"""The gain on each validation sample."""


@dataclass(frozen=True)
class Importance:
    """How much a transform of the tree brought.

    Examples
    --------
    >>> print(Importance(gain=0.25, spread=0.0125))
    0.2500 ± 0.0125

    """

    gain: float
    """How much the validation loss fell with it, where that was confirmed; summed over its nodes."""
    spread: float
    """The standard deviation of the gain over bootstrap samples."""

    def __str__(self) -> str:
        return f"{self.gain:.4f} ± {self.spread:.4f}"


def importances(growth: Growth, gains: Mapping[int, Gains], seed: int) -> dict[str, Importance]:
    """The importance of each transform, the largest first, given the gains of the nodes.

    All nodes are bootstrapped with the same samples, so that a transform at several nodes has the spread of its sum.
    """
    draws: dict[str, Gains] = {}
    totals: dict[str, float] = {}
    for node, built in growth.built:
        if node not in gains:
            continue
        name, values = built.transform.name, gains[node]
        rng = np.random.default_rng(seed_of(seed, "bootstrap"))
        drawn = values[rng.integers(len(values), size=(BOOTSTRAPS, len(values)))].mean(1)
        draws[name] = draws[name] + drawn if name in draws else drawn
        totals[name] = totals.get(name, 0.0) + float(values.mean())
    unordered = {name: Importance(totals[name], float(draws[name].std())) for name in totals}
    return dict(sorted(unordered.items(), key=lambda pair: -pair[1].gain))


def confirmed_gains(growth: Growth, run: Run) -> dict[int, Gains]:
    """The gains of the nodes that the scorers density and retrain confirmed, averaged over repeats."""
    gains = {}
    for node, built in growth.built:
        if built.improves:
            about = {"candidate": str(built.transform), "p": built.p}
            units = [unit for unit in run.units(f"node/{node}/confirm") if about.items() <= unit.value.items()]
            gains[node] = np.mean([unit.losses for unit in units if unit.losses is not None], axis=0)
    return gains
