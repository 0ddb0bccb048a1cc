"""The temperature of logits (Guo et al. 2017), which removes over- and underconfidence from a loss.

Augmentation makes models less certain, and short trainings leave them more or less so; both move the loss without
moving the accuracy. Dividing all logits by the temperature with the lowest loss removes that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

LOWEST, HIGHEST = math.log(0.05), math.log(20.0)
GOLDEN = (math.sqrt(5) - 1) / 2
ROUNDS = 40


def temperature(losses_at: Callable[[float], Tensor]) -> float:
    """The temperature with the lowest mean loss, by golden-section search of its logarithm (the loss is unimodal)."""
    low, high = LOWEST, HIGHEST
    one, two = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_one, at_two = (float(losses_at(math.exp(place)).mean()) for place in (one, two))
    for _ in range(ROUNDS):
        if at_one <= at_two:
            high, two, at_two = two, one, at_one
            one = high - GOLDEN * (high - low)
            at_one = float(losses_at(math.exp(one)).mean())
        else:
            low, one, at_one = one, two, at_two
            two = low + GOLDEN * (high - low)
            at_two = float(losses_at(math.exp(two)).mean())
    return math.exp((low + high) / 2)
