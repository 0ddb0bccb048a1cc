"""The expected loss over a tree, exactly: every way through it, weighted by its probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.policies import Tree

Losses = NDArray[np.float64]


class Way(NamedTuple):
    """One way through a tree: its probability, and a tree that always takes it, with the same draws."""

    probability: float
    tree: Tree
    nodes: tuple[int, ...]
    """The nodes that are applied, in order."""


def ways(tree: Tree) -> list[Way]:
    """Every way through a tree that can be taken; the probabilities sum to 1."""
    return list(onward(tree, 1, Way(1.0, Tree(), ())))


def onward(tree: Tree, index: int, so_far: Way) -> Iterator[Way]:
    """The ways on from a node."""
    if index not in tree.nodes:
        yield so_far
        return
    for here in through(tree, index, so_far):
        left = tree.p_left(index)
        if left is None:
            yield here
        else:
            for child, chance in ((2 * index, left), (2 * index + 1, 1 - left)):
                if chance > 0:
                    yield from onward(tree, child, here._replace(probability=here.probability * chance))


def through(tree: Tree, index: int, so_far: Way) -> Iterator[Way]:
    """A node applied and, at the root, not applied."""
    node = tree.nodes[index]
    applied = node.p if index == 1 else 1.0
    for chance, done in ((applied, True), (1 - applied, False)):
        if chance > 0:
            longer = so_far.tree.with_node(index, node.transform, 1.0 if done else 0.0)
            nodes = (*so_far.nodes, index) if done else so_far.nodes
            yield Way(so_far.probability * chance, longer, nodes)


def arrivals(tree: Tree, node: int) -> tuple[float, list[Way]]:
    """How probable it is that a sample comes to a node's parent, and the ways in which it does (these sum to 1)."""
    found = [Way(1.0, Tree(), ())]
    reach = 1.0
    for shift in range(node.bit_length() - 1, 0, -1):
        index = node >> shift
        found = [longer for way in found for longer in through(tree, index, way)]
        child = node >> (shift - 1)
        if child != node:
            left = tree.p_left(index) or 0.0
            reach *= left if child % 2 == 0 else 1 - left
    return reach, found


class Expectation:
    """Expected losses over trees, each way evaluated once."""

    def __init__(self, evaluate: Callable[[Tree], Losses]) -> None:
        self.evaluate = evaluate
        self.known: dict[Tree, Losses] = {}
        self.evaluations = 0

    def of(self, found: list[Way]) -> Losses:
        """The weighted losses over some ways."""
        total: Losses = np.sum([way.probability * self.along(way.tree) for way in found], axis=0)
        return total

    def along(self, way: Tree) -> Losses:
        """The losses along one way."""
        applied = way if any(node.p for node in way.nodes.values()) else Tree()
        if applied not in self.known:
            self.known[applied] = self.evaluate(applied)
            self.evaluations += 1
        return self.known[applied]
