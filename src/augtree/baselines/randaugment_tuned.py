"""RandAugment with its magnitude chosen by validation data, as its paper tunes it: a whole training for each.

Cubuk, Zoph, Shlens and Le, "RandAugment: Practical Automated Data Augmentation with a Reduced Search Space", NeurIPS
2020. The paper also tunes the number of operations, which is 2 here unless `n` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from augtree.baselines.base import Baseline, require_validation
from augtree.baselines.candidates import validation_score
from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import RandAugment


@dataclass(frozen=True)
class RandAugmentTuned(Baseline):
    """The best of RandAugment at several magnitudes.

    Examples
    --------
    >>> RandAugmentTuned().magnitudes
    (5, 9, 14)

    """

    name = "randaugment-tuned"
    about = "RandAugment at the magnitude that is best on validation data"
    source = "Cubuk et al. 2020, NeurIPS"
    needs = "validation samples"
    costs = "3: one for each magnitude"
    settings = ("supervised", "semisupervised")
    domains = ("image",)

    magnitudes: tuple[int, ...] = (5, 9, 14)
    """The magnitudes, of 30."""
    n: int = 2
    """Operations in a row."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitudes", tuple(self.magnitudes))
        if not self.magnitudes or len(set(self.magnitudes)) < len(self.magnitudes):
            raise ArgumentError("magnitudes", "must be at least one, and all different", self.magnitudes)
        for m in self.magnitudes:
            RandAugment(self.n, m)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        require_validation(self.name, data)

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:
        scores: dict[int, float] = {}
        best: dict[int, State] = {}  # one at most, since a state may be large

        def training(m: int) -> State:
            return trainer.fit(RandAugment(self.n, m, trainer.data.fill), seed)

        def work(m: int) -> dict[str, Any]:
            state = training(m)
            score = validation_score(trainer, state)
            if score > max(scores.values(), default=-np.inf):
                best.clear()
                best[m] = state
            return {"score": score}

        for m in self.magnitudes:
            scores[m] = parts.value(f"magnitude {m}", partial(work, m))["score"]
        m = max(scores, key=lambda m: scores[m])
        state = best[m] if m in best else parts.again(lambda: training(m))
        return state, {"m": m}
