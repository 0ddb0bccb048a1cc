"""The budget of a search by cool-downs: what it is in trainings and in seconds, and how it is divided."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from augtree.search.options import Limits
from augtree.search.play import Plays
from augtree.search.scorers.base import ScoringContext
from augtree.search.scorers.cooldown import BUDGET, Cooldown, Plan
from augtree.search.trunk import cooldowns_of_look
from augtree.tasks.trainer import Trainer
from augtree.transforms.base import Policy

TIMED = 10
"""The timed steps that predict the length of a search."""
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
    looks, last, overhead = costs_of(options, trainer, plays)
    available = max(MIN_PLAN_SHARE * budget.trainings, budget.trainings - overhead)
    return options.plan(available, options.looks_in(trainer.total_steps).at, looks, last)


def budget_for_a_look(options: Cooldown, trainer: Trainer, plays: Plays) -> float:
    """The least budget that has room for a look, in tenths of a training."""
    looks, last, overhead = costs_of(options, trainer, plays)
    return math.ceil(10 * (options.least + looks[-1] + last + overhead) + ROUNDING) / 10


def costs_of(options: Cooldown, trainer: Trainer, plays: Plays) -> tuple[list[float], float, float]:
    """What each look, each of the last cool-downs, and timing and judging cost, in trainings."""
    training_steps = trainer.total_steps
    judging = len(trainer.data.indices("val")) / (training_steps * trainer.passes_per_step)
    looks = options.looks_in(training_steps)
    length = looks.steps / training_steps
    costs = [count * (length + judging) for count in cooldowns_of_looks(plays, len(looks.at), styles=looks.styles)]
    last = options.cool + 3 * judging + options.renew * (options.last > 1) / training_steps / 2
    return costs, last, 2 * TIMED / training_steps + judging


def planned_steps(plan: Plan, options: Cooldown, trainer: Trainer, plays: Plays) -> int:
    """About how many steps a search takes, all cool-downs together."""
    training_steps = trainer.total_steps
    looks = options.looks_in(training_steps)
    cooldowns = sum(cooldowns_of_looks(plays, len(plan.looks), styles=looks.styles))
    steps = round((plan.trunk + plan.last * plan.cool) * training_steps)
    return steps + cooldowns * looks.steps


def describe_training(trainer: Trainer) -> str:
    """The model, the machine and the length of a training."""
    model = trainer.task.model_for(trainer.data)
    name = model if isinstance(model, str) else "your model"
    return f"{name} on {trainer.device.type}, a training is {trainer.total_steps} steps of {trainer.batch_size}"


def cooldowns_of_looks(plays: Plays, looks: int, *, styles: bool) -> list[int]:
    """The number of cool-downs in each look."""
    return [cooldowns_of_look(plays, first=i == 0, styles=styles and i == looks - 1) for i in range(looks)]
