"""Forests from one trunk: looks are judged group by group, and the last part of the training learns the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from augtree.errors import TaskError
from augtree.forests.algorithm2 import Progress, WeightedTraining
from augtree.forests.legs import Legs
from augtree.forests.options import Weighting
from augtree.policies import Forest, Tree
from augtree.search.branches import Losses, crew
from augtree.search.finish import Cooled, Finish
from augtree.search.play import Play, Plays
from augtree.search.rounds import about, budget_of, plan_for, steps_of, told_at_the_end, told_of, usable, warnings
from augtree.search.scorers.base import Bench, Model, mean, se
from augtree.search.scorers.cooldown import Cooldown, Plan
from augtree.search.trunk import Finding, Trunk, common_play, same_play
from augtree.training.schedules import cool_down
from augtree.training.trainer import State
from augtree.transforms import Space

TAIL = 0.2
"""The last part of the trunk, in trainings, in which the weights are learned; and then in the cool-down."""
FOREST, ONE_FOR_ALL = "forest", "one policy for all"


class Ended(NamedTuple):
    """What a forest's search ends with."""

    forest: Forest
    state: State
    progress: Progress
    plays: Plays
    findings: list[Finding]
    cooled: Mapping[str, tuple[float, float]]
    members: list[str]


@dataclass
class SharedTrunk:
    """One trunk for all groups."""

    bench: Bench
    options: Cooldown
    weighting: Weighting
    workers: int
    watch: Callable[..., None]
    notes: list[str]

    def __post_init__(self) -> None:
        self.trainer, self.run, self.seed = self.bench.trainer, self.bench.run, self.bench.seed

    def search(self, space: Space, limits: tuple[float, float]) -> Ended:
        """Trunk, looks, weights, cool-downs, average."""
        space, more = usable(space, self.trainer)
        play = Play(space)
        budget = budget_of(self.bench, play.drawn_alike(), *limits)
        groups = dict.fromkeys(self.trainer.data.group_names, play)
        plan = plan_for(self.options, budget, self.trainer, groups)
        self.notes += [*more, *warnings(self.trainer), *told_of(plan)]
        said = {"about": about(self.trainer), "play": play, "notes": list(self.notes)}
        steps = steps_of(plan, self.options, self.trainer, groups)
        self.watch("plan", search=str(budget), plan=plan, steps=steps, **said)
        one, tail = self.trainer.total_steps, self.tail(plan)
        before = Plan(max(0.0, plan.trunk - tail / self.trainer.total_steps), plan.looks, plan.cool, plan.last)
        with crew(self.trainer, self.workers) as hands:
            trunk = Trunk(self.bench, hands, self.options, before, groups, self.watch)
            start = trunk.grow()
            forest = self.forest_of(trunk, {g: p.mixture() for g, p in trunk.plays.items()})
            down = cool_down(max(1, round(plan.cool * one)))
            training = WeightedTraining(
                self.trainer, forest, self.weighting, self.seed, start(),
                [self.trainer.task.rate * share for share in [1.0] * tail + down],
            )  # fmt: skip
            first = tail // self.weighting.alpha
            parts = [range(first), range(first, training.rounds)]
            legs = Legs(training, self.run, self.watch, parts, held=0)
            progress = legs.finished()
            end = legs.progress_after(0).theta
            # What follows starts where the weights' last part of the trunk ended.
            trunk.model, trunk.step = Model(lambda: legs.progress_after(0).theta, end), end.step
            return self.ended(trunk, progress, forest)

    def tail(self, plan: Plan) -> int:
        """The steps of the trunk's last part: whole rounds of Algorithm 2, and one at least."""
        alpha = self.weighting.alpha
        return alpha * max(1, round(min(TAIL, plan.trunk / 2) * self.trainer.total_steps / alpha))

    def forest_of(self, trunk: Trunk, trees: Mapping[str, Tree]) -> Forest:
        """The groups' trees, by their proportions."""
        return Forest({group: (tree, trunk.shares[group]) for group, tree in trees.items()})

    def ended(self, trunk: Trunk, progress: Progress, forest: Forest) -> Ended:
        """The forest's cool-down against that of one policy for all; their average, where it is better."""
        finish = Finish(trunk)
        own = self.judged(f"cool/{FOREST}", progress.theta, trunk)
        finish.done[FOREST] = Cooled(FOREST, forest, own, Model(lambda: progress.theta, progress.theta))
        shared = common_play(trunk.plays)
        other = self.forest_of(trunk, dict.fromkeys(trunk.plays, shared.mixture()))
        finish.cool({ONE_FOR_ALL: other})
        all_ = finish.done[ONE_FOR_ALL]
        gain = all_.losses - own
        plays = trunk.plays
        if not same_play(trunk.plays):
            words = f"by {mean(gain):.4f} ± {se(gain):.4f} in validation loss"
            if mean(gain) < -self.options.sure * se(gain):
                plays, forest = dict.fromkeys(trunk.plays, shared), other
                self.notes.append(
                    f"One policy for all groups was better than the forest {words}: all groups have it."
                )
            else:
                side = "better" if mean(gain) > 0 else "worse, within noise,"
                self.notes.append(f"The forest is {side} than one policy for all groups {words}.")
        state, members = finish.average(forest)
        self.notes += told_at_the_end(self.trainer, self.measures("finished", lambda: state))
        figures = {name: self.figures(c) for name, c in finish.done.items()}
        return Ended(forest, state, progress, plays, trunk.findings, figures, members)

    def judged(self, key: str, state: State, trunk: Trunk) -> Losses:
        """The validation losses of a model, kept."""
        work = lambda: self.trainer.calibrated_losses(state, trunk.rows)  # noqa: E731
        unit = self.bench.losses(key, {"candidate": FOREST}, work, keep=True)
        if unit.losses is None:
            raise TaskError(f"the weighted training must give finite losses, but {unit.value['failed']}")
        found: Losses = unit.losses
        return found

    def figures(self, cooled: Cooled) -> tuple[float, float]:
        """Validation loss and metric of a cool-down."""
        return mean(cooled.losses), self.measures(cooled.name, cooled.model)[self.trainer.task.metric]

    def measures(self, name: str, model: Callable[[], State]) -> dict[str, float]:
        """Every metric of a model on the validation data, kept."""
        rows = self.trainer.data.indices("val")
        return self.run.unit(f"measures/{name}", lambda: (self.trainer.measures(model(), rows), None)).value
