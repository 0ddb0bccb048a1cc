"""Forests from one trunk: looks are judged group by group, and the last part of the training learns the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

from augtree.errors import TaskError
from augtree.forests.algorithm2 import WeightedState, WeightedTraining
from augtree.forests.checkpointed import CheckpointedTraining
from augtree.forests.hypergradient import most_passes
from augtree.forests.options import Weighting
from augtree.policies import Forest, Tree
from augtree.runs.checkpoints import LazyState
from augtree.runs.events import Note, Working
from augtree.search.branches import BranchRunner, Losses
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
NOTED_COST = 0.1
"""Where learning the weights adds more than this share to the cost, a note says so."""
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
        self.note_cost(plan, weighted_steps)
        before_weights = replace(plan, trunk=max(0.0, plan.trunk - weighted_steps / training_steps))
        watch, task = self.context.watch, self.trainer.task
        with BranchRunner(self.trainer, self.options.used_executor) as runner:
            trunk = Trunk(self.context, runner, self.scorer, before_weights, dict.fromkeys(groups, play), watch)
            start = trunk.grow()
            forest = forest_of(trunk, {group: play.mixture() for group, play in trunk.plays.items()})
            # Where groups differ, two shorter cool-downs take the place of one.
            trunk.plan = replace(plan, cool=plan.cool / 2 if groups_differ(trunk) else plan.cool)
            shares = [1.0] * weighted_steps + cooldown_rates(max(1, round(trunk.plan.cool * training_steps)))
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

    def note_cost(self, plan: Plan, weighted_steps: int) -> None:
        """Note beforehand what learning the weights adds to a budget of short trainings."""
        training_steps = self.trainer.total_steps
        rounds = math.ceil((weighted_steps + plan.cool * training_steps) / self.weighting.alpha)
        updates = (rounds - 1) * (self.weighting.eta > 0)
        passes = most_passes(self.trainer, self.weighting)
        more = max(0.0, weighted_steps / training_steps - plan.trunk)
        more += updates * passes / (training_steps * self.trainer.passes_per_step)
        if more > NOTED_COST * (plan.trunk + plan.cool):
            note = (
                f"The forest will cost about {more:.1f} trainings more than its budget: the weights are learned in"
                f" rounds of {self.weighting.alpha} steps; with longer trainings they cost less (--epochs, --steps)."
            )
            self.notes.append(note)
            self.context.watch(Note(note))

    def compare_with_common(self, trunk: Trunk, weighted: WeightedState, forest: Forest) -> ForestSearch:
        """Where groups differ, cool down with one policy for all as well; average the two where that is better."""
        cooldowns = FinalCooldowns(trunk)
        forest_losses = self.losses(f"cool/{FOREST}", weighted.theta, trunk)
        model = LazyState(lambda: weighted.theta, weighted.theta)
        cooldowns.done[FOREST] = CooledModel(FOREST, forest, forest_losses, model)
        common = common_play(trunk.plays)
        common_forest = forest_of(trunk, dict.fromkeys(trunk.plays, common.mixture()))
        plays = trunk.plays
        if groups_differ(trunk):
            cooldowns.run({ONE_FOR_ALL: common_forest})
            gain = cooldowns.done[ONE_FOR_ALL].losses - forest_losses
            by = f"by {abs(mean(gain)):.4f} ± {se(gain):.4f} in validation loss"
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


def groups_differ(trunk: Trunk) -> bool:
    """Whether something has left play in some groups and not in others."""
    return len({play.out for play in trunk.plays.values()}) > 1


def forest_of(trunk: Trunk, trees: Mapping[str, Tree]) -> Forest:
    """The groups' trees, weighted by the groups' proportions."""
    return Forest({group: (tree, trunk.shares[group]) for group, tree in trees.items()})
