"""`density`, the paper's scorer: one model trained on the current tree, then its loss on augmented validation data.

With the model fixed, the expected loss is affine in p: a sample that comes to the node's parent goes on to the
candidate with p and stays as it is otherwise. So one evaluation of a candidate gives its score for every p in H, and
the best p is the least or the greatest in H. The rules for p:
- exact: the expectation over all paths through the tree; its cost does not depend on the number of probabilities;
- sampled: as in the paper, each p by itself with sampled paths; a p between the ends wins by chance alone;
- entropy: expectation minus temperature times the entropy of p, which has an inner optimum in closed form.

Where a judge compares two views of a sample and both are drawn, there are pairs of different paths, and the loss is
not affine in p: there the rule must be `sampled`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from augtree.errors import ArgumentError, number, one_of
from augtree.policies import Tree
from augtree.runs.checkpoints import LazyState
from augtree.search.expectation import TreePath, arrivals, expected
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
from augtree.tasks import Contrastive, Task
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of
from augtree.transforms.base import Transform

RULES = ("exact", "sampled", "entropy")


@dataclass(frozen=True)
class Density(ScorerOptions):
    """The options of the scorer density.

    Examples
    --------
    >>> Density(rule="sampled", train=0.5).spec()
    {'name': 'density', 'sure': 1.0, 'rule': 'sampled', 'train': 0.5, 'temperature': 0.05}

    """

    rule: str = "exact"
    """How the probability of a candidate is chosen: exact, sampled or entropy."""
    train: float = 1.0
    """The length of each training, as a share of a whole one."""
    temperature: float = 0.05
    """The temperature of the rule entropy, in units of the loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("rule", self.rule, RULES)
        number("train", self.train, 0, 10, open_low=True)
        number("temperature", self.temperature, 0, 1e6, open_low=True)

    def check(self, task: Task) -> None:
        """Raise for a task whose losses this rule cannot predict."""
        if judges_pairs(task) and self.rule != "sampled":
            why = "a judge without labels and both views drawn, whose loss is not affine in p"
            raise ArgumentError(
                "rule", f"must be sampled with {why} (or take views=one, or judge=knn or ridge)", self.rule
            )

    def scorer(self, context: ScoringContext) -> DensityMatching:
        """The scorer, ready for work."""
        return DensityMatching(self, context)

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """One scoring a candidate and the baseline, at every node; with sampling, one for each p."""
        each = len(candidates) * (probabilities if self.rule == "sampled" else 1)
        return int(2**depth - 1) * (each + 1)


