"""`cooldown`: one trunk trains on the mixture of all that is in play; what is compared are cool-downs from it.

The search is the training: the budget goes into the trunk and into the last cool-downs, whose average is the finished
model. The looks cost a few tenths of a training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from augtree.errors import ArgumentError, number, whole_number
from augtree.search.scorers.base import ScorerOptions

BUDGET = 2.0
"""What a search spends by default, in training equivalents."""
LOOKS, LOOK = (0.3, 0.6), 0.028
"""Where the looks are, and the length of their cool-downs."""
SHORT_LOOKS, SHORT_LOOK = (0.5,), 0.05
"""The same in short trainings, in which every step counts: a single look, whose cool-downs are relatively longer."""
FEW_STEPS = 25
"""A training is short where a cool-down of a look would have fewer steps."""


class Looks(NamedTuple):
    """The looks of a search."""

    at: tuple[float, ...]
    """The lengths of the trunk after which there is a look, in trainings."""
    steps: int
    """The steps of each cool-down of a look."""
    styles: bool
    """Whether the last look tests what the styles are made of, too."""


@dataclass(frozen=True)
class Cooldown(ScorerOptions):
    """The options of the scorer cooldown. What the defaults rest on: docs/search-study.md.

    It makes no Scorer of its own: `search_by_cooldowns` runs the whole search, and `FinalCooldowns` is its Scorer for
    Algorithm 1.

    A factor leaves play where its harm exceeds a number of standard errors. At the last look this is low for flips
    and turns, since a harmful one costs far more than a missing one, and high for factors of the styles, since
    whatever is learned slowly looks harmful for a while.

    Examples
    --------
    >>> str(Cooldown().plan(2.0, [0.3, 0.6], look_costs=[0.3, 0.3], last_cost=0.4))
    'trunk 1.00, looks after 0.3 and 0.6, then a cool-down of 0.4'

    """

    looks: tuple[float, ...] | None = None
    """After how many trainings of the trunk there is a look (default 0.3,0.6; 0.5 in short trainings)."""
    look: float | None = None
    """The length of each cool-down of a look, in trainings (default 0.028; 0.05 in short trainings)."""
    styles: bool | None = None
    """Whether the last look tests factors of styles (default yes; no in short trainings, unless looks are given)."""
    shortest: int = 10
    """The fewest steps of a cool-down of a look."""
    clear: float = 2.5
    """Standard errors of harm at which a factor leaves play before the last look."""
    likely: float = 0.3
    """Standard errors of harm, over all looks, at which a flip or a turn leaves play at the last look."""
    sure: float = 2.0
    """The same for crops and own transforms, for what leaves one group's play alone, and to replace the mixture."""
    slow: float = 5.0
    """Standard errors of harm at which a factor of the styles leaves play at the last look."""
    cool: float = 0.4
    """The length of each of the last cool-downs, in trainings."""
    last: int = 1
    """The number of last cool-downs: the first two on the mixture, the others on single policies and trees."""
    least: float = 0.5
    """The least length of the trunk, in trainings; a small budget leaves out last cool-downs, then looks."""
    renew: int = 40
    """Steps at learning rate 0 that renew the batch-norm statistics of an average of models."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.looks is not None:
            if not isinstance(self.looks, tuple) or list(self.looks) != sorted(set(self.looks)):
                raise ArgumentError("looks", "must be a tuple of increasing lengths, such as (0.3, 0.6)", self.looks)
            for length in self.looks:
                number("looks", length, 0, 100, open_low=True)
        if self.look is not None:
            number("look", self.look, 0, 10, open_low=True)
        if not isinstance(self.styles, bool | None):
            raise ArgumentError("styles", "must be True or False", self.styles)
        number("clear", self.clear, 0, 1000)
        number("likely", self.likely, 0, 1000)
        number("slow", self.slow, 0, 1000)
        number("cool", self.cool, 0, 10, open_low=True)
        number("least", self.least, 0, 100)
        whole_number("shortest", self.shortest, 1, 10**9)
        whole_number("last", self.last, 1, 1000)
        whole_number("renew", self.renew, 0, 10**6)

    def looks_in(self, training_steps: int) -> Looks:
        """The looks of a search whose trainings have so many steps.

        >>> Cooldown().looks_in(1500).at, Cooldown().looks_in(500).at
        ((0.3, 0.6), (0.5,))
        """
        short = round(LOOK * training_steps) < FEW_STEPS
        at = self.looks if self.looks is not None else SHORT_LOOKS if short else LOOKS
        length = self.look if self.look is not None else SHORT_LOOK if short else LOOK
        steps = min(max(self.shortest, round(length * training_steps)), max(1, training_steps // 4))
        styles = self.styles if self.styles is not None else self.looks is not None or not short
        return Looks(at, steps, styles)

    def plan(self, budget: float, looks: Sequence[float], look_costs: Sequence[float], last_cost: float) -> Plan:
        """How a budget is divided: each look and each last cool-down at its cost, all the rest in the trunk.

        Where the trunk would be too short, there is one cool-down at the end, then only the last look, then none. The
        looks are where the options put them, but within the first two thirds of the trunk.
        """
        costs = list(look_costs)
        for last, kept in ((self.last, len(looks)), (1, len(looks)), (1, min(1, len(looks))), (1, 0)):
            first = len(looks) - kept
            trunk = budget - sum(costs[first:]) - last * last_cost
            if trunk >= self.least:
                break
        cool, kept_looks = self.cool, list(looks)[first:]
        if trunk <= 0:  # less than a cool-down: a short training, the last 30 % of it a cool-down
            trunk, cool = 0.7 * budget, 0.3 * budget
        scale = min(1.0, trunk * 2 / 3 / kept_looks[-1]) if kept_looks else 1.0
        return Plan(trunk, tuple(length * scale for length in kept_looks), cool, last)


@dataclass(frozen=True)
class Plan:
    """How a budget is divided; lengths are in trainings."""

    trunk: float
    """The length of the trunk."""
    looks: tuple[float, ...]
    """The lengths of the trunk after which there is a look."""
    cool: float
    """The length of each of the last cool-downs."""
    last: int
    """The number of last cool-downs."""

    def __str__(self) -> str:
        lengths = " and ".join(f"{length:.2g}" for length in self.looks)
        kind = "looks" if len(self.looks) > 1 else "a look"
        looks = f", {kind} after {lengths}" if self.looks else ", no looks"
        cools = f"{self.last} cool-downs" if self.last > 1 else "a cool-down"
        return f"trunk {self.trunk:.2f}{looks}, then {cools} of {self.cool:.2g}"
