"""The trunk: one model that trains at a constant rate on the mixture of all that is in play, with tests and looks.

A test asks which flips and turns the data bear, by predictions of one short cool-down; these come into play then.

A look is a set of short cool-downs from the trunk, planned as a factorial design: each leaves half of the factors
out, so that every cool-down is evidence on every factor. A factor that clearly does harm leaves play, in all groups
or in one; then the trunk trains on with the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from augtree.errors import TaskError
from augtree.policies import Forest
from augtree.policies.codec import to_json
from augtree.runs.checkpoints import LazyState
from augtree.runs.events import Watch, Working, silent
from augtree.search.branches import Branch, BranchRunner, Losses
from augtree.search.factorial import Effect, contrasts, effect, most_factors, noise_of, shrunk, signs, together
from augtree.search.play import UNGROUPED, Play, Plays
from augtree.search.prediction_test import PredictionTest
from augtree.search.scorers.base import ScoringContext, mean, se
from augtree.search.scorers.cooldown import Cooldown, Looks, Plan
from augtree.search.trunk_events import CooledDown, FactorTested, Finding, TrunkTrained, shortened
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.schedules import cooldown_rates, rates
from augtree.training.state import State, seed_of
from augtree.transforms.base import Policy
from augtree.transforms.traits import EVERY_SAMPLE

SEGMENT = 0.5
"""No part of the trunk is longer than this many trainings: a stopped search loses at most one."""
PAIR_NOISE = np.sqrt(2.0)
"""The noise of a difference of two branches, in units of one branch's; a contrast of n has 2 / sqrt(n)."""
NO_FACTORS = np.full((1, 0), -1, np.int64)
"""The design without factors: the mixture as it is."""
MIN_SPARE_CONTRASTS = 3
"""The fewest contrasts without a factor, in all looks together; they measure how much branches differ by chance."""
MAX_FACTORS = most_factors() - 1
"""The most factors of a design, with one contrast to spare; further factors are not tested."""
BENEFIT = 2.0
"""A group keeps a factor that leaves all others, where it helps this group by this many standard errors."""
AGREEMENT = 1.0
"""Before the last look a factor leaves only groups whose own samples show harm of this many standard errors."""


