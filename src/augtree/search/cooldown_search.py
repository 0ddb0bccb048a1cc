"""A whole search by cool-downs: trunk and looks, the last cool-downs, the tree, the finished model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import cast

from torch import nn

from augtree.data import Dataset
from augtree.errors import RunError
from augtree.policies import Tree
from augtree.policies.codec import to_json
from augtree.runs import faults
from augtree.runs.events import Finished, Planned
from augtree.runs.failures import attempt
from augtree.runs.store import Run
from augtree.search.branches import BranchRunner
from augtree.search.budget import (
    budget_for,
    describe_training,
    least_budget,
    plan_for,
    planned_steps,
)
from augtree.search.cooldowns import MIN_VAL_TO_CHOOSE, FinalCooldowns
from augtree.search.grow import Growth, NodeBuilt, grow
from augtree.search.importance import importances
from augtree.search.options import Limits, SearchOptions
from augtree.search.play import UNGROUPED, Play, Plays
from augtree.search.result import Cost, TreeResult, cost_of, history, passes_in
from augtree.search.scorers.base import ScoringContext, mean
from augtree.search.scorers.cooldown import Cooldown, Plan
from augtree.search.trunk import Trunk, looks_of, symmetries_to_test
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
from augtree.training.model_files import model_files
from augtree.transforms import Space
from augtree.transforms.base import Policy, Transform
from augtree.transforms.failures import within

TRIAL_SAMPLES = 64
"""The number of samples that each transform is tried on before the trunk begins."""
CALIBRATED = "; validation losses are calibrated (those at the model's best temperature)"
"""What a reader should know of the losses that are shown."""
TRIAL_SECONDS = 600.0
"""The longest that this may take for one transform; a function in `wrap` has its own limit for each sample."""


def search_by_cooldowns(context: ScoringContext, space: Space, options: SearchOptions) -> TreeResult:
    """Run the whole search, with one play for all groups."""
    run, trainer, watch = context.run, context.trainer, context.watch
    scorer = cast(Cooldown, options.scorer)
    play, plan, notes = prepare_search(context, space, scorer, options.limits, (UNGROUPED,))
    with BranchRunner(trainer, options.used_executor) as runner:
        trunk = Trunk(context, runner, scorer, plan, {UNGROUPED: play}, watch)
        trunk.grow()
        cooldowns = FinalCooldowns(trunk)

        def built(growth: Growth, node: int) -> None:
            faults.point("node.built")
            run.record_fact("tree", to_json(growth.tree))
            watch(NodeBuilt(node, growth.built[-1][1], growth))

        growth = grow(cooldowns, options.depth, context.seed, built)
        play = trunk.plays[UNGROUPED]
        state, members = cooldowns.average(play.mixture())
    measures = run.unit("measures", lambda: (trainer.measures(state, trunk.rows), None)).value
    mean_, std = trainer.mean_and_std()
    result = TreeResult(
        tree=growth.tree,
        mixture=play.mixture(),
        single=best_single(cooldowns, play),
        model=trainer.module(state),
        state=state,
        members=tuple(members),
        importances=importances(growth, cooldowns.gains, context.seed),
        findings=[finding.row() for finding in trunk.findings],
        cooled={c.name: (mean(c.losses), metric_of(run, c.name)) for c in cooldowns.done.values()},
        measures=measures,
        history=history(run),
        cost=cost_with_model(run, trainer),
        free={},
        notes=[*run.notes, *notes, *closing_notes(trainer, measures)],
        metric=trainer.task.metric,
        deterministic=trainer.device.type == "cpu" or trainer.task.deterministic,
        mean=mean_,
        std=std,
        out=run.folder,
    )
    write_result(run, trainer, result)
    run.record_fact("status", "done")
    watch(Finished(result.verdict(), {**result.measures, "cost": result.cost.training_equivalents}, result.tree))
    return result


def prepare_search(
    context: ScoringContext, space: Space, scorer: Cooldown, limits: Limits, groups: Iterable[str]
) -> tuple[Play, Plan, list[str]]:
    """The play at the beginning, the plan, and notes that the user should read before time is spent."""
    trainer = context.trainer
    space, failures = without_failing_transforms(space, trainer, context.run)
    play = Play(space)
    plays: Plays = dict.fromkeys(groups, play)
    budget = budget_for(context, play.mixture_with_shared_draws(), limits)
    plan = plan_for(scorer, budget, trainer, plays)
    notes = [*failures, *few_samples(trainer)]
    notes += notes_without_tests(plan, scorer, trainer, plays)
    about = f"Model: {describe_training(trainer)}{'' if trainer.task.label_free else CALIBRATED}."
    begins = play.without(symmetries_to_test(scorer, trainer, plays))
    lines = (plan_in_words(plan), about, f"Budget: {budget}; {plan}.", f"In play: {begins}.")
    steps = planned_steps(plan, scorer, trainer, plays)
    context.run.record_fact("plan", {**asdict(plan), "training_steps": trainer.total_steps, "steps": steps})
    context.watch(Planned(notes=[*context.run.notes, *notes], lines=lines, steps=steps))
    return play, plan, notes


def without_preprocess(task: Task, space: Space, data: Dataset) -> Task:
    """The task without the data's own flips and crops, where the space searches them."""
    searched = space.basics and task.preprocess == "default" and data.preprocess is not None
    return replace(task, preprocess=None) if searched else task


