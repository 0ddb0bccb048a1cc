"""The learning rate of each step of a training, as a share of the highest.

`constant-linear` rises in a short line (the warm-up), stays at the top and ends with a line to zero (the cool-down).
Its middle does not depend on the length of the training, so that one training at a constant rate, the trunk of a
search, can be cooled down at any time. `cosine` falls as a cosine after its warm-up; `constant` has no warm-up.
"""

from __future__ import annotations

import math

SCHEDULES = ("constant-linear", "cosine", "constant")


def rates(schedule: str, steps: int, *, warmup: float, decay: float) -> list[float]:
    """The shares of a whole training; `warmup` and `decay` are fractions of its steps.

    >>> rates("constant-linear", 8, warmup=0.25, decay=0.5)
    [0.3333333333333333, 0.6666666666666666, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if schedule == "constant":
        return [1.0] * steps
    rise = round(warmup * steps)
    rest = steps - rise
    if schedule == "constant-linear":
        fall = min(rest, round(decay * steps))
        return warm_up(rise) + [1.0] * (rest - fall) + cooldown_rates(fall)
    return warm_up(rise) + [(1 + math.cos(math.pi * i / rest)) / 2 for i in range(rest)]


def warm_up(steps: int) -> list[float]:
    """A rise in a line."""
    return [(i + 1) / (steps + 1) for i in range(steps)]


def cooldown_rates(steps: int) -> list[float]:
    """A line from the highest rate towards zero.

    >>> cooldown_rates(4)
    [1.0, 0.75, 0.5, 0.25]
    """
    return [1 - i / steps for i in range(steps)]
