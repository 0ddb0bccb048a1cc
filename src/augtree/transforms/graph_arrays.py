"""Whole numbers as numpy's arrays on a CPU, and as torch's tensors elsewhere.

Molecules have a few dozen nodes, so that calls cost more than the work in them, and numpy's cost a third of torch's.
Operators and indices are the same for both, and so are most functions of `library`; the others are here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.keys import element_bits, element_words

Array = Any
"""A numpy array or a tensor of int64."""


def array(numbers: Tensor) -> Array:
    """The numbers of a tensor, which shares their memory."""
    return numbers.numpy() if numbers.is_cpu else numbers


def tensor(numbers: Array) -> Tensor:
    """The numbers as a tensor, which shares their memory."""
    return torch.from_numpy(numbers) if isinstance(numbers, np.ndarray) else numbers


def library(numbers: Array) -> Any:
    """The module with the functions for these numbers."""
    return np if isinstance(numbers, np.ndarray) else torch


def floats(numbers: Array) -> Array:
    """The numbers in double precision."""
    return numbers.astype(np.float64) if isinstance(numbers, np.ndarray) else numbers.double()


def whole(numbers: Array) -> Array:
    """The numbers without what comes after the point."""
    return numbers.astype(np.int64) if isinstance(numbers, np.ndarray) else numbers.long()


def random_bits(state: Array, element: Array, counter: int) -> Array:
    """63 random bits for each (state of its graph, number within its graph)."""
    return (element_words if isinstance(state, np.ndarray) else element_bits)(state, element, counter)


def up_to(count: int, like: Array) -> Array:
    """The numbers 0 .. count-1."""
    return np.arange(count) if isinstance(like, np.ndarray) else torch.arange(count, device=like.device)


def places(mask: Array) -> Array:
    """The numbers of the entries that hold; numpy, unlike torch, does not branch at each."""
    return mask.nonzero()[0] if isinstance(mask, np.ndarray) else mask.nonzero().view(-1)


def groups(counts: Array) -> Array:
    """The group of each entry, for groups of so many entries that stand one after the other."""
    numbers = up_to(len(counts), counts)
    return numbers.repeat(counts) if isinstance(counts, np.ndarray) else numbers.repeat_interleave(counts)


def numbered(counts: Array) -> tuple[Array, Array]:
    """The group of each entry, and the number of the entry within its group."""
    group = groups(counts)
    return group, up_to(len(group), group) - (counts.cumsum(0) - counts).take(group)


def stable_order(keys: Array, bits: int) -> Array:
    """What argsort(keys, stable=True) gives for keys of so many bits.

    Numpy's sort of values is several times as fast as any argsort on a CPU: keys and their numbers are sorted as one
    word. Keys that are too long for that are shortened, and those that then agree are sorted once more.
    """
    if not isinstance(keys, np.ndarray):
        return torch.argsort(keys, stable=True)
    room = len(keys).bit_length()
    short = max(bits + room - 63, 0)
    words = keys >> short
    words <<= room
    words |= np.arange(len(keys))
    words.sort()
    order = words & ((1 << room) - 1)
    if short:
        words >>= room
        same = words[1:] == words[:-1]
        if same.any():
            tied = places(np.append(same, False) | np.append(False, same))
            order[tied] = order[tied][np.argsort(keys[order[tied]], kind="stable")]
    return order