def without_failing_transforms(space: Space, trainer: Trainer, run: Run | None = None) -> tuple[Space, list[str]]:
    """The space without the transforms that fail on some samples of the data, and a note for each of these.

    A run that has begun to train goes on with the space that it began with.
    """
    tried = (*space.distinct, *space.basics)
    begun: list[dict[str, str]] | None = run.fact("failing") if run and next(run.units(), None) else None
    if begun is None:
        reasons = trial(tried, trainer)
        if run is not None:
            listed = [{"transform": to_json(each), "reason": reason} for each, reason in reasons.items()]
            run.record_fact("failing", listed)
    else:
        reasons = recorded_failures(begun, tried)
    if not reasons:
        return space, []
    candidates, basics, own = ([t for t in part if t not in reasons] for part in (space, space.basics, space.own))
    notes = [f"{transform} failed and is left out: {reason}" for transform, reason in reasons.items()]
    return Space(candidates, basics=basics, own=own if space.combines else None), notes


def recorded_failures(begun: Iterable[Mapping[str, str]], tried: Iterable[Transform]) -> dict[Transform, str]:
    """The transforms that failed when a run began, and why; older versions recorded the repr of a transform."""
    by_text = {text: each for each in tried for text in (repr(each), to_json(each))}
    for entry in begun:
        if entry["transform"] not in by_text:
            raise RunError(f"the run has left out a transform that must be in its space, got {entry['transform']}")
    return {by_text[entry["transform"]]: entry["reason"] for entry in begun}


def trial(transforms: Iterable[Transform], trainer: Trainer) -> dict[Transform, str]:
    """Apply each transform to some training samples: the reasons why some fail."""
    rows, reasons = trainer.rows[:TRIAL_SAMPLES], {}
    for transform in transforms:
        policy = Tree().with_node(1, transform)
        _, reason = attempt(lambda: within(TRIAL_SECONDS, lambda: trainer.augmented(policy, rows, rows, 0)))  # noqa: B023
        if reason:
            reasons[transform] = reason
    return reasons


def metric_of(run: Run, name: str) -> float:
    """The validation metric after a cool-down."""
    return next(float(unit.value["metric"]) for unit in run.units("cool/") if unit.value["candidate"] == name)


def best_single(cooldowns: FinalCooldowns, play: Play) -> Tree:
    """The best of the last cool-downs' policies that is no mixture; the mixture where there was no other."""
    mixture = play.mixture()
    others = [c for c in cooldowns.done.values() if isinstance(c.policy, Tree) and c.policy != mixture]
    best = min(others, key=lambda cooled: mean(cooled.losses), default=None)
    return play.mixture() if best is None else cast(Tree, best.policy)


def cost_with_model(run: Run, trainer: Trainer) -> Cost:
    """The cost, with the part that is in the finished model: the trunk and the last cool-downs."""
    passes = passes_in(run, "trunk/", "cool/", "average/")
    training_passes = trainer.total_steps * trainer.passes_per_step
    return replace(cost_of(run, trainer), model_equivalents=round(passes / training_passes, 3))


def few_samples(trainer: Trainer) -> Iterable[str]:
    """A note where there are few validation samples."""
    validation = len(trainer.data.indices("val"))
    if validation < MIN_VAL_TO_CHOOSE:
        yield f"Only {validation} validation samples: what is tested is uncertain, and policies cannot be told apart."


def plan_in_words(plan: Plan) -> str:
    """What will happen, in a sentence that explains the words of all later lines."""
    tests = "on the way, its predictions tell which flips and turns the data bear, and those come into play"
    looks = "on the way, short test trainings (looks) find out what harms, and that leaves play"
    steps = [words for words, places in ((tests, plan.tests), (looks, plan.looks)) if places]
    return (
        "Plan: one model trains on a mixture of all transforms in play (the trunk);"
        f" {'; '.join(steps) or 'nothing is tested on the way'};"
        " at the end the learning rate falls to zero (cool-down)."
    )


def notes_without_tests(plan: Plan, scorer: Cooldown, trainer: Trainer, plays: Plays) -> Iterable[str]:
    """Notes that nothing is tested, with the budget that would have room for it."""

    def enough(*, looks: bool) -> str:
        return f"(--budget {least_budget(scorer, trainer, plays, looks=looks):.1f} would have)"

    if not plan.tests and symmetries_to_test(scorer, trainer, plays):
        yield f"The budget has no room for the test of flips and turns {enough(looks=False)}: they are left out."
    if looks_of(scorer, trainer, plays).at and not plan.looks:
        yield f"The budget has no room for looks {enough(looks=True)}: nothing leaves play."
    elif scorer.looks == () and any(play.needs_looks for play in plays.values()):
        yield "There are no looks: what only trainings can judge is not tested, and stays in play."


def closing_notes(trainer: Trainer, measures: Mapping[str, float]) -> Iterable[str]:
    """A note where the model is perfect, so that policies cannot be compared."""
    metric = trainer.task.metric
    perfect = 1.0 if METRICS[metric].higher_is_better else 0.0
    if metric != "loss" and measures.get(metric) == perfect:
        yield f"The validation {metric} is perfect: there is nothing left to tell policies apart by."


def write_result(run: Run, trainer: Trainer, result: TreeResult) -> None:
    """Write the result files."""
    if run.folder is None:
        return
    model, measures = cast(nn.Module, result.model), {"val": dict(result.measures)}
    files = {
        "tree.json": to_json(result.tree).encode(),
        "mixture.json": to_json(cast(Policy, result.mixture)).encode(),
        "single.json": to_json(cast(Policy, result.single)).encode(),
        "tree.svg": result.tree.to_svg().encode(),
        "history.csv": result.history_csv().encode(),
        **model_files(model, trainer.task, trainer.data, result.mean, result.std, metrics=measures),
        "result.json": result.to_json().encode(),
    }
    run.write_all(files)
