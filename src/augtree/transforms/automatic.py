"""Automatic augmentation without a search: RandAugment, TrivialAugment and AutoAugment's published policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from augtree.errors import InputError, one_of, whole_number
from augtree.keys import Key
from augtree.transforms import images
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.base import Identity, Transform
from augtree.transforms.composites import CHOICE
from augtree.transforms.geometry import Geometry, Rotate, ShearX, ShearY, TranslateX, TranslateY
from augtree.transforms.operation import FILL, LEVEL, Operation, signs
from augtree.transforms.pictures import Plan, Shape, merged

GEOMETRY: tuple[type[Transform], ...] = (ShearX, ShearY, TranslateX, TranslateY, Rotate)
TONES: tuple[type[Transform], ...] = (
    *(images.Brightness, images.Color, images.Contrast, images.Sharpness),
    *(images.Posterize, images.Solarize, images.AutoContrast, images.Equalize),
)
PALETTE: tuple[type[Transform], ...] = (Identity, *GEOMETRY, *TONES)
"""What RandAugment and TrivialAugment choose from."""
KINDS = {kind.__name__: kind for kind in images.OPERATIONS}


@dataclass(frozen=True)
class Choice:
    """Draws for each picture one of several operations, at its own level."""

    name: str
    kinds: Sequence[type[Transform]]
    fill: int
    wide: bool

    def draw(self, which: NDArray[np.int64], level: NDArray[np.float64], key: Key, shape: Shape) -> Plan:
        """The operation with number `which` for each picture; none where there is no such number."""
        if images.Color in self.kinds and shape.channels not in (1, 3):  # not only where Color is drawn
            raise InputError(f"{self.name} needs pictures of 1 or 3 channels, got {shape.channels}")
        sign = signs(key)
        plans: list[Plan] = []
        for place in np.unique(which).tolist():
            kind: type[Transform] = self.kinds[place] if place >= 0 else Identity
            if issubclass(kind, Operation):
                rows = np.flatnonzero(which == place)
                operation = kind(1.0, fill=self.fill) if issubclass(kind, Geometry) else kind(1.0)
                values = operation.values(level[rows], sign[rows], self.limit(kind, shape))
                plans.append([[operation.work(key.take(rows), values, shape)]])
        return merged(plans)

    def describe(self, which: NDArray[np.int64], level: NDArray[np.float64]) -> list[tuple[str, ...]]:
        """The operation and level of each picture, in words."""
        names = [kind.__name__ for kind in self.kinds]
        pairs = zip(which.tolist(), level.tolist(), strict=True)
        return [(f"{names[i]} {x:.2g}",) if i >= 0 and names[i] != "Identity" else () for i, x in pairs]

    def limit(self, kind: type[Operation], shape: Shape) -> float:
        """The parameter at level 1; the wide range of translations is in pixels."""
        if not self.wide:
            return kind.limit
        if kind in (TranslateX, TranslateY):
            return kind.wide / (shape.width if kind is TranslateX else shape.height)
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

    def describe(self, key: Key) -> list[tuple[str, ...]]:
        """The operations of each picture, in words."""
        places = [choice.describe(which, level) for choice, which, level, _ in self.choices(key)]
        return [tuple(word for words in row for word in words) for row in zip(*places, strict=True)]


@dataclass(frozen=True)
class RandAugment(Drawn):
    """RandAugment (Cubuk et al. 2020): n operations in a row, each drawn from fourteen, all at magnitude m.

    >>> print(RandAugment(), RandAugment(n=1, m=14))
    RandAugment RandAugment(n=1, m=14)
    """

    palette: ClassVar[tuple[type[Transform], ...]] = PALETTE
    n: int = 2
    """Operations in a row."""
    m: int = 9
    """Their magnitude, of 30."""
    fill: int = FILL
    """What geometric operations leave in uncovered pixels."""

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
    """RandAugment, only with the operations that move pixels."""

    palette = (Identity, *GEOMETRY)


@dataclass(frozen=True)
class RandTones(RandAugment):
    """RandAugment, only with the operations that change values."""

    palette = (Identity, *TONES)


@dataclass(frozen=True)
class TrivialAugment(Drawn):
    """TrivialAugment (Müller and Hutter 2021): one of fourteen operations, at one of 31 magnitudes of the wide range.

    >>> import torch
    >>> pictures = torch.randint(256, (4, 3, 8, 8), dtype=torch.uint8)
    >>> TrivialAugment()(pictures, seed=0).shape
    torch.Size([4, 3, 8, 8])
    """

    palette: ClassVar[tuple[type[Transform], ...]] = PALETTE
    fill: int = FILL
    """What geometric operations leave in uncovered pixels."""

    def __post_init__(self) -> None:
        whole_number("fill", self.fill, 0, 255)

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """One operation at one of 31 levels."""
        choice = Choice(self.name, self.palette, self.fill, wide=True)
        yield choice, key.below(len(self.palette), CHOICE), key.below(31, LEVEL) / 30, key


@dataclass(frozen=True)
class TrivialGeometry(TrivialAugment):
    """TrivialAugment, only with the operations that move pixels."""

    palette = (Identity, *GEOMETRY)


@dataclass(frozen=True)
class TrivialTones(TrivialAugment):
    """TrivialAugment, only with the operations that change values."""

    palette = (Identity, *TONES)


@dataclass(frozen=True)
class AutoAugment(Drawn):
    """A published policy of AutoAugment (Cubuk et al. 2019): one of 25 pairs of operations for each picture.

    >>> print(AutoAugment("svhn"))
    AutoAugment(policy=svhn)
    """

    policy: str = "cifar10"
    """The data set that it was searched on: cifar10, svhn or imagenet."""
    fill: int = FILL
    """What geometric operations leave in uncovered pixels."""

    def __post_init__(self) -> None:
        one_of("policy", self.policy, POLICIES)
        whole_number("fill", self.fill, 0, 255)

    def choices(self, key: Key) -> Iterator[tuple[Choice, NDArray[np.int64], NDArray[np.float64], Key]]:
        """A pair of operations, each with its probability and level."""
        table = POLICIES[self.policy]
        pair = key.below(len(table), CHOICE)
        names = sorted({name for row in table for name, _, _ in row})
        choice = Choice(self.name, [KINDS[name] for name in names], self.fill, wide=False)
        for place in range(2):
            here = key.at(place)
            which = np.array([names.index(row[place][0]) for row in table])[pair]
            chance = np.array([row[place][1] for row in table])[pair]
            level = np.array([(row[place][2] or 0) / 9 for row in table])[pair]
            yield choice, np.where(here.uniform(CHOICE) < chance, which, -1), level, here
