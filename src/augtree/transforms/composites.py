"""Transforms made of others: chains, RandAugment, TrivialAugment and AutoAugment's published policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError, InputError, number, whole_number
from augtree.keys import Key
from augtree.transforms import images as op
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.base import Identity, Policy, Stage, Transform, common_domain
from augtree.transforms.pictures import Plan, Shape, merged

LONGEST_CHAIN = 64
MOST_CHOICES = 256


@dataclass(frozen=True)
class Chain(Transform):
    """Independent steps in order, each applied with its own probability.

    >>> from augtree.transforms import ColorDistortion, GaussianBlur, RandomCrop
    >>> print(Chain([RandomCrop(), ColorDistortion(), (GaussianBlur(), 0.5)]))
    Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)
    """

    steps: Sequence[Transform | tuple[Transform, float]] = ()
    route = Policy.route
    told = Policy.told

    def __post_init__(self) -> None:
        given: Any = self.steps
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > LONGEST_CHAIN:
            raise ArgumentError("steps", f"must be a list of at most {LONGEST_CHAIN} steps", given)
        steps = []
        for i, step in enumerate(given):
            transform, p = step if isinstance(step, Sequence) and len(step) == 2 else (step, 1.0)
            if not isinstance(transform, Transform):
                raise ArgumentError(f"steps/{i}", "must be a transform, or a transform and its p", step)
            number(f"steps/{i}/p", p, 0, 1)
            if transform.whole and p not in (0, 1):
                rule = f"must be 1: {transform.name} changes shape or type, so it is for all samples"
                raise ArgumentError(f"steps/{i}/p", rule, p)
            steps.append((transform, float(p)))
        for i, (transform, _) in enumerate(steps[:-1]):
            if transform.final:
                raise ArgumentError(f"steps/{i}", "must be the last step: it makes floats", str(transform))
        if len({transform.domain for transform, _ in steps} - {"any"}) > 1:
            raise ArgumentError("steps", "must all work on pictures or all on graphs", [str(t) for t, _ in steps])
        object.__setattr__(self, "steps", tuple(steps))

    @property
    def pairs(self) -> tuple[tuple[Transform, float], ...]:
        """The steps, each with its probability."""
        return self.steps  # type: ignore[return-value]

    @property
    def domain(self) -> str:  # type: ignore[override]
        """That of the steps."""
        return common_domain(step for step, _ in self.pairs)

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """Whether a step mixes samples."""
        return any(step.mixes for step, _ in self.pairs)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """Whether a step changes shape or type."""
        return any(step.whole for step, _ in self.pairs)

    @property
    def final(self) -> bool:  # type: ignore[override]
        """Whether the last step changes the type."""
        return any(step.final for step, _ in self.pairs)

    def shape_after(self, shape: Shape) -> Shape:
        """The shape of the pictures after all steps."""
        for step, p in self.pairs:
            shape = step.shape_after(shape) if p else shape
        return shape

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether anything is drawn."""
        return any(step.random is not False or p not in (0, 1) for step, p in self.pairs)

    def stages(self, key: Key) -> Iterator[Stage]:
        """Step by step."""
        for i, (transform, p) in enumerate(self.pairs):
            here = key.at(i)
            yield [(transform, here.at(1).take(here.uniform() < p))]

    def __str__(self) -> str:
        return f"Chain({', '.join(str(step) + ('' if p == 1 else f' p={p:g}') for step, p in self.pairs)})"


