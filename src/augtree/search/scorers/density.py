"""`density`, the paper's scorer: one model trained on the current tree, then its loss on augmented validation data.

With the model fixed, the expected loss is affine in p: a sample that comes to the node's parent goes on to the
candidate with p and stays as it is otherwise. So one evaluation of a candidate tells its score for every p in H, and
the best p is an end of H. The rules for p:
- exact: the expectation over all ways through the tree; free for any number of probabilities;
- sampled: as in the paper, each p by itself with the ways drawn; an inner p is then the luck of the draw;
- entropy: expectation minus temperature times the entropy of p, which has an inner optimum in closed form.

Where a judge compares two views of a sample and both are drawn, there are pairs of different ways, and the loss is
not affine in p: there the rule must be `sampled`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from augtree.errors import ArgumentError, number
from augtree.policies import Tree
from augtree.search.expectation import Expectation, Way, arrivals
from augtree.search.grow import Built
from augtree.search.scorers.base import Bench, Entry, Losses, Score, ScorerOptions, best, verdict, with_entry
from augtree.tasks import Contrastive, Task
from augtree.training.trainer import Rows, State, seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Transform

RULES = ("exact", "sampled", "entropy")


@dataclass(frozen=True)
class Density(ScorerOptions):
    """`train` is the length of each model's training, as a share of a whole one."""

    rule: str = "exact"
    train: float = 1.0
    temperature: float = 0.05
    """For the entropy rule, in units of the loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in RULES:
            raise ArgumentError("rule", f"must be one of {', '.join(RULES)}", self.rule)
        number("train", self.train, 0, 10, open_low=True)
        number("temperature", self.temperature, 0, 1e6, open_low=True)

    def check(self, task: Task) -> None:
        """Raise for a task whose losses this rule cannot predict."""
        if judges_pairs(task) and self.rule != "sampled":
            why = "a judge without labels and both views drawn, whose loss is not affine in p"
            raise ArgumentError(
                "rule", f"must be sampled with {why} (or take views=one, or judge=knn or ridge)", self.rule
            )

    def at(self, bench: Bench) -> Any:
        """The scorer at its bench."""
        return Matching(self, bench)

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """One scoring a candidate and the yardstick, at every node; with sampling, one for each p."""
        each = len(candidates) * (probabilities if self.rule == "sampled" else 1)
        return int(2**depth - 1) * (each + 1)


class Matching:
    """The scorer at work."""

    def __init__(self, options: Density, bench: Bench) -> None:
        self.options, self.bench, self.trainer = options, bench, bench.trainer
        self.pairs = judges_pairs(bench.trainer.task)
        self.nodes = 0

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """One model, all candidates; then the winner on fresh draws and fresh data."""
        self.nodes += 1
        model = self.bench.training(f"model/{self.nodes}", lambda: self.trained(tree))
        self.bench.run.drop(f"model-{self.nodes - 1}")
        sampled = self.options.rule == "sampled"
        scores = (self.sampled if sampled else self.expected)(node, tree, p, model)
        found = best(scores, 1)
        if not found:
            why = f"every candidate failed, the first with: {scores[0].failed}" if scores else "there is no candidate"
            return Built(Identity(), 0.0, False, why=why)
        return self.confirmed(node, tree, model, found[0].entry)

    def trained(self, tree: Tree) -> State:
        """A model trained on the tree as it is."""
        steps = max(1, round(self.options.train * self.trainer.total_steps))
        return self.trainer.fit(tree, seed_of(self.bench.seed, "model", self.nodes), steps)

    def expected(self, node: int, tree: Tree, p: float | None, model: Any) -> list[Score]:
        """Every candidate by one evaluation, whatever the number of probabilities."""
        rows, seed = self.bench.rank_rows, seed_of(self.bench.seed, "density", self.nodes)
        reach, found = arrivals(tree, node)
        about = {"node": node, "round": 0, "reach": reach}
        key = f"node/{node}/density"
        yard = self.bench.yardstick(f"{key}/yardstick", about, lambda: self.over(found, model, rows, seed))
        scores = []
        for candidate in self.bench.candidates:
            # At p = 1: the loss of those that come to the node. What p they come with is decided below.
            sure = Entry(candidate, 1.0)
            work = lambda c=candidate: self.over(longer(found, node, c), model, rows, seed)  # noqa: E731
            scores.append(self.bench.score(f"{key}/{candidate!r}", about, sure, yard, work))
        return [self.with_p(score, reach, p) for score in scores]

    def with_p(self, score: Score, reach: float, p: float | None) -> Score:
        """The best p, and the score of the whole tree with it (but for what the candidate leaves alone)."""
        if score.failed:
            return score
        p = self.best_p(reach * score.gain) if p is None else p
        gain, error = reach * p * score.gain, reach * p * score.gain_se
        return score._replace(entry=Entry(score.entry.transform, p), loss=-gain, gain=gain, gain_se=error)

    def best_p(self, gain: float) -> float:
        """Affine: an end of H. With entropy: the logistic of gain over temperature."""
        if self.options.rule == "exact":
            return (max if gain > 0 else min)(self.bench.probabilities)
        return round(1 / (1 + math.exp(-max(-500.0, min(500.0, gain / self.options.temperature)))), 4)

    def sampled(self, node: int, tree: Tree, p: float | None, model: Any) -> list[Score]:
        """Every candidate at every p, the ways drawn: the paper's way, and |H| times the work."""
        rows, seed = self.bench.rank_rows, seed_of(self.bench.seed, "density", self.nodes)
        about = {"node": node, "round": 0}
        key = f"node/{node}/sampled"
        yard = self.bench.yardstick(f"{key}/yardstick", about, lambda: self.drawn(tree, model, rows, seed))
        scores = []
        for candidate in self.bench.candidates:
            for q in self.bench.probabilities if p is None else (p,):
                entry = Entry(candidate, q)
                work = lambda e=entry: self.drawn(with_entry(tree, node, e), model, rows, seed)  # noqa: E731
                scores.append(self.bench.score(f"{key}/{candidate!r}/{q!r}", about, entry, yard, work))
        return scores

    def confirmed(self, node: int, tree: Tree, model: Any, entry: Entry) -> Built:
        """The winner on the half that did not choose it, with fresh draws."""
        rows, seed = self.bench.confirm_rows, seed_of(self.bench.seed, "confirm", self.nodes)
        reach, found = arrivals(tree, node)
        about = {"node": node, "round": "confirm", "reach": reach}
        key = f"node/{node}/confirm"

        def without() -> Losses:
            return self.drawn(tree, model, rows, seed) if self.pairs else self.over(found, model, rows, seed)

        yard = self.bench.yardstick(f"{key}/yardstick", about, without)
        share = reach * entry.p

        def work() -> Losses:
            if self.pairs:
                return self.drawn(with_entry(tree, node, entry), model, rows, seed)
            return yard + share * (self.over(longer(found, node, entry.transform), model, rows, seed) - yard)

        return verdict(
            entry, [self.bench.score(f"{key}/0/winner", about, entry, yard, work, keep=True)], self.options.sure
        )

    def drawn(self, tree: Tree, model: Any, rows: Rows, seed: int) -> Losses:
        """The losses with the ways drawn, as in training."""
        return self.trainer.losses(model(), rows, tree, seed)

    def over(self, found: Sequence[Way], model: Any, rows: Rows, seed: int) -> Losses:
        """The expected losses over some ways."""
        return Expectation(lambda way: self.trainer.losses(model(), rows, way, seed)).of(list(found))


def judges_pairs(task: Task) -> bool:
    """Whether the task's judge compares two views that are both drawn."""
    return isinstance(task, Contrastive) and task.label_free and task.views == "both"


def longer(found: Sequence[Way], node: int, candidate: Transform) -> list[Way]:
    """The ways that go on to the node, with a candidate there."""
    return [Way(way.probability, way.tree.with_node(node, candidate, 1.0), (*way.nodes, node)) for way in found]
