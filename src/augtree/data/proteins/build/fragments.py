"""Joins AlphaFold's overlapping fragments of a long protein into one graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from augtree.data.proteins.build.edges import Graph, Ints, packed, unpacked
from augtree.errors import DataError


def join(fragments: Sequence[Graph]) -> Graph:
    """One graph over all residue numbers that occur.

    Fragments lie in coordinates of their own, so that only distances within a fragment mean something. Each residue,
    and each pair of residues, counts as it is in that fragment, among those that reach over it, whose middle is
    nearest: there it has most of its surroundings.
    """
    for fragment in fragments:
        if (np.diff(fragment.numbers) <= 0).any():
            raise DataError("must have one chain with rising residue numbers in each fragment, to be joined")
    low = np.array([fragment.numbers[0] for fragment in fragments], np.int64)
    high = np.array([fragment.numbers[-1] for fragment in fragments], np.int64)
    numbers, kept, pairs = [], [], []
    for k, fragment in enumerate(fragments):
        at = fragment.numbers.astype(np.int64)
        kept.append(home(at, at, low, high) == k)
        numbers.append(at)
        ends = at[unpacked(fragment.up_degree, fragment.offset)]
        pairs.append(ends[:, home(ends[0], ends[1], low, high) == k])
    # Where the nearest fragment lacks a residue, one that has it counts.
    every, home_first = np.concatenate(numbers), np.argsort(~np.concatenate(kept), kind="stable")
    nodes, which = np.unique(every[home_first], return_index=True)
    which = home_first[which]
    ends = np.searchsorted(nodes, np.concatenate(pairs, axis=1))
    up_degree, offset = packed(ends[:, np.lexsort((ends[1], ends[0]))], len(nodes))
    return Graph(
        residues=np.concatenate([fragment.residues for fragment in fragments])[which],
        numbers=nodes.astype(np.int32),
        plddt=np.concatenate([fragment.plddt for fragment in fragments])[which],
        up_degree=up_degree,
        offset=offset,
        chains=1,
        skipped=sum(fragment.skipped for fragment in fragments),
    )


def home(first: Ints, second: Ints, low: Ints, high: Ints) -> NDArray[np.intp]:
    """For each pair of residue numbers, the fragment that reaches over both and whose middle is nearest."""
    far = np.abs((first + second)[:, None] - (low + high)[None])
    outside = (first[:, None] < low) | (second[:, None] > high)
    nearest: NDArray[np.intp] = np.where(outside, np.iinfo(np.int64).max, far).argmin(axis=1)
    return nearest
