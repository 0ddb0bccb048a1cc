"""Transforms made of others: independent steps in order, and one of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from augtree.errors import ArgumentError, number
from augtree.keys import Key
from augtree.transforms.base import Policy, Stage, Transform, common_domain
from augtree.transforms.pictures import Shape

MAX_CHAIN_STEPS = 64
MAX_CHOICES = 256
CHOICE = 8
"""The counter of the draw that chooses an operation; an operation's own draws come before it."""


class Composite(Transform):
    """A transform made of others, each with a number."""

    route = Policy.route
    describe = Policy.describe

    @property
    def pairs(self) -> tuple[tuple[Transform, float], ...]:
        """The transforms, each with its number."""
        raise NotImplementedError

    @property
    def domain(self) -> str:  # type: ignore[override]
        """That of the transforms."""
        return common_domain(transform for transform, _ in self.pairs)

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """Whether one of the transforms mixes samples."""
        return any(transform.mixes for transform, _ in self.pairs)


def pairs_of(field: str, parts: Any, counts: range, rule: str, number_name: str) -> list[tuple[Transform, Any]]:
    """The transforms among the parts, each with its number, which is 1 by default."""
    if isinstance(parts, str) or not isinstance(parts, Sequence) or len(parts) not in counts:
        raise ArgumentError(field, rule, parts)
    pairs = []
    for i, part in enumerate(parts):
        transform, value = part if isinstance(part, Sequence) and len(part) == 2 else (part, 1.0)
        if not isinstance(transform, Transform):
            raise ArgumentError(f"{field}/{i}", f"must be a transform, or a transform and its {number_name}", part)
        pairs.append((transform, value))
    if len({transform.domain for transform, _ in pairs} - {"any"}) > 1:
        raise ArgumentError(field, "must all work on pictures or all on graphs", [str(t) for t, _ in pairs])
    return pairs


@dataclass(frozen=True)
class Chain(Composite):
    """Independent steps in order, each applied with its own probability.

    >>> from augtree.transforms import ColorDistortion, GaussianBlur, RandomCrop
    >>> print(Chain([RandomCrop(), ColorDistortion(), (GaussianBlur(), 0.5)]))
    Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)
    """

    steps: Sequence[Transform | tuple[Transform, float]] = ()
    """Transforms, each alone or with the probability that it is applied."""

    def __post_init__(self) -> None:
        rule = f"must be a list of at most {MAX_CHAIN_STEPS} steps"
        steps = pairs_of("steps", self.steps, range(MAX_CHAIN_STEPS + 1), rule, "p")
        for i, (transform, p) in enumerate(steps):
            number(f"steps/{i}/p", p, 0, 1)
            if transform.whole and p not in (0, 1):
                rule = f"must be 1: {transform.name} changes shape or type, so it is for all samples"
                raise ArgumentError(f"steps/{i}/p", rule, p)
            if transform.final and i < len(steps) - 1:
                raise ArgumentError(f"steps/{i}", "must be the last step: it makes floats", str(transform))
        object.__setattr__(self, "steps", tuple((transform, float(p)) for transform, p in steps))

    @property
    def pairs(self) -> tuple[tuple[Transform, float], ...]:
        """The steps, each with its probability."""
        return self.steps  # type: ignore[return-value]

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
class OneOf(Composite):
    """One of several transforms, drawn for each sample.

    >>> from augtree.transforms import RandAugment, TrivialAugment
    >>> print(OneOf([(TrivialAugment(), 3), RandAugment(m=14)]))
    OneOf(TrivialAugment 75 % | RandAugment(m=14) 25 %)
    """

    choices: Sequence[Transform | tuple[Transform, float]] = ()
    """Transforms, each alone or with its relative weight, which is 1 by default."""

    def __post_init__(self) -> None:
        rule = f"must be a list of 1 to {MAX_CHOICES} transforms"
        given = pairs_of("choices", self.choices, range(1, MAX_CHOICES + 1), rule, "weight")
        choices = []
        for i, (transform, weight) in enumerate(given):
            if transform.whole:
                rule = "must not change shape or type, since it is for some samples only"
                raise ArgumentError(f"choices/{i}", rule, str(transform))
            choices.append((transform, number(f"choices/{i}/weight", weight, 0, 1e9, open_low=True)))
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
