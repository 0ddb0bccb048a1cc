"""The expected loss over a tree, exactly: every path through it, weighted by its probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.policies import Tree

Losses = NDArray[np.float64]


class TreePath(NamedTuple):
    """One path through a tree: its probability, and a tree that always takes it, with the same draws."""

    probability: float
    tree: Tree


def through(tree: Tree, index: int, so_far: TreePath) -> Iterator[TreePath]:
    """A node applied and, at the root, not applied."""
    node = tree.nodes[index]
    applied = node.p if index == 1 else 1.0
    for probability, p in ((applied, 1.0), (1 - applied, 0.0)):
        if probability > 0:
            yield TreePath(so_far.probability * probability, so_far.tree.with_node(index, node.transform, p))


def arrivals(tree: Tree, node: int) -> tuple[float, list[TreePath]]:
    """The probability that a sample comes to a node's parent, and the paths by which it does (these sum to 1)."""
    paths = [TreePath(1.0, Tree())]
    reach = 1.0
    for shift in range(node.bit_length() - 1, 0, -1):
        index = node >> shift
        paths = [longer for path in paths for longer in through(tree, index, path)]
        child = node >> (shift - 1)
        if child != node:
            left = tree.p_left(index) or 0.0
            reach *= left if child % 2 == 0 else 1 - left
    return reach, paths


def expected(paths: Sequence[TreePath], evaluate: Callable[[Tree], Losses]) -> Losses:
    """The losses over some paths, weighted by their probabilities."""
    total: Losses = np.sum([path.probability * evaluate(applied(path.tree)) for path in paths], axis=0)
    return total


def applied(path: Tree) -> Tree:
    """The tree of a path; the empty one where no node is applied."""
    return path if any(node.p for node in path.nodes.values()) else Tree()
