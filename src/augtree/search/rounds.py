"""A whole search by `cooldown`: rounds of trunk and looks, the last cool-downs, the tree, the finished model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from torch import nn

from augtree.data import Dataset
from augtree.policies import Tree
from augtree.policies.codec import to_json
from augtree.runs import faults
from augtree.search.branches import crew
from augtree.search.finish import FEW, Finish
from augtree.search.grow import Growth, grow
from augtree.search.play import Play, Plays
from augtree.search.result import Cost, Importance, TreeResult, cost, history
from augtree.search.scorers.base import LONGEST_REASON, Bench, mean
from augtree.search.scorers.cooldown import BUDGET, Cooldown, Plan
from augtree.search.trunk import EVERYBODY, Trunk, runs_of
from augtree.tasks import Task
from augtree.training.metrics import METRICS
from augtree.training.model_files import model_files
from augtree.training.trainer import Trainer, seed_of
from augtree.transforms import Space
from augtree.transforms.base import Policy, Transform
from augtree.transforms.traits import ALONE

TRIED_ON = 64
"""Samples that each transform is tried on before the trunk begins."""
TIMED = 10
"""Steps by which the length of a search is foretold."""
SHORT = 300
"""A training of fewer steps tells little."""
BOOTSTRAPS = 1000


def searched_space(space: Space, data: Dataset, task: Task) -> tuple[Space, Task]:
    """The space, and the task without the preprocessing that comes with the data: flips and crops are searched."""
    if space.basics and task.preprocess == "default" and data.preprocess is not None:
        return space, replace(task, preprocess=None)
    return space, task


def usable(space: Space, trainer: Trainer) -> tuple[Space, list[str]]:
    """The space without what fails on some samples of the data, and a note for each of these."""
    rows = trainer.rows[:TRIED_ON]
    failed: dict[Transform, str] = {}
    for transform in (*space.distinct, *space.basics):
        try:
            trainer.augmented(Tree().with_node(1, transform), rows, rows, 0)
        except (MemoryError, OSError):
            raise  # nothing that the transform has to answer for
        except Exception as error:
            failed[transform] = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
    if not failed:
        return space, []
    kept = [[t for t in part if t not in failed] for part in (space, space.basics, space.own)]
    notes = [f"{transform} failed and is left out: {why}" for transform, why in failed.items()]
    return Space(kept[0], basics=kept[1], own=kept[2] if space.combines else None), notes


@dataclass(frozen=True)
class Budget:
    """What a search may spend, in trainings, and how long one takes here."""

    trainings: float
    seconds_a_training: float

    def __str__(self) -> str:
        about = self.trainings * self.seconds_a_training
        return f"{self.trainings:.2g} trainings, about {duration(about)} here"


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def budget_of(bench: Bench, policy: Any, trainings: float, seconds: float) -> Budget:
    """The budget in trainings, where it is given as a time too; a few steps tell how fast this machine is."""
    trainer = bench.trainer

    def timed() -> tuple[dict[str, Any], None]:
        state = trainer.train(trainer.fresh(0), policy, [0.0] * TIMED, 0)  # whatever is made once
        begin = time.perf_counter()
        trainer.train(state, policy, [0.0] * TIMED, 0)
        trainer.labels.sum().item()  # a GPU works behind
        return {"seconds_a_step": (time.perf_counter() - begin) / TIMED}, None

    one = bench.run.unit("speed", timed).value["seconds_a_step"] * trainer.total_steps
    wanted = (
        trainings if trainings < float("inf") else BUDGET if seconds == float("inf") else seconds / max(one, 1e-9)
    )
    return Budget(wanted, one)


def plan_for(options: Cooldown, budget: Budget, trainer: Trainer, plays: Plays) -> Plan:
    """How the budget is spent; what is paid for judging and for the average is part of what things cost."""
    one, size = trainer.total_steps, trainer.passes_a_step
    judging = len(trainer.data.indices("val")) / (one * size)
    steps = options.look_steps(one) / one
    count = len(options.looks)
    runs = [runs_of(plays, first=i == 0, last=i == count - 1) for i in range(count)]
    looks = [each * (steps + judging) for each in runs]
    last = options.cool + 3 * judging + options.renew * (options.last > 1) / one / 2
    return options.plan(max(0.05 * budget.trainings, budget.trainings - 2 * TIMED / one - judging), looks, last)


def steps_of(plan: Plan, options: Cooldown, trainer: Trainer, plays: Plays) -> int:
    """About how many steps a search takes, all cool-downs together."""
    one, count = trainer.total_steps, len(plan.looks)
    runs = sum(runs_of(plays, first=i == 0, last=i == count - 1) for i in range(count))
    return round((plan.trunk + plan.last * plan.cool) * one) + runs * options.look_steps(one)


def search_by_cooldown(
    bench: Bench,
    space: Space,
    options: Cooldown,
    depth: int,
    limits: tuple[float, float],
    workers: int,
    watch: Callable[..., None],
    notes: list[str],
) -> TreeResult:
    """The search itself, where groups are not told apart."""
    run, trainer = bench.run, bench.trainer
    space, more = usable(space, trainer)
    play = Play(space)
    budget = budget_of(bench, play.drawn_alike(), *limits)
    plays = {EVERYBODY: play}
    plan = plan_for(options, budget, trainer, plays)
    notes += [*more, *warnings(trainer), *told_of(plan)]
    steps = steps_of(plan, options, trainer, plays)
    watch("plan", search=str(budget), about=about(trainer), play=play, plan=plan, steps=steps, notes=list(notes))
    with crew(trainer, workers) as hands:
        trunk = Trunk(bench, hands, options, plan, plays, watch)
        trunk.grow()
        finish = Finish(trunk)

        def built(growth: Growth, node: int) -> None:
            faults.point("node.built")
            watch("node", node=node, found=growth.built[-1][1], growth=growth)

        growth = grow(finish, depth, bench.seed, built)
        mixture = trunk.plays[EVERYBODY].mixture()
        state, members = finish.average(mixture)
    measures = run.unit("measures", lambda: (trainer.measures(state, trunk.rows), None)).value
    notes += told_at_the_end(trainer, measures)
    result = TreeResult(
        tree=growth.tree,
        mixture=mixture,
        single=single_of(finish, trunk.plays[EVERYBODY]),
        model=trainer.module(state),
        state=state,
        members=tuple(members),
        importances=importances(finish, growth, bench.seed),
        findings=[finding.row() for finding in trunk.findings],
        cooled={c.name: (mean(c.losses), metric_of(run, c.name)) for c in finish.done.values()},
        measures=measures,
        history=history(run),
        cost=trunk_cost(cost(run, trainer.total_steps * trainer.passes_a_step), bench, trainer),
        free={},
        notes=notes,
        metric=trainer.task.metric,
        deterministic=trainer.device.type == "cpu" or trainer.task.deterministic,
        mean=trainer.mean_and_std()[0],
        std=trainer.mean_and_std()[1],
        out=run.folder,
    )
    write(bench, result)
    return result


def metric_of(run: Any, name: str) -> float:
    """The validation metric after a cool-down."""
    return next(float(unit.value["metric"]) for unit in run.units("cool/") if unit.value["candidate"] == name)


def single_of(finish: Finish, play: Play) -> Tree:
    """The best of the last cool-downs that is no mixture; the mixture where there was no other."""
    whole = replace(play, out=play.out - {ALONE})
    mixtures = (whole.mixture(), whole.without([ALONE]).mixture())
    others = [c for c in finish.done.values() if isinstance(c.policy, Tree) and c.policy not in mixtures]
    best = min(others, key=lambda cooled: mean(cooled.losses), default=None)
    return play.mixture() if best is None or not isinstance(best.policy, Tree) else best.policy


def importances(finish: Finish, growth: Growth, seed: int) -> dict[str, Importance]:
    """What each transform below the root brought, where it was confirmed, with its spread over bootstraps."""
    rng = np.random.default_rng(seed_of(seed, "bootstrap"))
    out: dict[str, Importance] = {}
    for node, found in growth.built:
        gains = finish.gains.get(node)
        if gains is not None:
            drawn = gains[rng.integers(len(gains), size=(BOOTSTRAPS, len(gains)))].mean(1)
            before = out.get(found.transform.name, Importance(0.0, 0.0))
            name = found.transform.name
            out[name] = Importance(before.gain + mean(gains), float(np.hypot(before.spread, drawn.std())))
    return dict(sorted(out.items(), key=lambda pair: -pair[1].gain))


def trunk_cost(whole: Cost, bench: Bench, trainer: Trainer) -> Cost:
    """The cost, with what of it lies on the way to the model: the trunk and the last cool-downs."""
    one = trainer.total_steps * trainer.passes_a_step
    kept = [unit for prefix in ("trunk/", "cool/", "average/") for unit in bench.run.units(prefix)]
    passes = sum(unit.forward + unit.backward for unit in kept)
    return replace(whole, model_equivalents=round(passes / one, 3))


def about(trainer: Trainer) -> str:
    """The model, the machine and the length of a training."""
    model = trainer.task.model_for(trainer.data)
    name = model if isinstance(model, str) else "your model"
    return f"{name} on {trainer.device.type}, a training is {trainer.total_steps} steps of {trainer.batch_size}"


def warnings(trainer: Trainer) -> Iterable[str]:
    """What should be known before time is spent."""
    validation = len(trainer.data.indices("val"))
    if validation < FEW:
        yield (
            f"Only {validation} validation samples: what does clear harm will be left out, and beyond that nothing"
            " can be told apart."
        )
    if trainer.total_steps < SHORT:
        yield (
            f"A training has {trainer.total_steps} steps: too short to tell well what helps, and short trainings want"
            " little augmentation (--epochs, --steps)."
        )


def told_of(plan: Plan) -> Iterable[str]:
    """What a small budget leaves out."""
    if not plan.looks:
        yield (
            "The budget has no room for looks: nothing is found out about what the data can bear, and all of it stays"
            " in play (--budget)."
        )


def told_at_the_end(trainer: Trainer, measures: Mapping[str, float]) -> Iterable[str]:
    """What takes the ground from under a verdict."""
    metric = trainer.task.metric
    perfect = 1.0 if METRICS[metric].higher_is_better else 0.0
    if metric != "loss" and measures.get(metric) == perfect:
        yield f"The validation {metric} is perfect: there is nothing left to tell policies apart by."


def write(bench: Bench, result: TreeResult) -> None:
    """All that a user takes away."""
    run, trainer = bench.run, bench.trainer
    if run.folder is None:
        return
    model, measures = cast(nn.Module, result.model), {"val": dict(result.measures)}
    content = {
        "tree.json": to_json(result.tree).encode(),
        "mixture.json": to_json(cast(Policy, result.mixture)).encode(),
        "single.json": to_json(cast(Policy, result.single)).encode(),
        "tree.svg": result.tree.to_svg().encode(),
        "history.csv": result.history_csv().encode(),
        **model_files(
            model, trainer.task.spec(), trainer.data.classes, result.mean, result.std, metrics=measures
        ),
        "result.json": result.to_json().encode(),
    }  # fmt: skip
    for name, bytes_ in content.items():
        run.write(name, bytes_)
