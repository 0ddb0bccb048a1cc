"""Forests from one trunk: looks are judged group by group, and the last part of the training learns the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

from augtree.errors import TaskError
from augtree.forests.algorithm2 import WeightedState, WeightedTraining
from augtree.forests.checkpointed import CheckpointedTraining
from augtree.forests.options import Weighting
from augtree.policies import Forest, Tree
from augtree.runs.checkpoints import LazyState
from augtree.runs.events import Working
from augtree.search.branches import Losses, branch_runner
from augtree.search.cooldown_search import closing_notes, prepare_search
from augtree.search.cooldowns import CooledModel, FinalCooldowns
from augtree.search.options import SearchOptions
from augtree.search.play import Plays
from augtree.search.scorers.base import ScoringContext, mean, se
from augtree.search.scorers.cooldown import Cooldown, Plan
from augtree.search.trunk import Trunk, common_play
from augtree.search.trunk_events import Finding
from augtree.training.schedules import cooldown_rates
from augtree.training.state import State
from augtree.transforms import Space

WEIGHTED_LENGTH = 0.2
"""The length of the trunk's last part, in trainings; the weights are learned in it and in the cool-down after it."""
FOREST, ONE_FOR_ALL = "forest", "one policy for all"


class ForestSearch(NamedTuple):
    """The outcome of a forest's search."""

    forest: Forest
    state: State
    weighted: WeightedState
    plays: Plays
    findings: list[Finding]
    cooled: Mapping[str, tuple[float, float]]
    members: list[str]
    notes: list[str]


@dataclass
class SharedTrunk:
    """One trunk for all groups."""

    context: ScoringContext
    options: SearchOptions
    weighting: Weighting

    def __post_init__(self) -> None:
        self.trainer, self.run, self.seed = self.context.trainer, self.context.run, self.context.seed
        self.scorer = cast(Cooldown, self.options.scorer)
        self.notes = list(self.run.notes)

    def search(self, space: Space) -> ForestSearch:
        """Trunk, looks, weights, cool-downs, average."""
        groups = self.trainer.data.group_names
        play, plan, notes = prepare_search(self.context, space, self.scorer, self.options.limits, groups)
        self.notes += notes
        training_steps, weighted_steps = self.trainer.total_steps, self.weighted_steps(plan)
        before_weights = replace(plan, trunk=max(0.0, plan.trunk - weighted_steps / training_steps))
        watch, task = self.context.watch, self.trainer.task
        with branch_runner(self.trainer, self.options.workers) as runner:
            trunk = Trunk(self.context, runner, self.scorer, before_weights, dict.fromkeys(groups, play), watch)
            start = trunk.grow()
            forest = forest_of(trunk, {group: play.mixture() for group, play in trunk.plays.items()})
            shares = [1.0] * weighted_steps + cooldown_rates(max(1, round(plan.cool * training_steps)))
            rates = [task.rate * share for share in shares]
            training = WeightedTraining(self.trainer, forest, self.weighting, self.seed, start(), rates)
            first = weighted_steps // self.weighting.alpha
            parts = [range(first), range(first, training.rounds)]
            checkpointed = CheckpointedTraining(training, self.run, watch, parts, kept=0)
            watch(Working("the last part of the trunk, in which the weights are learned"))
            weighted = checkpointed.finish()
            end = checkpointed.state_after(0).theta
            # The cool-downs start where the weights' part of the trunk ended.
            trunk.model, trunk.step = LazyState(lambda: checkpointed.state_after(0).theta, end), end.step
            return self.compare_with_common(trunk, weighted, forest)

    def weighted_steps(self, plan: Plan) -> int:
        """The steps of the trunk's last part: whole rounds of Algorithm 2, and one at least."""
        alpha = self.weighting.alpha
        return alpha * max(1, round(min(WEIGHTED_LENGTH, plan.trunk / 2) * self.trainer.total_steps / alpha))

    def compare_with_common(self, trunk: Trunk, weighted: WeightedState, forest: Forest) -> ForestSearch:
        """The forest's cool-down against one of the same policy for all groups; their average where better."""
        cooldowns = FinalCooldowns(trunk)
        forest_losses = self.losses(f"cool/{FOREST}", weighted.theta, trunk)
        model = LazyState(lambda: weighted.theta, weighted.theta)
        cooldowns.done[FOREST] = CooledModel(FOREST, forest, forest_losses, model)
        common = common_play(trunk.plays)
        common_forest = forest_of(trunk, dict.fromkeys(trunk.plays, common.mixture()))
        cooldowns.run({ONE_FOR_ALL: common_forest})
        plays = trunk.plays
        if len({play.out for play in plays.values()}) > 1:  # the groups differ
            gain = cooldowns.done[ONE_FOR_ALL].losses - forest_losses
            by = f"by {mean(gain):.4f} ± {se(gain):.4f} in validation loss"
            if mean(gain) < -self.scorer.sure * se(gain):
                plays, forest = dict.fromkeys(plays, common), common_forest
                self.notes.append(f"One policy for all groups was better than the forest {by}: all groups have it.")
            else:
                side = "better" if mean(gain) > 0 else "worse, within noise,"
                self.notes.append(f"The forest is {side} than one policy for all groups {by}.")
        state, members = cooldowns.average(forest)
        self.notes += closing_notes(self.trainer, self.measures("finished", lambda: state))
        figures = {name: self.figures(cooled) for name, cooled in cooldowns.done.items()}
        return ForestSearch(forest, state, weighted, plays, trunk.findings, figures, members, self.notes)

    def losses(self, key: str, state: State, trunk: Trunk) -> Losses:
        """The validation losses of a model, as a unit of the run."""
        work = partial(self.trainer.calibrated_losses, state, trunk.rows)
        unit = self.context.losses(key, {"candidate": FOREST}, work, keep=True)
        if unit.losses is None:
            raise TaskError(f"the weighted training must give finite losses, but {unit.value['failed']}")
        return unit.losses

    def figures(self, cooled: CooledModel) -> tuple[float, float]:
        """Validation loss and metric of a cool-down."""
        return mean(cooled.losses), self.measures(cooled.name, cooled.model)[self.trainer.task.metric]

    def measures(self, name: str, model: Callable[[], State]) -> dict[str, float]:
        """Every metric of a model on the validation data, as a unit of the run."""
        rows = self.trainer.data.indices("val")
        return self.run.unit(f"measures/{name}", lambda: (self.trainer.measures(model(), rows), None)).value


def forest_of(trunk: Trunk, trees: Mapping[str, Tree]) -> Forest:
    """The groups' trees, weighted by the groups' proportions."""
    return Forest({group: (tree, trunk.shares[group]) for group, tree in trees.items()})
