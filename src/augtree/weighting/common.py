"""Which tree a group gets: its own, or the one for all groups, as a model of all groups tells.

A tree that helps a model of one group alone need not help that group in a model of all of them: there the other
groups teach it too. So the tree for all stands everywhere, and a group has its own in its place only where that is
confirmed. The comparison is one of branches from a shared trunk, as in a search by `anneal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from augtree.policies import Forest, Tree
from augtree.search.scorers import Anneal, ScorerOptions
from augtree.search.scorers.anneal import Branches, Trunk
from augtree.search.scorers.base import Bench, Entry, Losses, verdict
from augtree.search.search import Watch
from augtree.tasks.trainer import seed_of

SHARE = 0.25
"""How long the branches are at least, in trainings: there are few of them, and whole trees are compared."""


class Held(NamedTuple):
    """A group's own tree, held against the one for all in a model of all groups."""

    own: bool
    """Whether the group keeps it."""
    gain: float
    """How much lower the group's validation loss is with it."""
    gain_se: float
    tree: str
    same: bool = False
    """Whether both are the same tree."""
    failed: str = ""
    """Why it could not be compared."""

    def __str__(self) -> str:
        if self.same:
            return "its own tree is the one for all"
        if self.failed:
            return (
                f"it has the tree for all, since its own, {self.tree}, failed in a model of all groups: {self.failed}"
            )
        what = f"its own tree, {self.tree}, lowers its loss by {self.gain:.4f} ± {self.gain_se:.4f}"
        return f"{what} in a model of all groups" + ("" if self.own else ": it has the tree for all")


@dataclass
class Common:
    """The comparison; `bench` has the trainer of all groups."""

    bench: Bench
    options: Anneal
    whole: Tree
    """The tree for all."""

    def __post_init__(self) -> None:
        self.groups = self.bench.trainer.data.group_names
        self.rows = {group: self.bench.trainer.data.indices("val", group) for group in self.groups}
        self.scorer = Branches(self.options, self.bench)
        self.steps = self.scorer.steps(max(SHARE, self.options.rungs[-1]))
        self.place = f"common/{seed_of(repr(self.whole)):x}"  # a larger budget may give another tree

    def held(self, own: Mapping[str, Tree], watch: Watch) -> dict[str, Held]:
        """What each group is to have; where both trees are the same there is nothing to compare."""
        found = {group: Held(True, 0.0, 0.0, str(own[group]), same=True) for group in self.groups}
        others = [group for group in self.groups if own[group] != self.whole]
        if others:
            trunk = self.bench.training(f"{self.place}/trunk", lambda: self.scorer.begun(self.forest({})))
        for group in others:
            watch("common", group=group)
            found[group] = self.compared(group, own[group], trunk)
        return found

    def compared(self, group: str, tree: Tree, trunk: Trunk) -> Held:
        """One group's own tree against the one for all; the other groups have that one on both sides."""
        gains = []
        first = sum(len(self.rows[name]) for name in self.groups[: self.groups.index(group)])
        mine = slice(first, first + len(self.rows[group]))
        for repeat in range(self.options.repeats):
            key, seed = f"{self.place}/{repeat}", seed_of(self.bench.seed, "common", repeat)
            about = {"round": "common", "steps": self.steps, "group": group}
            yard = self.bench.yardstick(key, about, lambda seed=seed: self.losses({}, trunk, seed))  # type: ignore[misc]
            work = lambda seed=seed: self.losses({group: tree}, trunk, seed)[mine]  # noqa: E731
            score = self.bench.score(f"{key}/{group}/{tree!r}", about, Entry(tree, 1.0), yard[mine], work, keep=True)
            gains.append(score)
        found = verdict(Entry(tree, 1.0), gains, self.options.sure)
        failed = next((score.failed for score in gains if score.failed), "")
        return Held(found.improves, found.gain, found.gain_se, str(tree), failed=failed)

    def losses(self, own: Mapping[str, Tree], trunk: Trunk, seed: int) -> Losses:
        """The validation losses of all groups, one after another, after a branch on these trees."""
        judge = self.bench.trainer.calibrated_losses if self.options.calibrate else self.bench.trainer.losses
        state = self.bench.trainer.train(trunk(), self.forest(own), self.scorer.rates(self.steps), seed)
        return np.concatenate([judge(state, rows) for rows in self.rows.values()])

    def forest(self, own: Mapping[str, Tree]) -> Forest:
        """The tree for all everywhere, but for these."""
        return Forest({group: (own.get(group, self.whole), 1 / len(self.groups)) for group in self.groups})


def branches_of(scorer: ScorerOptions) -> Anneal:
    """How trees are held against each other where they were found by this scorer."""
    return scorer if isinstance(scorer, Anneal) else Anneal(sure=scorer.sure)
