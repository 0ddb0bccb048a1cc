"""Names of classes and groups, and the numbers that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Every name once, sorted; as numbers where all are whole numbers.

    >>> in_order(["10", "9", "10"]), in_order(["dog", "10", "9"])
    (('9', '10'), ('10', '9', 'dog'))
    """
    once = set(names)
    if all(name.isascii() and name.removeprefix("-").isdigit() for name in once):
        return tuple(sorted(once, key=lambda name: (int(name), name)))
    return tuple(sorted(once))


def numbered(names: Sequence[str], known: Sequence[str]) -> Ints:
    """The place of each name among the known ones."""
    place = {name: i for i, name in enumerate(known)}
    return np.fromiter((place[name] for name in names), np.int64, len(names))


def matrix(sets: Sequence[Sequence[str]], known: Sequence[str]) -> NDArray[np.uint8]:
    """0 or 1 for each sample and class, from the names of each sample's classes."""
    place = {name: i for i, name in enumerate(known)}
    found = np.zeros((len(sets), len(known)), np.uint8)
    for row, names in zip(found, sets, strict=True):
        row[[place[name] for name in names]] = 1
    return found