@dataclass
class Trunk:
    """A trunk in training; `plays` has what is in play in each group."""

    context: ScoringContext
    runner: BranchRunner
    options: Cooldown
    plan: Plan
    plays: Plays
    watch: Watch = silent
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trainer, self.seed = self.context.trainer, self.context.seed
        data = self.trainer.data
        self.grouped = set(self.plays) != {UNGROUPED}
        self.rows: Rows = np.sort(data.indices("val"))
        names = [data.group_names[group] for group in data.groups[self.rows]]
        self.group_of_rows = np.array(names if self.grouped else [UNGROUPED] * len(names), dtype=object)
        train = data.groups[data.indices("train")]
        counts = {name: int((train == number).sum()) for number, name in enumerate(data.group_names)}
        total = sum(counts.values())
        self.shares = {g: counts[g] / total for g in self.plays} if self.grouped else {UNGROUPED: 1.0}
        self.step, self.part, self.looks_done = 0, 0, 0
        self.predicted = symmetries_to_test(self.options, self.trainer, self.plays)
        self.untested = set(self.predicted)
        self.plays = self.without(self.untested)
        self.model: LazyState | None = None
        self.unused: list[Losses] = []

    @property
    def looks(self) -> Looks:
        """The looks that the options ask for."""
        return self.options.looks_in(self.trainer.total_steps, needed=True)

    # ---- train

    def grow(self) -> LazyState:
        """Train the trunk to its end, with all tests and looks."""
        tests = [(at, 0, number) for number, at in enumerate(self.plan.tests)]
        looks = [(at, 1, number) for number, at in enumerate(self.plan.looks)]
        for at, is_look, number in sorted(tests + looks):
            self.train_to(at)
            if is_look:
                self.look(number, at, last=number == len(looks) - 1)
                self.looks_done += 1
            elif self.untested:
                self.untested -= PredictionTest(self, number, at).run()
        self.train_to(self.plan.trunk)
        return cast(LazyState, self.model)

    def train_to(self, at: float) -> None:
        """Train until the trunk has this length, in trainings."""
        self.context.run.record_fact("mixtures", {group: to_json(p.mixture()) for group, p in self.plays.items()})
        training_steps = self.trainer.total_steps
        target = max(1, round(at * training_steps))
        while self.step < target:
            end = min(target, self.step + max(1, round(SEGMENT * training_steps)))
            self.segment(end)

    def segment(self, end: int) -> None:
        """Train one part of the trunk."""
        before, first, policy = self.model, self.step, self.mixture(self.training_plays)

        def work() -> State:
            start = self.trainer.fresh(self.seed) if before is None else before()
            state = self.trainer.train(
                start, policy, self.rates(first, end), seed_of(self.seed, "trunk"),
                tick=lambda done, loss: self.watch(TrunkTrained(first + done, loss)),
            )  # fmt: skip
            if before is not None:
                before.forget()
            return state

        self.part += 1
        self.model = self.context.training(f"trunk/{self.part}", work)
        self.context.checkpoints.drop(f"trunk/{self.part - 2}")
        self.step = end

    @property
    def training_plays(self) -> Plays:
        """What the trunk trains on: all that is in play, with half of the samples unaugmented until the last look.

        Before the looks, the mixture still holds what does harm, and may keep a model from learning anything.
        """
        before_last_look = self.looks_done < len(self.plan.looks)
        return self.without([EVERY_SAMPLE]) if before_last_look else self.plays

    def rates(self, first: int, end: int) -> list[float]:
        """The trunk's learning rates: the warm-up of a training, then constant."""
        task = self.trainer.task
        rise = rates("constant-linear", self.trainer.total_steps, warmup=task.warmup, decay=0)
        return [task.rate * (rise[i] if i < len(rise) else 1.0) for i in range(first, end)]

    def mixture(self, plays: Plays) -> Policy:
        """The mixture of each group's play; all mixtures share their draws."""
        trees = {group: play.mixture_with_shared_draws() for group, play in plays.items()}
        return Forest({g: (tree, self.shares[g]) for g, tree in trees.items()}) if self.grouped else trees[UNGROUPED]

    # ---- test

    def settle(self, finding: Finding) -> None:
        """Record what a test found: what passed it comes into play, in the groups that passed."""
        looked = [each for each in self.findings if each.factor == finding.factor and not each.predicted]
        self.add(finding)
        # What a look has removed cannot return.
        out = {*finding.removed_in, *(group for each in looked for group in each.removed_in)}
        self.plays = {
            group: play.without([finding.factor]) if group in out else play.with_factors([finding.factor])
            for group, play in self.plays.items()
        }

    # ---- look

    def look(self, number: int, at: float, *, last: bool) -> None:
        """Test factors for harm; harmful ones leave play.

        A factorial design tests the basics. The last look may also leave out each factor of the styles once.
        """
        styles = last and self.looks.styles
        designed, single = tested_factors(self.plays, self.predicted, styles=styles)
        earlier = len(self.findings)
        if not designed and not single:
            return
        spare = max(1, MIN_SPARE_CONTRASTS - sum(len(each) for each in self.unused))
        design = signs(len(designed), spare) if designed else NO_FACTORS
        left_out = [[name for name, sign in zip(designed, row, strict=False) if sign > 0] for row in design]
        losses = self.losses(number, [self.without(out) for out in [*left_out, *([name] for name in single)]])
        effects = contrasts(losses[: len(design)], design)
        noise = 2 / np.sqrt(len(design))
        self.unused.append(effects[len(designed) :] / noise)
        whole = losses[0]  # the design's first run leaves nothing out
        effects = np.concatenate([effects[: len(designed)], whole - losses[len(design) :]])
        noises = [noise] * len(designed) + [PAIR_NOISE] * len(single)
        bars = [self.bar(last=last)] * len(designed) + [self.options.slow] * len(single)
        for i, factor in enumerate([*designed, *single]):
            groups = [group for group, play in self.plays.items() if factor in play.factors]
            seen = {group: self.effect_in(effects[i], group, noises[i]) for group in groups}
            self.add(self.judge(number, at, factor, seen, bars[i]))
        self.plays = {
            group: play.without(f.factor for f in self.findings[earlier:] if group in f.removed_in)
            for group, play in self.plays.items()
        }

    def bar(self, *, last: bool) -> float:
        """The standard errors of harm at which a factor of the design leaves play."""
        return self.options.sure if last else self.options.clear

    def add(self, finding: Finding) -> None:
        """Record and report a finding."""
        self.findings.append(finding)
        self.context.run.record_fact("findings", [each.row() for each in self.findings])
        self.watch(FactorTested(finding, self.grouped))

    def effect_in(self, effects: Losses, group: str, width: float) -> Effect:
        """An effect in one group; the unused contrasts measure the noise of a branch, `width` scales it."""
        rows = self.group_of_rows == group
        noise = noise_of(np.concatenate([each[:, rows] for each in self.unused]))
        return effect(effects[rows], noise * width)

    def without(self, factors: Iterable[str]) -> Plays:
        """All groups' play without some factors."""
        return {group: play.without(factors) for group, play in self.plays.items()}

    def losses(self, number: int, plays: Sequence[Plays]) -> Losses:
        """The validation losses after a cool-down on each mixture: a row each."""
        training_steps = self.trainer.total_steps
        steps = self.looks.steps
        down = tuple(self.trainer.task.rate * share for share in cooldown_rates(steps))
        seed = seed_of(self.seed, "look", number)
        branches = {
            f"look/{number}/{i}": Branch(self.mixture(play), down, seed, self.rows) for i, play in enumerate(plays)
        }
        about = {"look": number, "at": round(self.step / training_steps, 4), "steps": steps}
        without = {key: self.left_out(play) for key, play in zip(branches, plays, strict=True)}
        return np.stack([losses for losses, _ in self.run_branches(branches, about, without=without)])

    def left_out(self, plays: Plays) -> list[str]:
        """What is in play here, and not there."""
        return sorted({factor for group, play in plays.items() for factor in play.out - self.plays[group].out})

    def run_branches(
        self,
        branches: Mapping[str, Branch],
        about: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
        without: Mapping[str, Sequence[str]] | None = None,
    ) -> list[tuple[Losses, LazyState | None]]:
        """Cool-downs from the trunk as it is, each a unit of the run: its losses and, where kept, its model."""
        context, start = self.context, cast(LazyState, self.model)
        missing = [key for key in branches if context.run.find(key) is None]
        results = self.runner.run(start(), {key: branches[key] for key in missing}) if missing else iter(())
        cooled = []
        for key, branch in branches.items():
            states: list[State] = []
            name = (names or {}).get(key, "mixture")

            def work(key: str = key, name: str = name, states: list[State] = states) -> tuple[dict[str, Any], Losses]:
                self.watch(Working(self.in_words(key, name, len(branches))))
                result = next(results)
                if not np.isfinite(result.losses).all():
                    raise TaskError(f"the model must train on the mixture, but its losses are not finite ({key})")
                value = {"candidate": name, **about, "loss": mean(result.losses), "loss_se": se(result.losses)}
                value |= {} if result.metric is None else {"metric": result.metric}
                value |= {} if without is None else {"without": list(without[key])}
                if result.state is not None:
                    states.append(result.state)
                    value |= context.checkpoints.save(key, result.state)
                return value, result.losses

            unit = context.run.unit(key, work)
            value = unit.value
            context.note_saturation(unit.losses)
            self.watch(
                CooledDown(value["candidate"], value["loss"], value["steps"], about.get("look"), about.get("test"))
            )
            train = partial(self.train_branch, start, branch)
            model = context.checkpoints.model(key, value, train, *states) if branch.keep_model else None
            if model is not None and context.run.folder is not None:
                model.forget()  # it is in its file; many cool-downs would fill the memory
            cooled.append((cast(Losses, unit.losses), model))
        return cooled

    def in_words(self, key: str, name: str, count: int) -> str:
        """A cool-down that is under way, for the progress bar."""
        phase, *numbers = key.split("/")
        if phase == "look":
            return f"look {self.looks_done + 1}: test training {int(numbers[-1]) + 1} of {count}"
        return "the test of flips and turns" if phase == "test" else f"cool-down on {shortened(name)}"

    def train_branch(self, start: LazyState, branch: Branch) -> State:
        """Train a branch again."""
        return self.trainer.train(start(), branch.policy, branch.rates, branch.seed)

    def judge(self, number: int, at: float, factor: str, seen: dict[str, Effect], bar: float) -> Finding:
        """In which groups a factor leaves play.

        In all, where it clearly harms all together, except for groups that it clearly helps and, before the last
        look, groups whose own samples do not agree: what has left cannot come back. Else in those that it clearly
        harms.
        """
        before = [finding for finding in self.findings if finding.factor == factor]
        groups = {g: together([*(f.seen[g] for f in before if g in f.seen), e]) for g, e in seen.items()}
        common, own = shrunk(groups)
        sure = max(bar, self.options.sure)
        if common.z > sure:
            last = number == len(self.plan.looks) - 1
            removed_in = [g for g, e in own.items() if e.z > -BENEFIT and (last or groups[g].z > AGREEMENT)]
        else:
            removed_in = [g for g, e in own.items() if e.z > sure]
        return Finding(number, round(at, 4), factor, common, own, tuple(removed_in), seen)


