"""The trunk: one model that trains at a constant rate on the mixture of all that is in play, with looks on its way.

A look is a set of short cool-downs from the trunk, planned as a factorial design: each leaves half of the factors
out, so that all of them tell of every factor. What does clear harm leaves play, in all groups or in one; then the
same trunk trains on, on what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from augtree.errors import TaskError
from augtree.policies import Forest
from augtree.search.branches import Branch, Crew, Losses
from augtree.search.factorial import Effect, contrasts, effect, most_factors, noise_of, shrunk, signs, together
from augtree.search.play import Play, Plays, in_words
from augtree.search.scorers.base import Bench, Model, mean, se
from augtree.search.scorers.cooldown import Cooldown, Plan
from augtree.training.schedules import cool_down, rates
from augtree.training.trainer import Rows, State, seed_of
from augtree.transforms.base import Policy
from augtree.transforms.traits import ALONE

EVERYBODY = ""
"""The one group of a search that knows no groups."""
SEGMENT = 0.5
"""No part of the trunk is longer than so many trainings: a stopped search loses at most one."""
SINGLE = np.sqrt(2.0)
"""A difference of two branches has the luck of two; a contrast of n branches 2 / sqrt(n) of one's."""
NOTHING_OUT = np.full((1, 0), -1, np.int64)
"""The design where no factor is asked for: the mixture as it is."""
FEWEST_SPARE = 3
"""So many contrasts that hold no factor say how much branches differ by luck, in all looks together."""
MOST = most_factors() - 1
"""What the largest design has room for, with a contrast to spare; what comes after is not asked for."""
BENEFIT = 2.0
"""A group keeps what leaves all others where it gains by so many standard errors."""


@dataclass(frozen=True)
class Finding:
    """What one look says of one factor."""

    look: int
    at: float
    """How long the trunk had trained, in trainings."""
    factor: str
    harm: Effect
    """In all groups together."""
    groups: Mapping[str, Effect]
    """In each group, drawn towards all."""
    left: tuple[str, ...]
    """The groups in which it left play."""
    seen: Mapping[str, Effect]
    """What this look alone says of each group; the rest is by the evidence of all looks so far."""

    def row(self) -> dict[str, Any]:
        """As a value for a file."""
        groups = {name: {"harm": e.harm, "se": e.se} for name, e in self.groups.items()}
        about = {"look": self.look, "at": self.at, "factor": self.factor, "harm": self.harm.harm, "se": self.harm.se}
        return {**about, "groups": groups, "left": list(self.left)}


