"""All trees of two levels over a few operations, by trainings: what greed costs a search. A control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.baselines.base import Baseline
from augtree.baselines.candidates import kinds_for, made, magnitudes_for
from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.errors import ArgumentError, number, one_of
from augtree.search import Retrain, search_tree
from augtree.search.search import check_data
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import Space


@dataclass(frozen=True)
class Exhaustive(Baseline):
    """The best of all trees of two levels, on validation data.

    Examples
    --------
    >>> Exhaustive(("Rotate", "Color"), length=0.3).spec()
    {'way': 'exhaustive', 'operations': ['Rotate', 'Color'], 'length': 0.3}

    """

    name = "exhaustive"
    kind = "control"
    about = "the best of all trees of two levels over three operations, by trainings"
    source = "a control"
    needs = "8 validation samples"
    costs = "34: one for each of 30 trees and one without, two that confirm the best, and a last one"
    settings = ("supervised", "semisupervised")
    domains = ("image",)

    operations: tuple[str, ...] = ("Rotate", "TranslateX", "Brightness")
    """The operations, at the middle magnitude; n of them make n (n + 1) (n + 2) / 2 trees."""
    length: float = 1.0
    """The length of the trainings that choose, in trainings."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if not self.operations or len(set(self.operations)) < len(self.operations):
            raise ArgumentError("operations", "must be at least one, and all different", self.operations)
        number("length", self.length, 0, 100, open_low=True)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        check_data(data, self.space(data))

    def space(self, data: Dataset) -> Space:
        """The operations as a space."""
        kinds, magnitudes = {kind.__name__: kind for kind in kinds_for(data)}, magnitudes_for(data)
        middle = magnitudes[len(magnitudes) // 2]
        chosen = [one_of(f"{self.name}/operations/{i}", name, kinds) for i, name in enumerate(self.operations)]
        return Space([made(kinds[name], middle, data) for name in chosen])

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:
        options: dict[str, Any] = {"method": "exhaustive", "scorer": Retrain(train=self.length, repeats=1)}
        options |= {"check": 0, "seed": seed}
        result = parts.search("trees", search_tree, trainer.data, trainer.task, self.space(trainer.data), **options)
        return trainer.fit(result.tree, seed), {"tree": str(result.tree)}
