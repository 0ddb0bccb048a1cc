"""`cooldown`: one trunk trains on the mixture of all that is in play; what is compared are cool-downs from it.

The search is the training: what is spent goes into the trunk and into the last cool-downs, whose average is the
finished model. Looking around costs a few tenths of a training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from augtree.errors import ArgumentError, number, whole_number
from augtree.search.scorers.base import ScorerOptions
from augtree.transforms.base import Transform

BUDGET = 2.0
"""What a search spends where nothing is said, in training equivalents."""


@dataclass(frozen=True)
class Cooldown(ScorerOptions):
    """Lengths and places are in trainings. What the defaults rest on: docs/search-study.md."""

    looks: tuple[float, ...] = (0.3, 0.6)
    """After how much of the trunk what is in play is looked at."""
    look: float = 0.028
    """How long each cool-down of a look is; there are eight or more in each."""
    shortest: int = 10
    """No cool-down of a look has fewer steps."""
    clear: float = 2.5
    """What leaves play at a look that is not the last: harm of so many standard errors."""
    likely: float = 1.0
    """What of the basics leaves play at the last look, by the evidence of all looks: a flip that does harm costs more
    than one that is left out."""
    sure: float = 2.0
    """What leaves one group's play where it stays in the others'; also, how clearly a policy must beat the mixture to
    take its place."""
    slow: float = 5.0
    """What of the styles leaves play at the last look, and whether samples are left alone. The bar is higher, since
    what is learned more slowly looks harmful for a while."""
    cool: float = 0.2
    """How long each of the last cool-downs is."""
    last: int = 2
    """How many cool-downs there are at the end: two on the mixture, whose average is better than either; the others
    on single policies and on trees."""
    least: float = 0.5
    """The trunk is no shorter; with too small a budget, cool-downs at the end and then looks are left out."""
    renew: int = 40
    """Steps at rate zero in which the average of several models renews its batch statistics."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.looks, tuple) or list(self.looks) != sorted(set(self.looks)):
            raise ArgumentError("looks", "must be places in order, such as (0.3, 0.6)", self.looks)
        for place in self.looks:
            number("looks", place, 0, 100, open_low=True)
        number("look", self.look, 0, 10, open_low=True)
        number("clear", self.clear, 0, 1000)
        number("likely", self.likely, 0, 1000)
        number("slow", self.slow, 0, 1000)
        number("cool", self.cool, 0, 10, open_low=True)
        number("least", self.least, 0, 100)
        whole_number("shortest", self.shortest, 1, 10**9)
        whole_number("last", self.last, 1, 1000)
        whole_number("renew", self.renew, 0, 10**6)

    def plan(self, budget: float, look_costs: Sequence[float], last_cost: float) -> Plan:
        """How a budget is spent: looks and the last cool-downs first, at what each costs, all the rest in the trunk.

        Where the trunk would be too short, there is one cool-down at the end, then one look, then none. Looks stand
        where they are asked for, but not behind two thirds of the trunk.
        """
        looks, costs = self.looks, list(look_costs)
        for last, kept in ((self.last, len(looks)), (1, len(looks)), (1, min(1, len(looks))), (1, 0)):
            first = len(looks) - kept
            trunk = budget - sum(costs[first:]) - last * last_cost
            if trunk >= self.least:
                break
        cool, places = self.cool, looks[first:]
        if trunk <= 0:  # less than a cool-down: the usual course of a training
            trunk, cool = 0.7 * budget, 0.3 * budget
        scale = min(1.0, trunk * 2 / 3 / places[-1]) if places else 1.0
        return Plan(trunk, tuple(place * scale for place in places), cool, last)

    def look_steps(self, one: int) -> int:
        """The steps of a look's cool-downs, where a training has so many."""
        return min(max(self.shortest, round(self.look * one)), max(1, one // 4))

    def at(self, bench: Any) -> Any:
        """The trunk is no bench for single candidates: see augtree.search.trunk."""
        raise NotImplementedError

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:  # noqa: ARG002
        """About so many cool-downs: eight or more in each look, and the last ones."""
        return 8 * len(self.looks) + self.last


@dataclass(frozen=True)
class Plan:
    """What is done with a budget, in trainings."""

    trunk: float
    looks: tuple[float, ...]
    cool: float
    last: int

    def __str__(self) -> str:
        places = " and ".join(f"{place:.2g}" for place in self.looks)
        looks = f", looks after {places}" if self.looks else ", no looks"
        cools = f"{self.last} cool-downs" if self.last > 1 else "a cool-down"
        return f"trunk {self.trunk:.2f}{looks}, then {cools} of {self.cool:.2g}"
