"""`anneal`: a short branch from a shared trunk, its learning rate falling to zero, judged on clean validation data.

First a coarse look: every operation, mild and strong. Then the best few at all of theirs, and last the best of those
at several probabilities, with longer branches. All branches of a round see the same batches and the same draws, so
that differences are paired.

`retrain` is the same with whole trainings in the place of branches: the slow truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from augtree.errors import ArgumentError, number, whole_number
from augtree.policies import Tree
from augtree.search.grow import Built
from augtree.search.scorers.base import Bench, Entry, Losses, Model, Score, ScorerOptions, best, verdict, with_entry
from augtree.tasks.trainer import Rows, State, seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Policy, Transform

Trunk = Callable[[], State]
"""The shared model; read when it is needed."""


@dataclass(frozen=True)
class Anneal(ScorerOptions):
    """Lengths are shares of one whole training. Much shorter branches do not rank: see docs/results.md."""

    rungs: tuple[float, float] = (0.08, 0.1)
    """How long the branches of the first and of the last round are."""
    fewest: int = 150
    """No branch has fewer steps, unless they are more than a quarter of a training."""
    kept: tuple[int, int] = (2, 2)
    """How many operations are refined after the coarse look, and how many candidates come to the last round."""
    shortlist: int = 6
    """Below the root, only so many operations are looked at: those that did best at the root."""
    spread: int = 3
    """How many probabilities of H the last round compares, for each candidate."""
    trunk: float = 0.5
    """How long the trunk trains before the first node."""
    between: float = 0.05
    """How long it trains on before each further node."""
    first_p: tuple[float, float] = (0.6, 0.5)
    """The probability before the last round, at the root and below it."""
    repeats: int = 3
    """How many branches confirm a winner."""
    tries: int = 2
    """How many candidates may be tried for that, where the best is not confirmed."""
    calibrate: bool = True
    """Whether losses are those at the best temperature."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pair("rungs", self.rungs)
        pair("kept", self.kept)
        pair("first_p", self.first_p)
        if number("rungs", self.rungs[0], 0, 10, open_low=True) > number("rungs", self.rungs[1], 0, 10):
            raise ArgumentError("rungs", "must not become shorter", self.rungs)
        for p in self.first_p:
            number("first_p", p, 0, 1, open_low=True)
        for name, value in (
            ("fewest", self.fewest),
            ("spread", self.spread),
            ("repeats", self.repeats),
            ("tries", self.tries),
        ):
            whole_number(name, value, 1, 10**9)
        for name, value in (("kept", self.kept[0]), ("kept", self.kept[1]), ("shortlist", self.shortlist)):
            whole_number(name, value, 1, 10**9)
        number("trunk", self.trunk, 0, 100)
        number("between", self.between, 0, 100)

    def at(self, bench: Bench) -> Any:
        """The scorer at its bench."""
        return Branches(self, bench)

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """Every round of every node, with its yardstick."""
        operations = families(candidates).values()
        coarse = sorted((len(typical(family)) for family in operations), reverse=True)
        finer = sorted((len(family) - len(typical(family)) for family in operations), reverse=True)
        last = min(self.kept[1], len(candidates)) * min(self.spread, probabilities)
        each = sum(finer[: self.kept[0]]) + last + 2
        return sum(coarse) + each + int(2**depth - 2) * (sum(coarse[: self.shortlist]) + each)

    def first_node(self, candidates: Sequence[Transform], total_steps: int) -> float:
        """About what the first node takes, in training equivalents: less is a budget that ends with nothing."""
        short, long = (self.steps(share, total_steps) / total_steps for share in self.rungs)
        looked = sum(len(typical(family)) for family in families(candidates).values())
        finer = sorted((len(f) - len(typical(f)) for f in families(candidates).values()), reverse=True)
        rest = min(self.kept[1], len(candidates)) * self.spread + 2 * self.repeats + 1
        return self.trunk + short * (looked + sum(finer[: self.kept[0]]) + 1) + long * rest

    def steps(self, share: float, total_steps: int) -> int:
        """The steps of a branch."""
        return min(total_steps, max(min(self.fewest, -(-total_steps // 4)), round(share * total_steps)))


@dataclass(frozen=True)
class Retrain(Anneal):
    """A whole training for every candidate: for small spaces, and to check the others."""

    rungs: tuple[float, float] = (1.0, 1.0)
    kept: tuple[int, int] = (10**9, 1)
    shortlist: int = 10**9
    spread: int = 10
    trunk: float = 0.0
    between: float = 0.0


class Branches:
    """The scorer at work."""

    def __init__(self, options: Anneal, bench: Bench) -> None:
        self.options, self.bench, self.trainer = options, bench, bench.trainer
        self.nodes = 0
        self.families = families(bench.candidates)
        self._trunk: Model | None = None

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """A coarse look at every operation, a finer one at the best, their probabilities; then the confirmation."""
        self.nodes += 1
        trunk = self.trunk(tree)
        early = p if p is not None else self.options.first_p[node > 1]
        look = partial(self.round, node, tree, trunk, 0)
        scores = look([Entry(c, early) for family in self.families.values() for c in typical(family)])
        order = list(dict.fromkeys(score.entry.transform.name for score in best(scores, len(scores))))
        seen = [score.entry.transform for score in scores]
        finer = [c for name in order[: self.options.kept[0]] for c in self.families[name] if c not in seen]
        if self.nodes == 1:
            self.families = {name: self.families[name] for name in order[: self.options.shortlist]}
        scores += look([Entry(candidate, early) for candidate in finer])
        chosen = [score.entry.transform for score in best(scores, self.options.kept[1])]
        if not chosen:
            why = f"every candidate failed, the first with: {scores[0].failed}" if scores else "there is no candidate"
            return Built(Identity(), 0.0, False, why=why)
        probabilities = self.last_probabilities() if p is None else [p]
        last = self.round(node, tree, trunk, 1, [Entry(c, q) for c in chosen for q in probabilities])
        return self.first_confirmed(node, tree, trunk, best(last, len(last)) or best(scores, 1))

    def round(self, node: int, tree: Tree, trunk: Trunk, rung: int, entries: Sequence[Entry]) -> list[Score]:
        """All entries, each on its own branch, against the tree as it is."""
        share = self.options.rungs[rung]
        about = {"node": node, "round": rung, "steps": self.steps(share)}
        key, seed = f"node/{node}/round/{rung}", seed_of(self.bench.seed, "round", self.nodes, rung)
        rows = self.bench.rank_rows
        yard = self.bench.yardstick(f"{key}/yardstick", about, lambda: self.branch(trunk, tree, share, seed, rows))

        def score(entry: Entry) -> Score:
            policy = with_entry(tree, node, entry)
            work = lambda: self.branch(trunk, policy, share, seed, rows)  # noqa: E731
            return self.bench.score(f"{key}/{entry.transform!r}/{entry.p!r}", about, entry, yard, work)

        return [score(entry) for entry in entries]

    def first_confirmed(self, node: int, tree: Tree, trunk: Trunk, ranked: Sequence[Score]) -> Built:
        """The best that is confirmed; a few are tried, each candidate at its best probability."""
        entries: dict[Transform, Entry] = {}
        for score in ranked:
            entries.setdefault(score.entry.transform, score.entry)
        tried: list[Built] = []
        for entry in list(entries.values())[: self.options.tries]:
            tried.append(self.confirmed(node, tree, trunk, entry))
            if tried[-1].improves:
                return tried[-1]
        return tried[0]

    def confirmed(self, node: int, tree: Tree, trunk: Trunk, entry: Entry) -> Built:
        """The winner and the yardstick once more: fresh draws, and the half that did not choose."""
        share, rows = self.options.rungs[-1], self.bench.confirm_rows
        policy = with_entry(tree, node, entry)
        gains = []
        for repeat in range(self.options.repeats):
            about = {"node": node, "round": "confirm", "steps": self.steps(share)}
            key, seed = f"node/{node}/confirm/{repeat}", seed_of(self.bench.seed, "confirm", self.nodes, repeat)
            yard = self.bench.yardstick(
                f"{key}/yardstick",
                about,
                lambda seed=seed: self.branch(trunk, tree, share, seed, rows),  # type: ignore[misc]
            )
            work = lambda seed=seed: self.branch(trunk, policy, share, seed, rows)  # noqa: E731
            gains.append(self.bench.score(f"{key}/{entry.transform!r}/winner", about, entry, yard, work, keep=True))
        return verdict(entry, gains, self.options.sure)

    def branch(self, trunk: Trunk, policy: Tree, share: float, seed: int, rows: Rows) -> Losses:
        """Clean validation losses after a branch on this policy."""
        state = self.trainer.train(trunk(), policy, self.rates(self.steps(share)), seed)
        return (self.trainer.calibrated_losses if self.options.calibrate else self.trainer.losses)(state, rows)

    def trunk(self, tree: Tree) -> Trunk:
        """The shared model, trained on with the tree as it is now."""
        if self.options.trunk == 0:  # retrain: everything from the start
            return lambda: self.begun(tree)
        rate, number_ = self.trainer.task.rate, self.nodes
        before = self._trunk

        def on() -> State:
            if before is None:
                return self.begun(tree)
            steps = round(self.options.between * self.trainer.total_steps)
            state = self.trainer.train(before(), tree, [rate] * steps, seed_of(self.bench.seed, "trunk"))
            before.forget()  # its file stays for one node more, should this one's be lost
            return state

        self._trunk = self.bench.training(f"trunk/{number_}", on)
        self.bench.run.drop(f"trunk-{number_ - 2}")
        return self._trunk

    def begun(self, policy: Policy) -> State:
        """The shared model before the first node: trained for a while at the full rate."""
        fresh, task = self.trainer.fresh(self.bench.seed), self.trainer.task
        if self.options.trunk == 0:
            return fresh
        rates = task.rates(self.trainer.total_steps)
        rise = rates.index(max(rates))
        steps = max(1, round(self.options.trunk * self.trainer.total_steps))
        level = [*rates[:rise], *[task.rate] * max(0, steps - rise)]
        return self.trainer.train(fresh, policy, level, seed_of(self.bench.seed, "trunk"))

    def steps(self, share: float) -> int:
        """So many steps."""
        return self.options.steps(share, self.trainer.total_steps)

    def rates(self, steps: int) -> list[float]:
        """From the trunk's rate to zero in a line; a whole training has its own course."""
        if self.options.trunk == 0:
            return self.trainer.task.rates(steps)
        return [self.trainer.task.rate * (1 - i / steps) for i in range(steps)]

    def last_probabilities(self) -> list[float]:
        """Probabilities spread over H, the highest first."""
        known = sorted(self.bench.probabilities, reverse=True)
        count = min(self.options.spread, len(known))
        return [known[i * len(known) // count] for i in range(count)]


def families(candidates: Sequence[Transform]) -> dict[str, list[Transform]]:
    """The candidates by operation."""
    out: dict[str, list[Transform]] = {}
    for candidate in candidates:
        out.setdefault(candidate.name, []).append(candidate)
    return out


def typical(family: Sequence[Transform]) -> list[Transform]:
    """Those by which an operation is judged at first: a mild and a strong one."""
    last = len(family) - 1
    return [family[i] for i in sorted({last // 4, 3 * last // 4})]


def pair(field: str, value: Any) -> None:
    """Raise unless there are two."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(field, "must be two numbers", value)
