"""Random numbers by position, as `augtree.keys` draws them, for one sample at a time and in plain Python."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from augtree.keys import DRAW, FOLD, GOLDEN, MASK, MIX_1, MIX_2

ROLE = int.from_bytes(hashlib.sha256(b"apply").digest()[:8], "little")


class Draws:
    """Random numbers of one sample: hashes of seed, step, sample, place in the policy and counter."""

    def __init__(self, state: int, row: int = 0, batch: Any = None) -> None:
        self.state = state
        self.row, self.batch = row, batch  # the sample's place in its batch, and what is known about the batch

    def at(self, place: int) -> Draws:
        """The numbers for one part of the policy."""
        return Draws(fold(self.state, place, FOLD), self.row, self.batch)

    def uniform(self, counter: int = 0) -> float:
        """A number in [0, 1)."""
        return (fold(self.state, counter, DRAW) >> 11) * 2.0**-53

    def below(self, high: int, counter: int = 0) -> int:
        """A whole number in [0, high)."""
        return int(self.uniform(counter) * high)


def draws_of(seed: int, step: int, index: int, row: int = 0, batch: Any = None) -> Draws:
    """The numbers of the sample that has this index in its data set."""
    start = fold(fold(ROLE, seed, FOLD), step, FOLD)
    return Draws(mix(start + index * GOLDEN & MASK), row, batch)


def new_seed(generator: torch.Generator | None = None) -> int:
    """A seed from a generator; None is torch's own."""
    return int(torch.randint(2**63 - 1, (), generator=generator).item())


def fold(state: int, value: int, purpose: int) -> int:
    """Mix a number into a state."""
    return mix((state ^ purpose) + value * GOLDEN & MASK)


def mix(z: int) -> int:
    """Scramble 64 bits: the finaliser of splitmix64."""
    z = (z ^ z >> 30) * MIX_1 & MASK
    z = (z ^ z >> 27) * MIX_2 & MASK
    return z ^ z >> 31


def level(draws: Draws, magnitude: float) -> float:
    """A level between a magnitude and 0.2 below it, or 0."""
    return magnitude - min(0.2, magnitude) * draws.uniform(0)


def sign(draws: Draws) -> float:
    """Plus or minus one."""
    return -1.0 if draws.uniform(1) < 0.5 else 1.0


def between(low: float, high: float, uniform: float) -> float:
    """A number spread over an interval."""
    return low + (high - low) * uniform
