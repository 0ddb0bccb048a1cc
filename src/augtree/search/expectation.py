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
    nodes: tuple[int, ...]
    """The nodes that are applied, in order."""


def tree_paths(tree: Tree) -> list[TreePath]:
    """Every path through a tree that can be taken; the probabilities sum to 1."""
    return list(onward(tree, 1, TreePath(1.0, Tree(), ())))


def onward(tree: Tree, index: int, so_far: TreePath) -> Iterator[TreePath]:
    """The paths on from a node."""
    if index not in tree.nodes:
        yield so_far
        return
    for here in through(tree, index, so_far):
        left = tree.p_left(index)
        if left is None:
            yield here
        else:
            for child, probability in ((2 * index, left), (2 * index + 1, 1 - left)):
                if probability > 0:
                    yield from onward(tree, child, here._replace(probability=here.probability * probability))


def through(tree: Tree, index: int, so_far: TreePath) -> Iterator[TreePath]:
    """A node applied and, at the root, not applied."""
    node = tree.nodes[index]
    applied = node.p if index == 1 else 1.0
    for probability, done in ((applied, True), (1 - applied, False)):
        if probability > 0:
            longer = so_far.tree.with_node(index, node.transform, 1.0 if done else 0.0)
            nodes = (*so_far.nodes, index) if done else so_far.nodes
            yield TreePath(so_far.probability * probability, longer, nodes)


def arrivals(tree: Tree, node: int) -> tuple[float, list[TreePath]]:
    """The probability that a sample comes to a node's parent, and the paths by which it does (these sum to 1)."""
    paths = [TreePath(1.0, Tree(), ())]
    reach = 1.0
    for shift in range(node.bit_length() - 1, 0, -1):
        index = node >> shift
        paths = [longer for path in paths for longer in through(tree, index, path)]
        child = node >> (shift - 1)
        if child != node:
            left = tree.p_left(index) or 0.0
            reach *= left if child % 2 == 0 else 1 - left
    return reach, paths


class Expectation:
    """Expected losses over trees, each path evaluated once."""

    def __init__(self, evaluate: Callable[[Tree], Losses]) -> None:
        self.evaluate = evaluate
        self.known: dict[Tree, Losses] = {}
        self.evaluations = 0

    def over(self, paths: Sequence[TreePath]) -> Losses:
        """The losses over some paths, weighted by their probabilities."""
        total: Losses = np.sum([path.probability * self.along(path.tree) for path in paths], axis=0)
        return total

    def along(self, path: Tree) -> Losses:
        """The losses along one path."""
        applied = path if any(node.p for node in path.nodes.values()) else Tree()
        if applied not in self.known:
            self.known[applied] = self.evaluate(applied)
            self.evaluations += 1
        return self.known[applied]