@dataclass
class Trunk:
    """A trunk on its way; `plays` has what is in play in each group."""

    bench: Bench
    crew: Crew
    options: Cooldown
    plan: Plan
    plays: Plays
    told: Callable[..., None]
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trainer, self.seed = self.bench.trainer, self.bench.seed
        data = self.trainer.data
        self.grouped = set(self.plays) != {EVERYBODY}
        self.rows: Rows = np.sort(data.indices("val"))
        names = [data.group_names[group] for group in data.groups[self.rows]]
        self.group_of_rows = np.array(names if self.grouped else [EVERYBODY] * len(names), dtype=object)
        train = data.groups[data.indices("train")]
        counts = {name: int((train == number).sum()) for number, name in enumerate(data.group_names)}
        total = sum(counts.values())
        self.shares = {g: counts[g] / total for g in self.plays} if self.grouped else {EVERYBODY: 1.0}
        self.step, self.part, self.looked = 0, 0, 0
        self.model: Model | None = None
        self.unused: list[Losses] = []

    # ---- mix, and go on

    def grow(self) -> Model:
        """The trunk to its end, with all looks."""
        for number, place in enumerate(self.plan.looks):
            self.train_to(place)
            self.look(number, place, last=number == len(self.plan.looks) - 1)
            self.looked += 1
        self.train_to(self.plan.trunk)
        return cast(Model, self.model)

    def train_to(self, place: float) -> None:
        """Train on until the trunk is so long, in trainings."""
        one = self.trainer.total_steps
        target = max(1, round(place * one))
        while self.step < target:
            end = min(target, self.step + max(1, round(SEGMENT * one)))
            self.segment(end)

    def segment(self, end: int) -> None:
        """One part of the trunk."""
        before, first, policy = self.model, self.step, self.mixture(self.trained_on)

        def work() -> State:
            start = self.trainer.fresh(self.seed) if before is None else before()
            state = self.trainer.train(
                start, policy, self.rates(first, end), seed_of(self.seed, "trunk"),
                tick=lambda done: self.told("trained_on", steps=first + done),
            )  # fmt: skip
            if before is not None:
                before.forget()
            return state

        self.part += 1
        self.model = self.bench.training(f"trunk/{self.part}", work)
        self.bench.run.drop(f"trunk-{self.part - 2}")
        self.step = end
        self.told("trunk", trainings=end / self.trainer.total_steps)

    @property
    def trained_on(self) -> Plays:
        """What the trunk trains on: all that is in play, with half of the samples as they are until the last look.

        While nothing is known, the mixture holds what does harm, and may keep a model from learning anything. After
        the last look it goes on so if augmenting every sample seems to do harm; the last cool-downs decide.
        """
        doubtful = any(f.factor == ALONE and f.harm.z > self.options.clear for f in self.findings)
        light = doubtful or self.looked < len(self.plan.looks)
        return self.without([ALONE]) if light else self.plays

    def rates(self, first: int, end: int) -> list[float]:
        """The trunk's learning rate from a step on: the warm-up of a training, then always the same."""
        task = self.trainer.task
        rise = rates("constant-linear", self.trainer.total_steps, warmup=task.warmup, decay=0)
        return [task.rate * (rise[i] if i < len(rise) else 1.0) for i in range(first, end)]

    def mixture(self, plays: Plays) -> Policy:
        """The mixture of each group's play; mixtures share their draws."""
        trees = {group: play.drawn_alike() for group, play in plays.items()}
        return Forest({g: (tree, self.shares[g]) for g, tree in trees.items()}) if self.grouped else trees[EVERYBODY]

    # ---- look

    def look(self, number: int, place: float, *, last: bool) -> None:
        """Ask what does harm, and let it leave play.

        A factorial design asks for the basics. At the last look, each factor of the styles is left out once as well.
        """
        asked, beside = asked_at(self.plays, last=last)
        if not asked and not beside:
            return
        spare = max(1, FEWEST_SPARE - sum(len(each) for each in self.unused))
        design = signs(len(asked), spare) if asked else NOTHING_OUT
        runs = [[name for name, sign in zip(asked, row, strict=False) if sign > 0] for row in design]
        losses = self.losses(number, [self.without(out) for out in [*runs, *([name] for name in beside)]])
        found = contrasts(losses[: len(design)], design)
        luck = 2 / np.sqrt(len(design))
        self.unused.append(found[len(asked) :] / luck)
        whole = losses[0]  # the design's first run leaves nothing out
        found = np.concatenate([found[: len(asked)], whole - losses[len(design) :]])
        widths = [luck] * len(asked) + [SINGLE] * len(beside)
        bars = [self.options.likely if last else self.options.clear] * len(asked) + [self.options.slow] * len(beside)
        for i, factor in enumerate([*asked, *beside]):
            where = [group for group, play in self.plays.items() if factor in play.factors]
            own = {group: self.judged(found[i], group, widths[i]) for group in where}
            finding = self.decided(number, place, factor, own, bars[i])
            self.findings.append(finding)
            self.told("finding", finding=finding, grouped=self.grouped)
        self.plays = {
            group: play.without(f.factor for f in self.findings if group in f.left)
            for group, play in self.plays.items()
        }

    def settle(self, harm: Effect, *, left: bool) -> None:
        """Whether half of the samples are left alone, by the last cool-downs."""
        own, place = {EVERYBODY: harm}, self.step / self.trainer.total_steps
        finding = Finding(self.looked, round(place, 4), ALONE, harm, own, (EVERYBODY,) if left else (), own)
        self.findings.append(finding)
        if left:
            self.plays = self.without([ALONE])
        self.told("finding", finding=finding, grouped=False)

    def judged(self, found: Losses, group: str, width: float) -> Effect:
        """An effect on the samples of one group, with so many times the luck of a branch, as unused contrasts say."""
        rows = self.group_of_rows == group
        noise = noise_of(np.concatenate([each[:, rows] for each in self.unused]))
        return effect(found[rows], noise * width)

    def without(self, factors: Sequence[str]) -> Plays:
        """All groups' play without some factors."""
        return {group: play.without(factors) for group, play in self.plays.items()}

    def losses(self, number: int, plays: Sequence[Plays]) -> Losses:
        """The validation losses after a cool-down on each mixture: a row each."""
        one = self.trainer.total_steps
        steps = self.options.look_steps(one)
        down = tuple(self.trainer.task.rate * share for share in cool_down(steps))
        seed = seed_of(self.seed, "look", number)
        branches = {
            f"look/{number}/{i}": Branch(self.mixture(play), down, seed, self.rows) for i, play in enumerate(plays)
        }
        about = {"look": number, "at": round(self.step / one, 4), "steps": steps}
        return np.stack([loss for _, loss, _ in branched(self, branches, about)])

    def decided(self, number: int, place: float, factor: str, groups: dict[str, Effect], bar: float) -> Finding:
        """In which groups a factor leaves play.

        In all, where it does clear harm to all together, but for groups that it clearly helps; at a lower bar, in
        those for which their own samples say the same; and in one alone that it clearly harms.
        """
        seen = dict(groups)
        before = [finding for finding in self.findings if finding.factor == factor]
        groups = {g: together([*(f.seen[g] for f in before if g in f.seen), e]) for g, e in groups.items()}
        common, own = shrunk(groups)
        sure = max(bar, self.options.sure)
        if common.z > sure:
            left = [g for g, e in own.items() if e.z > -BENEFIT]
        else:
            left = [g for g, e in own.items() if e.z > (bar if common.z > bar else sure)]
        return Finding(number, round(place, 4), factor, common, own, tuple(left), seen)


