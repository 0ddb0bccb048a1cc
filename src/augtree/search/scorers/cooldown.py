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
    look: float = 0.24
    """What one look costs; it is shared by its cool-downs, of which there are eight or more."""
    shortest: int = 10
    """No cool-down of a look has fewer steps."""
    clear: float = 3.0
    """What leaves play at a look that is not the last: harm of so many standard errors."""
    sure: float = 2.3
    """What leaves play at the last look; also, by how much a cool-down must beat the mixture's to take its place."""
    cool: float = 0.3
    """How long each of the last cool-downs is."""
    last: int = 2
    """How many cool-downs there are at the end: the mixture's, and those of the candidates that the tree may have."""
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
        number("cool", self.cool, 0, 10, open_low=True)
        number("least", self.least, 0, 100)
        whole_number("shortest", self.shortest, 1, 10**9)
        whole_number("last", self.last, 1, 1000)
        whole_number("renew", self.renew, 0, 10**6)

    def plan(self, budget: float) -> Plan:
        """How a budget is spent: looks and the last cool-downs first, and all the rest in the trunk.

        Where the trunk would be too short, there is one cool-down at the end, then one look, then none. Looks stand
        where they are asked for, but not behind two thirds of the trunk.
        """
        looks = self.looks
        for last, kept in ((self.last, looks), (1, looks), (1, looks[-1:]), (1, ())):
            trunk = budget - len(kept) * self.look - last * self.cool
            if trunk >= self.least:
                break
        cool = self.cool
        if trunk <= 0:  # less than a cool-down: the usual course of a training
            trunk, cool = 0.7 * budget, 0.3 * budget
        scale = min(1.0, trunk * 2 / 3 / kept[-1]) if kept else 1.0
        return Plan(trunk, tuple(place * scale for place in kept), cool, last)

    def at(self, bench: Any) -> Any:
        """The trunk is no bench for single candidates: see augtree.search.trunk."""
        raise NotImplementedError

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:  # noqa: ARG002
        """The cool-downs of all looks (eight each, where there are no more than seven factors) and the last ones."""
        return 8 * len(self.looks) + self.last


@dataclass(frozen=True)
class Plan:
    """What is done with a budget, in trainings."""

    trunk: float
    looks: tuple[float, ...]
    cool: float
    last: int
