"""A sequence grown greedily by whole trainings: what a search for a sequence, and not a tree, finds. A control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.baselines.base import Baseline, require_validation
from augtree.baselines.candidates import kinds_for, made, magnitudes_for, validation_score
from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.errors import number, whole_number
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import Chain
from augtree.transforms.base import Transform


@dataclass(frozen=True)
class GreedySequence(Baseline):
    """One operation after the other, each the best on validation data, until none helps.

    Examples
    --------
    >>> GreedySequence(depth=2, length=0.3).spec()
    {'way': 'greedy-sequence', 'depth': 2, 'length': 0.3, 'p': 0.5}

    """

    name = "greedy-sequence"
    about = "the operations that help most on validation data, one after the other, by trainings"
    source = "a control"
    kind = "control"
    needs = "validation samples"
    costs = "up to 32: one for each of 15 operations (graphs: 4) at each of 2 levels, one without, and a last one"
    settings = ("supervised", "semisupervised")
    domains = ("image", "graph")

    depth: int = 2
    """The most operations."""
    length: float = 1.0
    """The length of the trainings that choose, in trainings."""
    p: float = 0.5
    """The probability of each operation."""

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, 1, 10)
        number("length", self.length, 0, 100, open_low=True)
        number("p", self.p, 0, 1, open_low=True)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        require_validation(self.name, data)

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:
        chain = self.search(trainer, seed, parts)
        return trainer.fit(chain, seed), {"sequence": str(chain)}

    def search(self, trainer: Trainer, seed: int, parts: Parts) -> Chain:
        """The sequence, at the middle magnitude throughout."""
        data, magnitudes = trainer.data, magnitudes_for(trainer.data)
        middle = magnitudes[len(magnitudes) // 2]
        candidates = [made(kind, middle, data) for kind in kinds_for(data)]
        best: list[tuple[Transform, float]] = []
        score = self.score(trainer, Chain(best), seed, parts)
        for _ in range(self.depth):
            longer = [[*best, (candidate, self.p)] for candidate in candidates]
            scores = [self.score(trainer, Chain(steps), seed, parts) for steps in longer]
            if max(scores) <= score:
                break
            score = max(scores)
            best = longer[scores.index(score)]
        return Chain(best)

    def score(self, trainer: Trainer, chain: Chain, seed: int, parts: Parts) -> float:
        """The metric on validation data after a training; higher is better."""
        steps = max(1, round(self.length * trainer.total_steps))

        def work() -> dict[str, Any]:
            return {"score": validation_score(trainer, trainer.fit(chain, seed, steps))}

        return float(parts.value(str(chain), work)["score"])
