"""`retrain`: a whole training for every candidate and probability, judged on clean validation data. Slow, and exact.

All trainings of a node see the same batches and the same draws, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from augtree.errors import number, true_or_false, whole_number
from augtree.policies import Tree
from augtree.search.grow import Built
from augtree.search.scorers.base import (
    Entry,
    Losses,
    Score,
    ScorerOptions,
    ScoringContext,
    best,
    confirmed,
    nothing_to_choose,
)
from augtree.training.sampling import Rows
from augtree.training.state import seed_of
from augtree.transforms.base import Transform


@dataclass(frozen=True)
class Retrain(ScorerOptions):
    """The options of the scorer retrain.

    Examples
    --------
    >>> Retrain(train=0.5, repeats=5).spec()
    {'name': 'retrain', 'sure': 1.0, 'train': 0.5, 'spread': 3, 'repeats': 5, 'calibrate': True}

    """

    train: float = 1.0
    """The length of each training, as a share of a whole one."""
    spread: int = 3
    """The number of probabilities that are tried for each candidate."""
    repeats: int = 3
    """The number of trainings that confirm a winner."""
    calibrate: bool = True
    """Whether losses are taken at the best temperature."""

    def __post_init__(self) -> None:
        super().__post_init__()
        number("train", self.train, 0, 100, open_low=True)
        whole_number("spread", self.spread, 1, 10**9)
        whole_number("repeats", self.repeats, 1, 10**9)
        true_or_false("calibrate", self.calibrate)

    def scorer(self, context: ScoringContext) -> Trainings:
        """The scorer, ready for work."""
        return Trainings(self, context)

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """Every candidate at every probability, and the baseline, at every node."""
        return int(2**depth - 1) * (len(candidates) * min(self.spread, probabilities) + 1)


class Trainings:
    """The scorer at work."""

    def __init__(self, options: Retrain, context: ScoringContext) -> None:
        self.options, self.context, self.trainer = options, context, context.trainer
        self.nodes = 0

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """The best candidate at its best probability; then the confirmation on fresh draws and fresh data."""
        self.nodes += 1
        context, rows = self.context, self.context.rank_rows
        key, seed = f"node/{node}/train", seed_of(context.seed, "train", self.nodes)
        about = {"node": node, "round": 0, "steps": self.steps}
        baseline = context.baseline(f"{key}/yardstick", about, lambda: self.losses(tree, seed, rows))
        probabilities = self.probabilities() if p is None else [p]
        scores: list[Score] = []
        for entry in (Entry(candidate, q) for candidate in context.candidates for q in probabilities):
            work = partial(self.losses, entry.at(node, tree), seed, rows)
            scores.append(context.score(f"{key}/{entry.transform!r}/{entry.p!r}", about, entry, baseline, work))
        winner = best(scores, 1)
        return self.confirm(node, tree, winner[0].entry) if winner else nothing_to_choose(scores)

    def confirm(self, node: int, tree: Tree, entry: Entry) -> Built:
        """The winner and the baseline once more: fresh draws, and the half that did not choose."""
        rows, scores = self.context.confirm_rows, []
        for repeat in range(self.options.repeats):
            about = {"node": node, "round": "confirm", "steps": self.steps}
            key = f"node/{node}/confirm/{repeat}"
            seed = seed_of(self.context.seed, "confirm", self.nodes, repeat)
            without, work = (partial(self.losses, each, seed, rows) for each in (tree, entry.at(node, tree)))
            baseline = self.context.baseline(f"{key}/yardstick", about, without)
            key = f"{key}/{entry.transform!r}/winner"
            scores.append(self.context.score(key, about, entry, baseline, work, keep=True))
        return confirmed(entry, scores, self.options.sure)

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
        descending = sorted(self.context.probabilities, reverse=True)
        count = min(self.options.spread, len(descending))
        return [descending[i * len(descending) // count] for i in range(count)]
