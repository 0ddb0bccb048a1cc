"""The base of AutoAugment's operations: a magnitude, from which a parameter is drawn for each picture.

A candidate has a magnitude m in (0, 1]. For each picture a level is drawn uniformly from the bin (m - 0.2, m]
and turned into the operation's parameter (its *value*): up to `limit` at level 1, with a random sign where the
operation has two sides. `wide` is the limit in TrivialAugment's wide range.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from augtree.errors import InputError
from augtree.keys import Key
from augtree.transforms.base import Transform, check_magnitude
from augtree.transforms.pictures import Plan, Shape, Work

Floats = NDArray[np.float64]
BIN = 0.2
"""How far below the magnitude a level may lie."""
FILL = 128
"""What geometry leaves uncovered and Cutout covers becomes this grey, unless another fill is given."""
LEVEL, SIGN, EXTRA = 0, 1, 2
"""Counters of an operation's draws."""


@dataclass(frozen=True)
class Operation(Transform):
    """An operation with a parameter that grows with the level."""

    magnitude: float = field()
    """Its strength, in (0, 1]."""
    scaled = True
    limit: ClassVar[float] = 0.0
    wide: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", check_magnitude(self.magnitude))

    def draw(self, key: Key, shape: Shape) -> Plan:
        """A level and a sign for each picture."""
        level = self.magnitude - min(BIN, self.magnitude) * key.uniform(LEVEL)
        return [[self.work(key, self.values(level, signs(key), self.limit), shape)]]

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:
        """The parameter at each level."""
        return limit * level * (sign if self.signed else 1)

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """The operation on the key's rows, with these parameters."""
        raise NotImplementedError


def signs(key: Key) -> Floats:
    """Plus or minus one for each picture."""
    return np.where(key.uniform(SIGN) < 0.5, -1.0, 1.0)


def need_colour(transform: Transform, shape: Shape) -> None:
    """Raise unless the pictures are grey or RGB."""
    if shape.channels not in (1, 3):
        raise InputError(f"{transform.name} needs pictures of 1 or 3 channels, got {shape.channels}")
