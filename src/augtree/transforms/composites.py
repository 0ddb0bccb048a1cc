"""Transforms made of others: chains, RandAugment, TrivialAugment and AutoAugment's published policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError, number, whole_number
from augtree.keys import Key
from augtree.transforms import images as op
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.base import Identity, Policy, Stage, Transform
from augtree.transforms.pictures import Plan, Shape, merged

LONGEST_CHAIN = 64


@dataclass(frozen=True)
class Chain(Transform):
    """Independent steps in order, each applied with its own probability.

    >>> from augtree.transforms import ColorDistortion, GaussianBlur, RandomCrop
    >>> print(Chain([RandomCrop(), ColorDistortion(), (GaussianBlur(), 0.5)]))
    Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)
    """

    steps: Sequence[Transform | tuple[Transform, float]] = ()
    route = Policy.route

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
        return next((step.domain for step, _ in self.pairs if step.domain != "any"), "any")

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """Whether a step mixes samples."""
        return any(step.mixes for step, _ in self.pairs)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """Whether a step changes shape or type."""
        return any(step.whole for step, _ in self.pairs)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether anything is drawn."""
        return any(step.random or p not in (0, 1) for step, p in self.pairs)

    def stages(self, key: Key) -> Iterator[Stage]:
        """Step by step."""
        for i, (transform, p) in enumerate(self.pairs):
            here = key.at(i)
            yield [(transform, here.at(1).take(here.uniform() < p))]

    def arguments(self) -> dict[str, Any]:
        """The steps, each with its p."""
        return {"steps": [{"transform": transform, "p": p} for transform, p in self.pairs]}

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any]) -> Self:
        """The chain of these steps."""
        steps = arguments.get("steps")
        if set(arguments) != {"steps"} or not isinstance(steps, list):
            raise ArgumentError("", "must have a list of steps and nothing else", sorted(arguments))
        for i, step in enumerate(steps):
            if not isinstance(step, dict) or set(step) != {"transform", "p"}:
                raise ArgumentError(f"steps/{i}", 'must be {"transform": ..., "p": ...}', step)
        return cls([(step["transform"], step["p"]) for step in steps])

    def __str__(self) -> str:
        return f"Chain({', '.join(str(step) + ('' if p == 1 else f' p={p:g}') for step, p in self.pairs)})"


PALETTE: tuple[type[Transform], ...] = (
    Identity,
    op.ShearX,
    op.ShearY,
    op.TranslateX,
    op.TranslateY,
    op.Rotate,
    op.Brightness,
    op.Color,
    op.Contrast,
    op.Sharpness,
    op.Posterize,
    op.Solarize,
    op.AutoContrast,
    op.Equalize,
)
"""What RandAugment and TrivialAugment choose from."""


@dataclass(frozen=True)
class Choice:
    """Draws for each picture one of several operations, at its own level."""

    kinds: Sequence[type[Transform]]
    fill: int
    wide: bool

    def draw(self, which: NDArray[np.int64], level: NDArray[np.float64], key: Key, shape: Shape) -> Plan:
        """The operation with number `which` for each picture; none where there is no such number."""
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

    def limit(self, kind: type[op.Operation], shape: Shape) -> float:
        """The parameter at level 1; the wide range of translations is in pixels."""
        if not self.wide:
            return kind.limit
        if kind in (op.TranslateX, op.TranslateY):
            return kind.wide / (shape.width if kind is op.TranslateX else shape.height)
        return kind.wide


@dataclass(frozen=True)
class RandAugment(Transform):
    """n operations in a row, each any of fourteen, all at magnitude m of 30 (Cubuk et al. 2020)."""

    n: int = 2
    m: int = 9
    fill: int = op.FILL

    def __post_init__(self) -> None:
        whole_number("n", self.n, 1, 16)
        whole_number("m", self.m, 0, 30)
        whole_number("fill", self.fill, 0, 255)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """N operations for each picture."""
        plan: Plan = []
        for i in range(self.n):
            here = key.at(i)
            which = here.below(len(PALETTE), CHOICE)
            plan += Choice(PALETTE, self.fill, wide=False).draw(which, np.full(len(key), self.m / 30), here, shape)
        return plan


@dataclass(frozen=True)
class TrivialAugment(Transform):
    """One operation, any of fourteen, at any of 31 magnitudes of the wide range (Müller and Hutter 2021)."""

    fill: int = op.FILL

    def __post_init__(self) -> None:
        whole_number("fill", self.fill, 0, 255)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """An operation and a magnitude for each picture."""
        which, level = key.below(len(PALETTE), CHOICE), key.below(31, op.LEVEL) / 30
        return Choice(PALETTE, self.fill, wide=True).draw(which, level, key, shape)


@dataclass(frozen=True)
class AutoAugment(Transform):
    """A policy that AutoAugment's authors found and published: 25 pairs of operations (Cubuk et al. 2019)."""

    policy: str = "cifar10"
    fill: int = op.FILL

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ArgumentError("policy", f"must be one of {', '.join(POLICIES)}", self.policy)
        whole_number("fill", self.fill, 0, 255)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """A pair for each picture; each of the two with its probability."""
        table = POLICIES[self.policy]
        pair = key.below(len(table), CHOICE)
        names = sorted({name for row in table for name, _, _ in row})
        kinds = [getattr(op, name) for name in names]
        plan: Plan = []
        for place in range(2):
            here = key.at(place)
            which = np.array([names.index(row[place][0]) for row in table])[pair]
            chance = np.array([row[place][1] for row in table])[pair]
            level = np.array([(row[place][2] or 0) / 9 for row in table])[pair]
            which = np.where(here.uniform(CHOICE) < chance, which, -1)
            plan += Choice(kinds, self.fill, wide=False).draw(which, level, here, shape)
        return plan


CHOICE = 8
"""The counter of the draw that chooses an operation; an operation's own draws come before it."""
