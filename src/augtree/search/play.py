"""What is in play: the factors of a space not found harmful.

A policy of the mixture applies each basic (flip, turn, crop) or not, then one style (a candidate of the space), then
each of the user's own transforms or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from augtree.policies import Tree
from augtree.transforms import Chain, Identity, OneOf, Space
from augtree.transforms.base import Transform
from augtree.transforms.traits import EVERY_SAMPLE, SYMMETRIES, TRAIT_WORDS, traits

MIN_TRAIT_SHARE = 1 / 12
"""Only traits of more than this share of the candidates are tested: others occur in too few samples."""
BASICS = (*SYMMETRIES, "PadCrop")
"""Basics that need no look: flips and turns are tested by predictions, and crops have never done real harm."""
HALF = 0.5
"""The share of samples of the mixture that each basic is applied to; and each of the user's own transforms."""


@dataclass(frozen=True)
class Play:
    """A space without the factors that are out. Factors are its basics, by name, and the traits of its candidates."""

    space: Space
    out: frozenset[str] = frozenset()

    @property
    def basic_factors(self) -> tuple[str, ...]:
        """The basics in play, and the user's own transforms, by name."""
        named = [part.name for part in (*self.space.basics, *self.space.own)]
        return tuple(name for name in dict.fromkeys(named) if name not in self.out)

    @property
    def factors(self) -> tuple[str, ...]:
        """What could leave play: basics and own transforms, traits of candidates, and augmenting every sample."""
        held = Counter(trait for style in self.space.distinct for trait in sorted(traits(style)))
        common = [trait for trait, count in held.items() if count > MIN_TRAIT_SHARE * len(self.space.distinct)]
        found = dict.fromkeys([*self.basic_factors, *common, EVERY_SAMPLE])
        return tuple(name for name in found if name not in self.out)

    def __str__(self) -> str:
        basics = [factor_in_words(name) for name in self.basic_factors]
        styles = ", ".join(str(style) for style in self.styles)
        one = f"one of {len(self.styles)} styles ({styles})" if len(self.styles) > 1 else styles
        return f"{', '.join(basics)}, each or not, and {one}" if basics else one

    def without(self, factors: Iterable[str]) -> Play:
        """The same without some factors."""
        return replace(self, out=self.out | frozenset(factors))

    def with_factors(self, factors: Iterable[str]) -> Play:
        """The same with some factors that were out."""
        return replace(self, out=self.out - frozenset(factors))

    @property
    def symmetries(self) -> tuple[str, ...]:
        """The flips and turns of the space, in play or not."""
        return tuple(basic.name for basic in self.space.basics if basic.name in SYMMETRIES)

    @property
    def needs_looks(self) -> bool:
        """Whether the space has something that only trainings can judge: own transforms, operations on graphs."""
        basics = self.space.basics
        return not basics or bool(self.space.own) or any(basic.name not in BASICS for basic in basics)

    @property
    def basics(self) -> tuple[Transform, ...]:
        """The basics in play."""
        return tuple(basic for basic in self.space.basics if basic.name not in self.out)

    @property
    def styles(self) -> tuple[Transform, ...]:
        """The candidates in play; Identity always is."""
        return tuple(style for style in self.space.distinct if not traits(style) & self.out)

    @property
    def own(self) -> tuple[Transform, ...]:
        """The user's own transforms in play, which may follow any style."""
        return tuple(each for each in self.space.own if not traits(each) & self.out)

    @property
    def augmented_share(self) -> float:
        """The share of samples that are augmented at all."""
        return HALF if EVERY_SAMPLE in self.out else 1.0

    def mixture(self) -> Tree:
        """The policy of the trunk: each basic or not, any style, each own transform or not."""
        steps: list[tuple[Transform, float]] = [(basic, HALF) for basic in self.basics]
        return self.tree(*steps, one_of(self.styles), *((transform, HALF) for transform in self.own))

    def mixture_with_shared_draws(self) -> Tree:
        """The same mixture, with what is out left in its place at p = 0, so that mixtures share their draws."""
        steps: list[tuple[Transform, float]] = []
        steps += [(basic, HALF if basic in self.basics else 0.0) for basic in self.space.basics]
        steps += [(one_of(self.styles), 1.0)]
        steps += [(each, HALF if each in self.own else 0.0) for each in self.space.own]
        return Tree().with_node(1, Chain(steps), self.augmented_share)

    def over_basics(self, style: Transform) -> Tree:
        """One style, after all basics in play."""
        return self.tree(*self.basics, style)

    def tree(self, *steps: Transform | tuple[Transform, float] | None) -> Tree:
        """A tree with these steps at the root; the empty tree where no step does anything."""
        done = [step for step in steps if step is not None and not isinstance(step, Identity)]
        if not done:
            return Tree()
        alone = done[0] if len(done) == 1 and isinstance(done[0], Transform) else Chain(done)
        return Tree().with_node(1, alone, self.augmented_share)


def one_of(styles: Sequence[Transform]) -> Transform:
    """One of them, or the only one."""
    return styles[0] if len(styles) == 1 else OneOf(styles)


UNGROUPED = ""
"""The one group of a search without groups."""

Plays = Mapping[str, Play]
"""What is in play in each group, by name; a search without groups has one group, named ''."""


def factor_in_words(factor: str) -> str:
    """A factor in plain words."""
    return TRAIT_WORDS.get(factor, factor)
