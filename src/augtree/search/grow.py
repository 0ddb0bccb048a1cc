"""Algorithm 1: growing a tree from the root. There is no model here: a scorer builds each node.

The paper's words: T is the tree, V the nodes that are open, H the probabilities, k the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from augtree.keys import Key
from augtree.policies import Tree
from augtree.runs.events import Event
from augtree.runs.failures import BudgetSpentError
from augtree.transforms import Identity
from augtree.transforms.base import Policy, Transform


class Built(NamedTuple):
    """The result of Build-one-node: the best (A, p), and whether it improves on the tree without it."""

    transform: Transform
    p: float
    improves: bool
    gain: float = 0.0
    """How much the loss falls with it, on data that did not choose it."""
    gain_se: float = 0.0
    why: str = ""


class Scorer(Protocol):
    """Scores trees with one more candidate."""

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """The best candidate for a node; p is given where the sibling has one already."""
        ...


@dataclass(frozen=True)
class Growth:
    """A growing tree: an immutable state of Algorithm 1."""

    depth: int
    seed: int
    tree: Tree = field(default_factory=Tree)  # T
    open: tuple[int, ...] = (1,)  # V
    built: tuple[tuple[int, Built], ...] = ()

    def next_node(self) -> int | None:
        """A random open node, or None when the tree is grown."""
        if not self.open:
            return None
        return self.open[int(Key.of(self.seed, [len(self.built)], role="grow").below(len(self.open))[0])]

    def p_given(self, node: int) -> float | None:
        """The probability that the sibling leaves, where it is in the tree."""
        sibling = self.tree.nodes.get(node ^ 1) if node > 1 else None
        return None if sibling is None else round(1 - sibling.p, 12)

    def record(self, node: int, built: Built) -> Growth:
        """The tree with this node; without improvement it is Identity, and the branch is closed."""
        still_open = tuple(i for i in self.open if i != node)
        all_built = (*self.built, (node, built))
        if not built.improves or isinstance(built.transform, Identity):
            return replace(self, open=still_open, built=all_built)
        if built.p == 1 and node > 1:  # nothing is left for the sibling
            still_open = tuple(i for i in still_open if i != node ^ 1)
        children = (2 * node, 2 * node + 1) if (2 * node).bit_length() <= self.depth else ()
        tree = self.tree.with_node(node, built.transform, built.p)
        return replace(self, tree=tree, open=tuple(sorted((*still_open, *children))), built=all_built)


@dataclass(frozen=True)
class NodeBuilt(Event):
    """A node of the tree is decided."""

    node: int
    built: Built
    growth: Growth = field(repr=False)

    def describe(self) -> Sequence[str]:
        built = self.built
        if not built.improves:
            return [f"Node {self.node}: empty. {built.why}."]
        if built.why:
            return [f"Node {self.node}: {built.why}."]
        gain = f"{built.gain:.4f} ± {built.gain_se:.4f}"
        return [f"Node {self.node}: {built.transform} p={built.p:g}, the validation loss falls by {gain}."]

    def logged(self) -> Mapping[str, float]:
        return {f"nodes/{self.node}/gain": self.built.gain}

    def policies(self) -> Mapping[str, Policy]:
        return {"": self.growth.tree} if self.built.improves else {}


def grow(scorer: Scorer, depth: int, seed: int, watch: Callable[[Growth, int], None] = lambda *_: None) -> Growth:
    """Algorithm 1. Every node is built once: at most (2^d - 1)(k + 1) scorings, never k^d."""
    growth = Growth(depth, seed)
    while (node := growth.next_node()) is not None:
        try:
            built = scorer.build_one_node(node, growth.tree, growth.p_given(node))
        except BudgetSpentError:
            break
        growth = growth.record(node, built)
        watch(growth, node)
    return growth