def symmetries_to_test(options: Cooldown, trainer: Trainer, plays: Plays) -> set[str]:
    """The flips and turns that predictions test; where these have no labels to compare with, none."""
    if not options.tests or trainer.task.label_free:
        return set()
    return {name for play in plays.values() for name in play.symmetries}


def looks_of(options: Cooldown, trainer: Trainer, plays: Plays) -> Looks:
    """The looks of a search, by default where there is something that only looks judge."""
    symmetries = any(play.symmetries for play in plays.values())
    needed = any(play.needs_looks for play in plays.values())
    needed = needed or (symmetries and not symmetries_to_test(options, trainer, plays))
    return options.looks_in(trainer.total_steps, needed=needed)


def tested_factors(plays: Plays, predicted: Collection[str], *, styles: bool) -> tuple[list[str], list[str]]:
    """The factors of a look's design (the basics or, without any, all), and those that are left out singly.

    Flips and turns that predictions judge are not among them.
    """
    basic: dict[str, None] = {}
    every: dict[str, None] = {}
    for play in plays.values():
        basic |= dict.fromkeys(play.basic_factors)
        every |= dict.fromkeys(play.factors)
    if any(play.space.basics for play in plays.values()):
        asked = [name for name in basic if name not in predicted]
        return asked[:MAX_FACTORS], [name for name in every if name not in basic] if styles else []
    designed = [name for name in every if name != EVERY_SAMPLE][:MAX_FACTORS]
    return designed, [EVERY_SAMPLE] if styles and EVERY_SAMPLE in every else []


def cooldowns_of_look(plays: Plays, predicted: Collection[str], *, first: bool, styles: bool) -> int:
    """The number of cool-downs in a look, if nothing has left play before."""
    designed, single = tested_factors(plays, predicted, styles=styles)
    if not designed:
        return len(single) + bool(single)
    return len(signs(len(designed), MIN_SPARE_CONTRASTS if first else 1)) + len(single)


def common_play(plays: Plays) -> Play:
    """What is in play in most groups."""
    outs = [play.out for play in plays.values()]
    kept = {factor for out in outs for factor in out if sum(factor in other for other in outs) * 2 > len(outs)}
    return replace(next(iter(plays.values())), out=frozenset(kept))