def asked_at(plays: Plays, *, last: bool) -> tuple[list[str], list[str]]:
    """The factors of a look's design (the basics or, where there are none, all), and those that are asked singly."""
    basic: dict[str, None] = {}
    every: dict[str, None] = {}
    for play in plays.values():
        basic |= dict.fromkeys(play.basic_factors)
        every |= dict.fromkeys(play.factors)
    if any(play.space.basics for play in plays.values()):
        return list(basic)[:MOST], [name for name in every if name not in basic] if last else []
    return [name for name in every if name != ALONE][:MOST], [ALONE] if last and ALONE in every else []


def runs_of(plays: Plays, *, first: bool, last: bool) -> int:
    """How many cool-downs a look has, where nothing has left play before."""
    asked, beside = asked_at(plays, last=last)
    return len(signs(len(asked), FEWEST_SPARE if first else 1)) + len(beside)


def branched(
    trunk: Trunk, branches: Mapping[str, Branch], about: Mapping[str, Any], words: Mapping[str, str] | None = None
) -> list[tuple[str, Losses, Model | None]]:
    """Branches from the trunk as it is, each a unit of the run: its losses, and its model where that is kept."""
    bench, model = trunk.bench, cast(Model, trunk.model)
    missing = [key for key in branches if bench.run.find(key) is None]
    work = trunk.crew.work(model(), [branches[key] for key in missing]) if missing else iter(())
    out = []
    for key, branch in branches.items():
        made: list[State] = []

        def done(key: str = key, made: list[State] = made) -> tuple[dict[str, Any], Losses]:
            found = next(work)
            if not np.isfinite(found.losses).all():
                raise TaskError(f"the model must train on the mixture, but its losses are not finite ({key})")
            value = {"candidate": (words or {}).get(key, "mixture"), **about}
            value |= {"loss": mean(found.losses), "loss_se": se(found.losses)}
            value |= {} if found.metric is None else {"metric": found.metric}
            if found.state is not None:
                made.append(found.state)
                sha = bench.run.keep(key.replace("/", "-"), found.state.tensors, found.state.step)
                value |= {"sha256": sha, "step": found.state.step}
            return value, found.losses

        unit = bench.run.unit(key, done)
        trunk.told("cooled", key=key, **unit.value)
        kept = Model(partial_again(trunk, key, branch, unit.value), *made) if branch.kept else None
        out.append((key, cast(Losses, unit.losses), kept))
    return out


def partial_again(trunk: Trunk, key: str, branch: Branch, value: Mapping[str, Any]) -> Callable[[], State]:
    """The model of a branch, read from its file, or trained again where that is lost."""
    bench, model = trunk.bench, cast(Model, trunk.model)

    def again() -> State:
        tensors = bench.run.kept(key.replace("/", "-"), value["sha256"])
        if tensors is None:
            return bench.once_more(lambda: bench.trainer.train(model(), branch.policy, branch.rates, branch.seed))
        return State({name: tensor.to(bench.trainer.device) for name, tensor in tensors.items()}, value["step"])

    return again


def words_of(finding: Finding) -> str:
    """A finding in a sentence."""
    harm = f"{abs(finding.harm.harm):.3f} ± {finding.harm.se:.3f}"
    side = "costs" if finding.harm.harm > 0 else "brings"
    return f"{in_words(finding.factor)}: {side} {harm} in validation loss"


def same_play(plays: Plays) -> bool:
    """Whether all groups have the same in play."""
    return len({play.out for play in plays.values()}) == 1


def common_play(plays: Plays) -> Play:
    """What is in play in most groups."""
    outs = [play.out for play in plays.values()]
    kept = {factor for out in outs for factor in out if sum(factor in other for other in outs) * 2 > len(outs)}
    return replace(next(iter(plays.values())), out=frozenset(kept))
