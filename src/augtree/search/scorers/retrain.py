"""`retrain`: a whole training for every candidate and probability, judged on clean validation data: the slow truth.

All trainings of a node see the same batches and the same draws, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from augtree.errors import number, whole_number
from augtree.policies import Tree
from augtree.search.grow import Built
from augtree.search.scorers.base import Bench, Entry, Losses, Score, ScorerOptions, best, verdict, with_entry
from augtree.training.trainer import Rows, seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Transform


@dataclass(frozen=True)
class Retrain(ScorerOptions):
    """`train` is the length of each training, as a share of a whole one."""

    train: float = 1.0
    spread: int = 3
    """How many probabilities of H are tried for each candidate."""
    repeats: int = 3
    """How many trainings confirm a winner."""
    calibrate: bool = True
    """Whether losses are those at the best temperature."""

    def __post_init__(self) -> None:
        super().__post_init__()
        number("train", self.train, 0, 100, open_low=True)
        whole_number("spread", self.spread, 1, 10**9)
        whole_number("repeats", self.repeats, 1, 10**9)

    def at(self, bench: Bench) -> Any:
        """The scorer at its bench."""
        return Trainings(self, bench)

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """Every candidate at every probability, and the yardstick, at every node."""
        return int(2**depth - 1) * (len(candidates) * min(self.spread, probabilities) + 1)


class Trainings:
    """The scorer at work."""

    def __init__(self, options: Retrain, bench: Bench) -> None:
        self.options, self.bench, self.trainer = options, bench, bench.trainer
        self.nodes = 0

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """The best candidate at its best probability; then the confirmation on fresh draws and fresh data."""
        self.nodes += 1
        key, seed = f"node/{node}/train", seed_of(self.bench.seed, "train", self.nodes)
        about = {"node": node, "round": 0, "steps": self.steps}
        rows = self.bench.rank_rows
        yard = self.bench.yardstick(f"{key}/yardstick", about, lambda: self.losses(tree, seed, rows))
        entries = [Entry(c, q) for c in self.bench.candidates for q in (self.probabilities() if p is None else [p])]
        scores: list[Score] = []
        for entry in entries:
            work = lambda e=entry: self.losses(with_entry(tree, node, e), seed, rows)  # noqa: E731
            scores.append(self.bench.score(f"{key}/{entry.transform!r}/{entry.p!r}", about, entry, yard, work))
        found = best(scores, 1)
        if not found:
            why = f"every candidate failed, the first with: {scores[0].failed}" if scores else "there is no candidate"
            return Built(Identity(), 0.0, False, why=why)
        return self.confirmed(node, tree, found[0].entry)

    def confirmed(self, node: int, tree: Tree, entry: Entry) -> Built:
        """The winner and the yardstick once more: fresh draws, and the half that did not choose."""
        rows, gains = self.bench.confirm_rows, []
        for repeat in range(self.options.repeats):
            about = {"node": node, "round": "confirm", "steps": self.steps}
            key, seed = f"node/{node}/confirm/{repeat}", seed_of(self.bench.seed, "confirm", self.nodes, repeat)
            without = lambda seed=seed: self.losses(tree, seed, rows)  # noqa: E731
            yard = self.bench.yardstick(f"{key}/yardstick", about, without)
            work = lambda seed=seed: self.losses(with_entry(tree, node, entry), seed, rows)  # noqa: E731
            gains.append(self.bench.score(f"{key}/{entry.transform!r}/winner", about, entry, yard, work, keep=True))
        return verdict(entry, gains, self.options.sure)

    @property
    def steps(self) -> int:
        """The steps of a training."""
        return max(1, round(self.options.train * self.trainer.total_steps))

    def losses(self, policy: Tree, seed: int, rows: Rows) -> Losses:
        """Clean validation losses after a training on this policy."""
        state = self.trainer.fit(policy, seed, self.steps)
        return (self.trainer.calibrated_losses if self.options.calibrate else self.trainer.losses)(state, rows)

    def probabilities(self) -> list[float]:
        """Probabilities spread over H, the highest first."""
        known = sorted(self.bench.probabilities, reverse=True)
        count = min(self.options.spread, len(known))
        return [known[i * len(known) // count] for i in range(count)]
