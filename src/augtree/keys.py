"""Randomness by position.

A draw is a hash of where it is used: (seed, role, step, sample index, node, counter). Nothing remembers a
generator's state, so a batch may be split, shuffled, resumed or sent to another machine without changing a
byte; and nothing knows which candidate asks, so two candidates at one node see the same numbers.

The hash is splitmix64's finaliser, which exists twice here: in numpy for the few numbers a sample that are
always drawn on the CPU, and in torch for numbers a pixel, a node or an edge, drawn where the data is.
Both give the same bits.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import ArgumentError

GOLDEN = 0x9E3779B97F4A7C15
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
FOLD, DRAW, ELEMENT = 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7, 0xABC98388FB8FAC03
"""What a number is mixed in as, so that node 3, draw 3 and pixel 3 have nothing in common."""

U64 = NDArray[np.uint64]
MASK = (1 << 64) - 1


def mix(z: U64) -> U64:
    """Scramble 64-bit words (a bijection; numpy)."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


_30, _27, _31, _MIX_1, _MIX_2 = (np.uint64(word) for word in (30, 27, 31, MIX_1, MIX_2))


def fold(state: U64, value: int, purpose: int) -> U64:
    """Mix a number into states; numbers of different purposes do not meet."""
    return mix((state ^ np.uint64(purpose)) + np.uint64(value * GOLDEN & MASK))


def fold_word(state: int, value: int, purpose: int) -> int:
    """`fold` for one state, which Python's numbers do faster."""
    z = (state ^ purpose) + value * GOLDEN & MASK
    z = (z ^ z >> 30) * MIX_1 & MASK
    z = (z ^ z >> 27) * MIX_2 & MASK
    return z ^ z >> 31


@cache
def hash_role(role: str) -> int:
    """The 64-bit hash of a role."""
    return int.from_bytes(hashlib.sha256(role.encode()).digest()[:8], "little")


def as_int(field: str, value: Any) -> int:
    """A whole number of Python, numpy or torch as a Python int."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise ArgumentError(field, "must be a whole number", value)


@dataclass(frozen=True, eq=False)
class Key:
    """Counter-based random numbers: one stream for each sample of a batch."""

    state: U64
    """One word a sample."""
    rows: NDArray[np.int64]
    """Where each sample stands in its batch."""

    @staticmethod
    def of(seed: int, index: Sequence[int] | NDArray[np.int64], *, role: str = "apply", step: int = 0) -> Key:
        """The key of a batch whose samples have these indices in their data set."""
        seed, step = as_int("seed", seed), as_int("step", step)
        samples = np.asarray(index, dtype=np.int64).reshape(-1)
        start = np.uint64(fold_word(fold_word(hash_role(role), seed, FOLD), step, FOLD))
        return Key(mix(start + samples.view(np.uint64) * np.uint64(GOLDEN)), np.arange(len(samples)))

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, node: int) -> Key:
        """The key for one node (of a tree, of a chain, of whatever has parts)."""
        return Key(fold(self.state, node, FOLD), self.rows)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Key:
        """The key for some of the samples."""
        return Key(self.state[which], self.rows[which])

    def uniform(self, counter: int = 0) -> NDArray[np.float64]:
        """A number in [0, 1) for each sample."""
        return (fold(self.state, counter, DRAW) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, high: int | NDArray[Any], counter: int = 0) -> NDArray[np.int64]:
        """A whole number in [0, high) for each sample."""
        return (self.uniform(counter) * high).astype(np.int64)

    def seeds(self) -> list[int]:
        """A seed for each sample, for generators that are not ours."""
        return [int(word) for word in fold(self.state, 0, DRAW) >> np.uint64(32)]


def fresh_seed() -> int:
    """A seed from torch's CPU generator: what an unseeded call takes."""
    return int(torch.randint(2**63 - 1, (), device="cpu").item())


def signed(word: int) -> int:
    """A 64-bit word as torch's signed integers write it."""
    word &= MASK
    return word - (1 << 64) if word >> 63 else word


def shift(z: Tensor, by: int) -> Tensor:
    """Shift words right, filling with zeros (torch's own shift keeps the sign)."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def mix_tensor(z: Tensor) -> Tensor:
    """`mix` for int64 tensors on any device."""
    z = (z ^ shift(z, 30)) * signed(MIX_1)
    z = (z ^ shift(z, 27)) * signed(MIX_2)
    return z ^ shift(z, 31)


def element_bits(state: Tensor, element: Tensor, counter: int = 0) -> Tensor:
    """63 random bits, as non-negative int64, for each (state of its sample, number within its sample)."""
    return shift(mix_tensor((state ^ signed(ELEMENT + counter * DRAW)) + element * signed(GOLDEN)), 1)


def element_words(state: NDArray[np.int64], element: NDArray[np.int64], counter: int = 0) -> NDArray[np.int64]:
    """`element_bits` for numpy's arrays."""
    words = (state ^ signed(ELEMENT + counter * DRAW)) + element * signed(GOLDEN)
    return (mix(words.view(np.uint64)) >> np.uint64(1)).view(np.int64)
