"""Which residues are neighbours, and the compact form of such a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import need

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """A protein's residues and edges. Edge (i, j), i < j, is `offset` j - i; node i has `up_degree[i]` of them."""

    residues: NDArray[np.uint8]
    numbers: NDArray[np.int32]
    plddt: NDArray[np.float32]
    up_degree: NDArray[np.int32]
    offset: NDArray[np.int32]
    chains: int
    skipped: int


def near_pairs(points: NDArray[np.float64], cutoff: float) -> Ints:
    """The pairs i < j that are closer than the cutoff, [2,E], sorted; by a k-d tree."""
    tree = need("scipy.spatial", "protein").cKDTree(points)
    # The tree finds up to and including its radius, with its own rounding; the distance itself decides.
    pairs: Ints = tree.query_pairs(cutoff * (1 + 1e-9), output_type="ndarray").astype(np.int64)
    pairs = np.sort(pairs, axis=1)
    near = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1) < cutoff**2
    pairs = pairs[near]
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T


def packed(pairs: Ints, nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sorted pairs i < j as up_degree and offset."""
    up_degree = np.bincount(pairs[0], minlength=nodes).astype(np.int32)
    return up_degree, (pairs[1] - pairs[0]).astype(np.int32)


def unpacked(up_degree: NDArray[Any], offset: NDArray[Any]) -> Ints:
    """Sorted pairs i < j, [2,E].

    >>> unpacked(np.array([2, 1, 0]), np.array([1, 2, 1])).tolist()
    [[0, 0, 1], [1, 2, 2]]
    """
    first = np.repeat(np.arange(len(up_degree)), up_degree)
    return np.stack([first, first + offset])


def both_ways(pairs: Ints, nodes: int) -> Ints:
    """Each pair in both directions, sorted, as an edge_index."""
    first, second = np.concatenate([pairs, pairs[::-1]], axis=1)
    order = np.argsort(first * nodes + second, kind="stable")
    return np.stack([first[order], second[order]])
