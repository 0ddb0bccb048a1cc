"""`cooldown`: one trunk trains on the mixture of all that is in play; what is compared are cool-downs from it.

The search is the training: the budget goes into the trunk and into the last cool-downs, whose average is the finished
model. Flips and turns are tested by predictions, which cost next to nothing; what only trainings can judge (graphs'
operations, a user's own transforms) is tested in looks, which cost a few tenths of a training.
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
DECAY = 0.3
"""The share of the last cool-down in the whole training: that of every training by the schedule constant-linear."""
OVERFIT = 0.2
"""In short trainings, a model overfits where its training losses are this share below its validation losses."""
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


NO_LOOKS = Looks((), 1, styles=False)


@dataclass(frozen=True)
class Cooldown(ScorerOptions):
    """The options of the scorer cooldown. What the defaults rest on: docs/search-study.md.

    It makes no Scorer of its own: `search_by_cooldowns` runs the whole search, and `FinalCooldowns` is its Scorer for
    Algorithm 1.

    Flips and turns come into play where the data bear them. In looks a factor leaves play where its harm exceeds a
    number of standard errors. This is high for factors of the styles, since whatever is learned slowly looks harmful
    for a while.

    Examples
    --------
    >>> str(Cooldown().plan(2.1, NO_LOOKS, look_costs=[], extra=0.0, test_cost=0.1))
    'trunk 1.40, flips and turns tested after 0.5, then a cool-down of 0.6'

    """

    tests: tuple[float, ...] = (0.5,)
    """After how many trainings of the trunk predictions test flips and turns; empty: these are in play at once."""
    test: float = 0.04
    """The length of the cool-down of such a test, in trainings."""
    borne: float = 0.9
    """The share of its information that a model must keep on flipped or turned samples: then these come into play."""
    overfit: float | None = None
    """Half of the samples are left alone below this gap of training and validation loss (short trainings: 0.2)."""
    looks: tuple[float, ...] | None = None
    """After how many trainings of the trunk there is a look (default 0.3,0.6; short trainings 0.5; pictures none)."""
    look: float | None = None
    """The length of each cool-down of a look, in trainings (default 0.028; 0.05 in short trainings)."""
    styles: bool | None = None
    """Whether the last look tests factors of styles (default yes; no in short trainings, unless looks are given)."""
    shortest: int = 10
    """The fewest steps of a cool-down of a look."""
    clear: float = 2.5
    """Standard errors of harm at which a factor leaves play before the last look."""
    sure: float = 2.0
    """The same at the last look, over all looks; for what leaves one group's play alone; to replace the mixture."""
    slow: float = 5.0
    """Standard errors of harm at which a factor of the styles leaves play at the last look."""
    cool: float | None = None
    """The length of each of the last cool-downs, in trainings (default 0.3 of trunk and cool-down together)."""
    last: int = 1
    """The number of last cool-downs: the first two on the mixture, the others on single policies and trees."""
    least: float = 0.5
    """The least length of the trunk, in trainings; a small budget leaves out last cool-downs, looks, the test."""
    renew: int = 40
    """Steps at learning rate 0 that renew the batch-norm statistics of an average of models."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, places in (("tests", self.tests), ("looks", self.looks or ())):
            if not isinstance(places, tuple) or list(places) != sorted(set(places)):
                raise ArgumentError(name, "must be a tuple of increasing lengths, such as (0.3, 0.6)", places)
            for length in places:
                number(name, length, 0, 100, open_low=True)
        number("test", self.test, 0, 10, open_low=True)
        number("borne", self.borne, 0, 1)
        if self.overfit is not None:
            number("overfit", self.overfit, -1000, 1)
        if self.look is not None:
            number("look", self.look, 0, 10, open_low=True)
        if not isinstance(self.styles, bool | None):
            raise ArgumentError("styles", "must be True or False", self.styles)
        number("clear", self.clear, 0, 1000)
        number("slow", self.slow, 0, 1000)
        if self.cool is not None:
            number("cool", self.cool, 0, 10, open_low=True)
        number("least", self.least, 0, 100)
        whole_number("shortest", self.shortest, 1, 10**9)
        whole_number("last", self.last, 1, 1000)
        whole_number("renew", self.renew, 0, 10**6)

    def looks_in(self, training_steps: int, *, needed: bool) -> Looks:
        """The looks of a search whose trainings have so many steps; `needed`: where something only looks can judge.

        >>> Cooldown().looks_in(1500, needed=True).at, Cooldown().looks_in(500, needed=True).at
        ((0.3, 0.6), (0.5,))
        >>> Cooldown().looks_in(1500, needed=False).at
        ()
        """
        if self.looks is None and not needed:
            return NO_LOOKS
        short = is_short(training_steps)
        at = self.looks if self.looks is not None else SHORT_LOOKS if short else LOOKS
        length = self.look if self.look is not None else SHORT_LOOK if short else LOOK
        styles = self.styles if self.styles is not None else self.looks is not None or not short
        return Looks(at, self.steps_of(length, training_steps), styles)

    def least_gap(self, training_steps: int) -> float | None:
        """By which share training losses must be below validation losses to augment every sample, if that is tested.

        >>> Cooldown().least_gap(500), Cooldown().least_gap(1500)
        (0.2, None)
        """
        return OVERFIT if self.overfit is None and is_short(training_steps) else self.overfit

    def test_steps(self, training_steps: int) -> int:
        """The steps of the cool-down of a test of flips and turns."""
        return self.steps_of(self.test, training_steps)

    def steps_of(self, length: float, training_steps: int) -> int:
        """The steps of a short cool-down."""
        return min(max(self.shortest, round(length * training_steps)), max(1, training_steps // 4))

    def plan(
        self, budget: float, looks: Looks, look_costs: Sequence[float], extra: float, test_cost: float | None = None
    ) -> Plan:
        """How a budget is divided: looks at their costs, last cool-downs and `extra` for each, the rest in the trunk.

        Where the trunk would be too short, there is one cool-down at the end, then only the last look, then none, and
        no test of flips and turns (`test_cost` is None where there are none). Looks and tests are where the options
        put them, but within the first two thirds of the trunk.
        """
        costs, count = list(look_costs), len(looks.at)
        tests = self.tests if test_cost is not None else ()
        ways = [(self.last, count, tests), (1, count, tests), (1, min(1, count), tests), (1, 0, tests), (1, 0, ())]
        for last, kept, tested in ways:
            spent = sum(costs[count - kept :]) + (test_cost or 0.0) * bool(tested)
            trunk, cool = self.divided(budget - spent - last * extra, last)
            kept_looks = looks.at[count - kept :]
            if trunk >= self.least:
                break
        if trunk <= 0:  # less than a cool-down: a short training
            trunk, cool = (1 - DECAY) * budget, DECAY * budget
        return Plan(trunk, within(trunk, kept_looks), cool, last, within(trunk, tested))

    def divided(self, length: float, last: int) -> tuple[float, float]:
        """The lengths of the trunk and of each of the last cool-downs, given that of all together."""
        if self.cool is not None:
            return length - last * self.cool, self.cool
        trunk = length / (1 + last * DECAY / (1 - DECAY))
        return trunk, trunk * DECAY / (1 - DECAY)


def is_short(training_steps: int) -> bool:
    """Whether a training is so short that every step counts."""
    return round(LOOK * training_steps) < FEW_STEPS


def within(trunk: float, places: tuple[float, ...]) -> tuple[float, ...]:
    """These places, moved together into the first two thirds of the trunk."""
    scale = min(1.0, trunk * 2 / 3 / places[-1]) if places else 1.0
    return tuple(place * scale for place in places)


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
    tests: tuple[float, ...] = ()
    """The lengths of the trunk after which flips and turns are tested."""

    def __str__(self) -> str:
        tests = f", flips and turns tested after {lengths_in_words(self.tests)}" if self.tests else ""
        kind = "looks" if len(self.looks) > 1 else "a look"
        looks = f", {kind} after {lengths_in_words(self.looks)}" if self.looks else ""
        nothing = "" if self.looks or self.tests else ", nothing tested"
        cools = f"{self.last} cool-downs" if self.last > 1 else "a cool-down"
        return f"trunk {self.trunk:.2f}{tests}{looks}{nothing}, then {cools} of {self.cool:.2g}"


def lengths_in_words(lengths: Sequence[float]) -> str:
    """Lengths of the trunk in a sentence."""
    return " and ".join(f"{length:.2g}" for length in lengths)
