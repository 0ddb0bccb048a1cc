"""A tree drawn at random: what the form of a tree gives without a search. A control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.baselines.base import Baseline
from augtree.baselines.candidates import kinds_for, made, magnitudes_for
from augtree.data import Dataset
from augtree.errors import whole_number
from augtree.keys import Key
from augtree.policies import Tree
from augtree.search.options import H
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


@dataclass(frozen=True)
class RandomTree(Baseline):
    """A full tree of random operations, magnitudes and probabilities, another for each seed.

    Examples
    --------
    >>> RandomTree(depth=2).spec()
    {'way': 'random-tree', 'depth': 2}

    """

    name = "random-tree"
    about = "a full tree of operations, magnitudes and probabilities drawn at random"
    source = "a control"
    kind = "control"
    costs = "1"
    settings = ("supervised", "semisupervised")
    domains = ("image", "graph")

    depth: int = 3
    """The levels of the tree."""

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, 1, 10)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        return trainer.fit(self.tree(trainer.data, seed), seed), {}

    def tree(self, data: Dataset, seed: int) -> Tree:
        """The tree of a seed."""
        kinds, magnitudes = kinds_for(data), magnitudes_for(data)
        nodes = range(1, 2**self.depth)
        key = Key.of(seed, nodes, role="random-tree")
        kind, magnitude, p = key.below(len(kinds), 0), key.below(len(magnitudes), 1), key.below(len(H), 2)
        tree = Tree()
        for i, node in enumerate(nodes):
            chance = None if node > 1 and node % 2 else H[p[i]]  # a right sibling has what the left one leaves
            tree = tree.with_node(node, made(kinds[kind[i]], magnitudes[magnitude[i]], data), chance)
        return tree