class DensityMatching:
    """The scorer at work."""

    def __init__(self, options: Density, context: ScoringContext) -> None:
        self.options, self.context, self.trainer = options, context, context.trainer
        self.pairs = judges_pairs(context.trainer.task)
        self.nodes = 0

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """One model, all candidates; then the winner on fresh draws and fresh data."""
        self.nodes += 1
        model = self.context.training(f"model/{self.nodes}", lambda: self.train(tree))
        self.context.checkpoints.drop(f"model/{self.nodes - 1}")
        score_all = self.scores_by_sampling if self.options.rule == "sampled" else self.scores_by_expectation
        scores = score_all(node, tree, p, model)
        winner = best(scores, 1)
        return self.confirm(node, tree, model, winner[0].entry) if winner else nothing_to_choose(scores)

    def train(self, tree: Tree) -> State:
        """A model trained on the tree as it is."""
        steps = max(1, round(self.options.train * self.trainer.total_steps))
        return self.trainer.fit(tree, seed_of(self.context.seed, "model", self.nodes), steps)

    def scores_by_expectation(self, node: int, tree: Tree, p: float | None, model: LazyState) -> list[Score]:
        """Every candidate by one evaluation, whatever the number of probabilities."""
        context, rows, seed = self.context, self.context.rank_rows, self.seed("density")
        reach, paths = arrivals(tree, node)
        about = {"node": node, "round": 0, "reach": reach}
        key = f"node/{node}/density"
        baseline = context.baseline(f"{key}/yardstick", about, lambda: self.expected(paths, model, rows, seed))
        scores = []
        for candidate in context.candidates:
            # At p = 1: the loss of the samples that come to the node; `with_p` then chooses p.
            entry, extended = Entry(candidate, 1.0), extended_by(paths, node, candidate)
            work = partial(self.expected, extended, model, rows, seed)
            scores.append(context.score(f"{key}/{candidate!r}", about, entry, baseline, work))
        return [self.with_p(score, reach, p) for score in scores]

    def with_p(self, score: Score, reach: float, p: float | None) -> Score:
        """The best p, and the score of the whole tree with it (but for what the candidate leaves alone)."""
        if score.failed:
            return score
        p = self.best_p(reach * score.gain) if p is None else p
        gain, error = reach * p * score.gain, reach * p * score.gain_se
        return score._replace(entry=Entry(score.entry.transform, p), loss=-gain, gain=gain, gain_se=error)

    def best_p(self, gain: float) -> float:
        """The least or greatest p; with the rule entropy, the logistic of gain over temperature."""
        if self.options.rule == "exact":
            return (max if gain > 0 else min)(self.context.probabilities)
        return round(1 / (1 + math.exp(-max(-500.0, min(500.0, gain / self.options.temperature)))), 4)

    def scores_by_sampling(self, node: int, tree: Tree, p: float | None, model: LazyState) -> list[Score]:
        """Every candidate at every p, with sampled paths: as in the paper, and |H| times the work."""
        context, rows, seed = self.context, self.context.rank_rows, self.seed("density")
        about = {"node": node, "round": 0}
        key = f"node/{node}/sampled"
        baseline = context.baseline(f"{key}/yardstick", about, lambda: self.sampled(tree, model, rows, seed))
        scores = []
        for candidate in context.candidates:
            for q in context.probabilities if p is None else (p,):
                entry = Entry(candidate, q)
                work = partial(self.sampled, entry.at(node, tree), model, rows, seed)
                scores.append(context.score(f"{key}/{candidate!r}/{q!r}", about, entry, baseline, work))
        return scores

    def confirm(self, node: int, tree: Tree, model: LazyState, entry: Entry) -> Built:
        """The winner on the half that did not choose it, with fresh draws."""
        rows, seed = self.context.confirm_rows, self.seed("confirm")
        reach, paths = arrivals(tree, node)
        about = {"node": node, "round": "confirm", "reach": reach}
        key = f"node/{node}/confirm"

        def without() -> Losses:
            return self.sampled(tree, model, rows, seed) if self.pairs else self.expected(paths, model, rows, seed)

        baseline = self.context.baseline(f"{key}/yardstick", about, without)
        share = reach * entry.p

        def work() -> Losses:
            if self.pairs:
                return self.sampled(entry.at(node, tree), model, rows, seed)
            extended = extended_by(paths, node, entry.transform)
            return baseline + share * (self.expected(extended, model, rows, seed) - baseline)

        score = self.context.score(f"{key}/0/winner", about, entry, baseline, work, keep=True)
        return confirmed(entry, [score], self.options.sure)

    def seed(self, role: str) -> int:
        """The seed of this node for some purpose."""
        return seed_of(self.context.seed, role, self.nodes)

    def sampled(self, tree: Tree, model: LazyState, rows: Rows, seed: int) -> Losses:
        """The losses with sampled paths, as in training."""
        return self.trainer.losses(model(), rows, tree, seed)

    def expected(self, paths: Sequence[TreePath], model: LazyState, rows: Rows, seed: int) -> Losses:
        """The expected losses over some paths."""
        return expected(paths, lambda tree: self.trainer.losses(model(), rows, tree, seed))


def judges_pairs(task: Task) -> bool:
    """Whether the task's judge compares two views that are both drawn."""
    return isinstance(task, Contrastive) and task.label_free and task.views == "both"


def extended_by(paths: Sequence[TreePath], node: int, candidate: Transform) -> list[TreePath]:
    """The paths that go on to the node, with a candidate there."""
    return [path._replace(tree=path.tree.with_node(node, candidate, 1.0)) for path in paths]
