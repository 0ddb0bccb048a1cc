"""The budget of a search by cool-downs: what it is in trainings and in seconds, and how it is divided."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from augtree.search.play import Plays
from augtree.search.scorers.base import ScoringContext
from augtree.search.scorers.cooldown import BUDGET, Cooldown, Plan
from augtree.search.trunk import cooldowns_of_look
from augtree.tasks.trainer import Trainer
from augtree.transforms.base import Policy

TIMED = 10
"""The timed steps that predict the length of a search."""
LEAST = 0.05
"""The plan gets at least this share of the budget, however much judging costs."""
INFINITY = float("inf")


@dataclass(frozen=True)
class Budget:
    """What a search may spend, in trainings, and how long one takes here."""

    trainings: float
    seconds_a_training: float

    def __str__(self) -> str:
        return f"{self.trainings:.2g} trainings, about {duration(self.trainings * self.seconds_a_training)} here"


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    >>> duration(90), duration(600), duration(9000)
    ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def budget_for(context: ScoringContext, policy: Policy, limits: tuple[float, float]) -> Budget:
    """The budget in trainings; one that is given as a time is converted by the time of a few steps."""
    trainer = context.trainer

    def timed() -> tuple[dict[str, Any], None]:
        state = trainer.train(trainer.fresh(0), policy, [0.0] * TIMED, 0)  # not timed: it sets everything up
        start = time.perf_counter()
        trainer.train(state, policy, [0.0] * TIMED, 0)
        trainer.labels.sum().item()  # wait for a GPU
        return {"seconds_a_step": (time.perf_counter() - start) / TIMED}, None

    one = context.run.unit("speed", timed).value["seconds_a_step"] * trainer.total_steps
    trainings, seconds = limits
    if trainings == INFINITY:
        trainings = BUDGET if seconds == INFINITY else seconds / max(one, 1e-9)
    return Budget(trainings, one)


def plan_for(options: Cooldown, budget: Budget, trainer: Trainer, plays: Plays) -> Plan:
    """How the budget is divided; the costs include judging and averaging."""
    one, size = trainer.total_steps, trainer.passes_a_step
    judging = len(trainer.data.indices("val")) / (one * size)
    steps = options.look_steps(one) / one
    looks = [count * (steps + judging) for count in cooldowns_of_looks(plays, len(options.looks))]
    last = options.cool + 3 * judging + options.renew * (options.last > 1) / one / 2
    available = max(LEAST * budget.trainings, budget.trainings - 2 * TIMED / one - judging)
    return options.plan(available, looks, last)


def planned_steps(plan: Plan, options: Cooldown, trainer: Trainer, plays: Plays) -> int:
    """About how many steps a search takes, all cool-downs together."""
    one = trainer.total_steps
    cooldowns = sum(cooldowns_of_looks(plays, len(plan.looks)))
    return round((plan.trunk + plan.last * plan.cool) * one) + cooldowns * options.look_steps(one)


def cooldowns_of_looks(plays: Plays, looks: int) -> list[int]:
    """The number of cool-downs in each look."""
    return [cooldowns_of_look(plays, first=i == 0, last=i == looks - 1) for i in range(looks)]
