"""RandAugment with its magnitude chosen by validation data, as its paper tunes it: a whole training for each.

Cubuk, Zoph, Shlens and Le, "RandAugment: Practical Automated Data Augmentation with a Reduced Search Space", NeurIPS
2020. The paper also tunes the number of operations, which is 2 here unless `n` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.baselines.base import Baseline, require_validation
from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
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

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        metric, rows = METRICS[trainer.task.metric], trainer.data.indices("val")
        sign = 1 if metric.higher_is_better else -1
        scores: dict[int, float] = {}
        for m in self.magnitudes:
            state = trainer.fit(RandAugment(self.n, m, trainer.data.fill), seed)
            score = sign * trainer.measures(state, rows)[metric.name]
            if not scores or score > max(scores.values()):
                best = state  # alone, since a state may be large
            scores[m] = score
        return best, {"m": max(scores, key=lambda m: scores[m])}
