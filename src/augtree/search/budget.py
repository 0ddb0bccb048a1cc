"""The budget of a search by cool-downs: what it is in trainings and in seconds, and how it is divided."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from augtree.search.options import Limits
from augtree.search.play import Plays
from augtree.search.scorers.base import ScoringContext
from augtree.search.scorers.cooldown import BUDGET, DECAY, Cooldown, Plan
from augtree.search.trunk import cooldowns_of_look, looks_of, symmetries_to_test
from augtree.tasks.trainer import Trainer
from augtree.transforms.base import Policy

TIMED = 10
"""The timed steps that predict the length of a search."""
MOST_PREDICTIONS = 8
"""How often a test of flips and turns predicts the validation samples, at most."""
MIN_PLAN_SHARE = 0.05
"""The least share of the budget that the plan gets, however much judging costs."""
ROUNDING = 1e-6
"""A budget is this many tenths of a training above what is needed, since sums are rounded."""
INFINITY = float("inf")


@dataclass(frozen=True)
class Budget:
    """What a search may spend, in trainings, and how long one takes here."""

    trainings: float
    seconds_per_training: float

    def __str__(self) -> str:
        count = f"{self.trainings:.2g}" if self.trainings < 10 else f"{self.trainings:,.0f}"
        unit = "training" if count == "1" else "trainings"
        return f"{count} {unit}, about {duration(self.trainings * self.seconds_per_training)} here"


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    >>> duration(90), duration(600), duration(9000)
    ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def budget_for(context: ScoringContext, policy: Policy, limits: Limits) -> Budget:
    """The budget in trainings; one that is given as a time is converted by the time of a few steps."""
    trainer = context.trainer

    def timed() -> tuple[dict[str, Any], None]:
        state = trainer.train(trainer.fresh(0), policy, [0.0] * TIMED, 0)  # not timed: it sets everything up
        start = time.perf_counter()
        trainer.train(state, policy, [0.0] * TIMED, 0)
        trainer.labels.sum().item()  # wait for a GPU
        return {"seconds_a_step": (time.perf_counter() - start) / TIMED}, None

    training_seconds = context.run.unit("speed", timed).value["seconds_a_step"] * trainer.total_steps
    trainings, seconds = limits
    if trainings == INFINITY:
        trainings = BUDGET if seconds == INFINITY else seconds / max(training_seconds, 1e-9)
    return Budget(trainings, training_seconds)


def plan_for(options: Cooldown, budget: Budget, trainer: Trainer, plays: Plays) -> Plan:
    """How the budget is divided; the costs include judging and averaging."""
    costs = costs_of(options, trainer, plays)
    available = max(MIN_PLAN_SHARE * budget.trainings, budget.trainings - costs.overhead)
    tests = costs.tests if symmetries_to_test(options, trainer, plays) else None
    return options.plan(available, looks_of(options, trainer, plays), costs.looks, costs.extra, tests)


def least_budget(options: Cooldown, trainer: Trainer, plays: Plays, *, looks: bool) -> float:
    """The least budget that has room for the test of flips and turns or, beside it, for a look, in tenths."""
    costs = costs_of(options, trainer, plays)
    cool = options.least * DECAY / (1 - DECAY) if options.cool is None else options.cool
    tests = costs.tests if symmetries_to_test(options, trainer, plays) else 0.0
    spent = (sum(costs.looks[-1:]) if looks else 0.0) + tests + costs.extra + costs.overhead
    return math.ceil(10 * (options.least + cool + spent) + ROUNDING) / 10


class Costs(NamedTuple):
    """What a search spends beside its trunk and its last cool-downs, in trainings."""

    looks: list[float]
    """Each look."""
    extra: float
    """Judging and averaging each of the last cool-downs."""
    tests: float
    """All tests of flips and turns."""
    overhead: float
    """Timing, and judging the finished model."""


def costs_of(options: Cooldown, trainer: Trainer, plays: Plays) -> Costs:
    """What a search with these plays spends beside its trunk and its last cool-downs."""
    training_steps = trainer.total_steps
    judging = len(trainer.data.indices("val")) / (training_steps * trainer.passes_per_step)
    looks = looks_of(options, trainer, plays)
    length = looks.steps / training_steps
    counts = cooldowns_of_looks(options, trainer, plays, len(looks.at))
    extra = 3 * judging + options.renew * (options.last > 1) / training_steps / 2
    memory = len(getattr(trainer, "labelled", ())) / (training_steps * trainer.passes_per_step)
    test = options.test_steps(training_steps) / training_steps + MOST_PREDICTIONS * (judging + memory)
    overhead = 2 * TIMED / training_steps + judging
    return Costs([count * (length + judging) for count in counts], extra, test * len(options.tests), overhead)


def planned_steps(plan: Plan, options: Cooldown, trainer: Trainer, plays: Plays) -> int:
    """About how many steps a search takes, all cool-downs together."""
    training_steps = trainer.total_steps
    looks = looks_of(options, trainer, plays)
    cooldowns = sum(cooldowns_of_looks(options, trainer, plays, len(plan.looks)))
    steps = round((plan.trunk + plan.last * plan.cool) * training_steps)
    return steps + cooldowns * looks.steps + len(plan.tests) * options.test_steps(training_steps)


def describe_training(trainer: Trainer) -> str:
    """The model, the machine and the length of a training."""
    model = trainer.task.model_for(trainer.data)
    name = model if isinstance(model, str) else "your model"
    return f"{name} on {trainer.device.type}, a training is {trainer.total_steps} steps of {trainer.batch_size}"


def cooldowns_of_looks(options: Cooldown, trainer: Trainer, plays: Plays, count: int) -> list[int]:
    """The number of cool-downs in each of so many looks."""
    predicted, styles = symmetries_to_test(options, trainer, plays), looks_of(options, trainer, plays).styles
    return [cooldowns_of_look(plays, predicted, first=i == 0, styles=styles and i == count - 1) for i in range(count)]