@dataclass(frozen=True)
class OneOf(Transform):
    """One of several transforms, drawn for each sample; weights are relative, 1 where none is given.

    >>> print(OneOf([(TrivialAugment(), 3), RandAugment(m=14)]))
    OneOf(TrivialAugment 75 % | RandAugment(m=14) 25 %)
    """

    choices: Sequence[Transform | tuple[Transform, float]] = ()
    route = Policy.route
    told = Policy.told

    def __post_init__(self) -> None:
        given: Any = self.choices
        if isinstance(given, str) or not isinstance(given, Sequence) or not 1 <= len(given) <= MOST_CHOICES:
            raise ArgumentError("choices", f"must be a list of 1 to {MOST_CHOICES} transforms", given)
        choices = []
        for i, choice in enumerate(given):
            transform, weight = choice if isinstance(choice, Sequence) and len(choice) == 2 else (choice, 1.0)
            if not isinstance(transform, Transform):
                raise ArgumentError(f"choices/{i}", "must be a transform, or a transform and its weight", choice)
            if transform.whole:
                rule = "must not change shape or type, since it is for some samples only"
                raise ArgumentError(f"choices/{i}", rule, str(transform))
            choices.append((transform, number(f"choices/{i}/weight", weight, 0, 1e9, open_low=True)))
        if len({transform.domain for transform, _ in choices} - {"any"}) > 1:
            raise ArgumentError("choices", "must all work on pictures or all on graphs", [str(t) for t, _ in choices])
        object.__setattr__(self, "choices", tuple(choices))

    @property
    def pairs(self) -> tuple[tuple[Transform, float], ...]:
        """The transforms, each with its weight."""
        return self.choices  # type: ignore[return-value]

    @property
    def shares(self) -> list[float]:
        """The probability of each transform."""
        total = sum(weight for _, weight in self.pairs)
        return [weight / total for _, weight in self.pairs]

    @property
    def domain(self) -> str:  # type: ignore[override]
        """That of the transforms."""
        return common_domain(transform for transform, _ in self.pairs)

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """Whether one of the transforms mixes samples."""
        return any(transform.mixes for transform, _ in self.pairs)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether anything is drawn."""
        return len(self.pairs) > 1 or self.pairs[0][0].random is not False

    def stages(self, key: Key) -> Iterator[Stage]:
        """All of them side by side, each on the samples that drew it."""
        edges = np.cumsum(self.shares)
        which = np.searchsorted(edges[:-1], key.uniform(CHOICE), side="right")
        here = key.at(0)  # one key for all, so that choices share their draws
        yield [(transform, here.take(which == i)) for i, (transform, _) in enumerate(self.pairs)]

    def __str__(self) -> str:
        return f"OneOf({self.in_words()})"

    def in_words(self) -> str:
        """The transforms with their shares: `TrivialAugment 75 % | RandAugment(m=14) 25 %`."""
        shares = zip(self.pairs, self.shares, strict=True)
        return " | ".join(f"{transform} {100 * share:.3g} %" for (transform, _), share in shares)


GEOMETRY: tuple[type[Transform], ...] = (op.ShearX, op.ShearY, op.TranslateX, op.TranslateY, op.Rotate)
TONES: tuple[type[Transform], ...] = (
    op.Brightness,
    op.Color,
    op.Contrast,
    op.Sharpness,
    op.Posterize,
    op.Solarize,
    op.AutoContrast,
    op.Equalize,
)
PALETTE: tuple[type[Transform], ...] = (Identity, *GEOMETRY, *TONES)
"""What RandAugment and TrivialAugment choose from."""


@dataclass(frozen=True)
class Choice:
    """Draws for each picture one of several operations, at its own level."""

    name: str
    kinds: Sequence[type[Transform]]
    fill: int
    wide: bool

    def draw(self, which: NDArray[np.int64], level: NDArray[np.float64], key: Key, shape: Shape) -> Plan:
        """The operation with number `which` for each picture; none where there is no such number."""
        if op.Color in self.kinds and shape.channels not in (1, 3):  # not only where Color is drawn
            raise InputError(f"{self.name} needs pictures of 1 or 3 channels, got {shape.channels}")
        sign = op.signs(key)
        plans: list[Plan] = []
        for place in np.unique(which).tolist():
            kind: type[Transform] = self.kinds[place] if place >= 0 else Identity
            if issubclass(kind, op.Operation):
                rows = np.flatnonzero(which == place)
                operation = kind(1.0, fill=self.fill) if issubclass(kind, op.Geometry) else kind(1.0)
                values = operation.values(level[rows], sign[rows], self.limit(kind, shape))
                plans.append([[operation.work(key.take(rows), values, shape)]])
        return merged(plans)

    def told(self, which: NDArray[np.int64], level: NDArray[np.float64]) -> list[tuple[str, ...]]:
        """The operation and the level of each picture, in words."""
        names = [kind.__name__ for kind in self.kinds]
        pairs = zip(which.tolist(), level.tolist(), strict=True)
        return [(f"{names[i]} {x:.2g}",) if i >= 0 and names[i] != "Identity" else () for i, x in pairs]

    def limit(self, kind: type[op.Operation], shape: Shape) -> float:
        """The parameter at level 1; the wide range of translations is in pixels."""
        if not self.wide:
            return kind.limit
        if kind in (op.TranslateX, op.TranslateY):
            return kind.wide / (shape.width if kind is op.TranslateX else shape.height)
        return kind.wide


class Drawn(Transform):
    """A transform that draws its operations, one after the other."""

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """For each place in the row: what there is to choose from, what is chosen, its level, and its key."""
        raise NotImplementedError

    def draw(self, key: Key, shape: Shape) -> Plan:
        """The operations of each picture."""
        plan: Plan = []
        for choice, which, level, here in self.choices(key):
            plan += choice.draw(which, level, here, shape)
        return plan

    def told(self, key: Key) -> list[tuple[str, ...]]:
        """The operations of each picture, in words."""
        places = [choice.told(which, level) for choice, which, level, _ in self.choices(key)]
        return [tuple(word for words in row for word in words) for row in zip(*places, strict=True)]


@dataclass(frozen=True)
class RandAugment(Drawn):
    """n operations in a row, each any of fourteen, all at magnitude m of 30 (Cubuk et al. 2020)."""

    palette: ClassVar[tuple[type[Transform], ...]] = PALETTE
    n: int = 2
    m: int = 9
    fill: int = op.FILL

    def __post_init__(self) -> None:
        whole_number("n", self.n, 1, 16)
        whole_number("m", self.m, 0, 30)
        whole_number("fill", self.fill, 0, 255)

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """N operations at one level."""
        choice = Choice(self.name, self.palette, self.fill, wide=False)
        for i in range(self.n):
            here = key.at(i)
            yield choice, here.below(len(self.palette), CHOICE), np.full(len(key), self.m / 30), here


@dataclass(frozen=True)
class RandGeometry(RandAugment):
    """RandAugment with the operations alone that move pixels."""

    palette = (Identity, *GEOMETRY)


@dataclass(frozen=True)
class RandTones(RandAugment):
    """RandAugment with the operations alone that change values."""

    palette = (Identity, *TONES)


@dataclass(frozen=True)
class TrivialAugment(Drawn):
    """One operation, any of fourteen, at any of 31 magnitudes of the wide range (Müller and Hutter 2021)."""

    palette: ClassVar[tuple[type[Transform], ...]] = PALETTE
    fill: int = op.FILL

    def __post_init__(self) -> None:
        whole_number("fill", self.fill, 0, 255)

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """One operation at one of 31 levels."""
        choice = Choice(self.name, self.palette, self.fill, wide=True)
        yield choice, key.below(len(self.palette), CHOICE), key.below(31, op.LEVEL) / 30, key


@dataclass(frozen=True)
class TrivialGeometry(TrivialAugment):
    """TrivialAugment with the operations alone that move pixels."""

    palette = (Identity, *GEOMETRY)


@dataclass(frozen=True)
class TrivialTones(TrivialAugment):
    """TrivialAugment with the operations alone that change values."""

    palette = (Identity, *TONES)


@dataclass(frozen=True)
class AutoAugment(Drawn):
    """A policy that AutoAugment's authors found and published: 25 pairs of operations (Cubuk et al. 2019)."""

    policy: str = "cifar10"
    fill: int = op.FILL

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str) or self.policy not in POLICIES:
            raise ArgumentError("policy", f"must be one of {', '.join(POLICIES)}", self.policy)
        whole_number("fill", self.fill, 0, 255)

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """A pair of operations, each with its probability and level."""
        table = POLICIES[self.policy]
        pair = key.below(len(table), CHOICE)
        names = sorted({name for row in table for name, _, _ in row})
        choice = Choice(self.name, [getattr(op, name) for name in names], self.fill, wide=False)
        for place in range(2):
            here = key.at(place)
            which = np.array([names.index(row[place][0]) for row in table])[pair]
            chance = np.array([row[place][1] for row in table])[pair]
            level = np.array([(row[place][2] or 0) / 9 for row in table])[pair]
            yield choice, np.where(here.uniform(CHOICE) < chance, which, -1), level, here


CHOICE = 8
"""The counter of the draw that chooses an operation; an operation's own draws come before it."""
