"""The tree: a distribution over short sequences of transforms.

Nodes carry heap indices: root 1, children 2i and 2i + 1. The root is applied with its p, otherwise the sample stays
as it is; either way it goes on to the children. At a node with children a sample goes left with p_left and right with
1 - p_left. A missing child is Identity, which ends the path; an Identity root is the empty tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from augtree.errors import ArgumentError, number, whole_number
from augtree.keys import Key
from augtree.transforms import programs
from augtree.transforms.base import Identity, Policy, Stage, Transform, common_domain

DEEPEST = 10
"""Levels a tree may have; a full tree of ten has 1,023 nodes."""
SUM_TOLERANCE = 1e-9

Path = tuple[Transform, ...]


class Node(NamedTuple):
    """A transform and the probability of applying it (the root) or of coming here (below)."""

    transform: Transform
    p: float


@dataclass(frozen=True, init=False, repr=False)
class Tree(Transform):
    """A binary tree of transforms with probabilities; a transform itself.

    >>> from augtree.transforms import Color, Rotate
    >>> tree = Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, Color(0.4), p=0.3)
    >>> for probability, path in tree.paths():
    ...     print(f"{probability:.2f}", *path)
    0.21 Rotate(0.6) Color(0.4)
    0.49 Rotate(0.6)
    0.09 Color(0.4)
    0.21
    """

    nodes: Mapping[int, Node]
    route = Policy.route
    describe = Policy.describe

    def __init__(self, nodes: Mapping[int, tuple[Transform, float]] | None = None) -> None:
        if not isinstance(nodes, Mapping | None):
            raise ArgumentError("nodes", "must be a mapping from index to a transform and its p", nodes)
        found = {index: _checked_node(index, node) for index, node in sorted_by_index(nodes or {})}
        for index in found:
            _check_place(index, found)
        _check_domains(found)
        # Identity says nothing that its absence does not say: the sibling's p tells its own.
        kept = {index: node for index, node in found.items() if not isinstance(node.transform, Identity)}
        object.__setattr__(self, "nodes", MappingProxyType(kept))

    def with_node(self, index: int, transform: Transform, p: float | None = None) -> Self:
        """The tree with one more node, or another one in its place.

        Without p: what the sibling leaves, or 1 where there is none (Identity counts as none).
        """
        index = whole_number("index", index, 1, 2**DEEPEST - 1)
        sibling = self.nodes.get(index ^ 1) if index > 1 else None
        if p is None:
            p = 1.0 if sibling is None else round(1 - sibling.p, 12)
        elif sibling is not None and abs(number(f"nodes/{index}/p", p, 0, 1) + sibling.p - 1) > SUM_TOLERANCE:
            rule = f"must be {1 - sibling.p:g}, what node {index ^ 1} leaves (take that out first to change both)"
            raise ArgumentError(f"nodes/{index}/p", rule, p)
        return type(self)({**self.nodes, index: (transform, p)})

    def without_node(self, index: int) -> Self:
        """The tree without a node and everything below it."""
        if index not in self.nodes:
            raise ArgumentError(
                "index", f"must be that of a node ({', '.join(map(str, self.nodes)) or 'none'})", index
            )
        return type(self)({i: node for i, node in self.nodes.items() if not is_below(i, index)})

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __bool__(self) -> bool:
        """A policy even when it is empty."""
        return True

    def __hash__(self) -> int:
        return hash(tuple(self.nodes.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[int, Node]]]:
        return type(self), (dict(self.nodes),)

    @property
    def depth(self) -> int:
        """The number of levels."""
        return max(self.nodes, default=0).bit_length()

    @property
    def domain(self) -> str:  # type: ignore[override]
        """That of the nodes."""
        return common_domain(node.transform for node in self.nodes.values())

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """Whether a node mixes samples."""
        return any(node.transform.mixes for node in self.nodes.values())

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether anything is drawn."""
        return any(node.transform.random is not False or node.p not in (0, 1) for node in self.nodes.values())

    def p_left(self, index: int) -> float | None:
        """The probability of going left from a node; None at a leaf."""
        left, right = self.nodes.get(2 * index), self.nodes.get(2 * index + 1)
        if left is not None:
            return left.p
        return None if right is None else 1 - right.p

    def paths(self) -> list[tuple[float, Path]]:
        """The distribution over paths: each sequence of transforms once, with its probability."""
        found: dict[Path, float] = {}
        for probability, path in self._walk(1, 1.0, ()):
            if probability > 0:
                found[path] = found.get(path, 0.0) + probability
        return [(probability, path) for path, probability in found.items()]

    def _walk(self, index: int, probability: float, path: Path) -> Iterator[tuple[float, Path]]:
        node = self.nodes.get(index)
        if node is None:
            yield probability, path
            return
        applied = node.p if index == 1 else 1.0
        for chance, longer in ((applied, (*path, node.transform)), (1 - applied, path)):
            left = self.p_left(index)
            if left is None:
                yield probability * chance, longer
            else:
                yield from self._walk(2 * index, probability * chance * left, longer)
                yield from self._walk(2 * index + 1, probability * chance * (1 - left), longer)

    def stages(self, key: Key) -> Iterator[Stage]:
        """Level by level: every node with the samples that come there."""
        arrived = {1: key} if 1 in self.nodes else {}
        while arrived:
            stage: Stage = []
            next_level: dict[int, Key] = {}
            for index, samples in arrived.items():
                here = samples.at(index)
                applied = here.take(here.uniform(APPLY) < self.nodes[1].p) if index == 1 else here
                stage.append((self.nodes[index].transform, applied))
                left = self.p_left(index)
                if left is not None:
                    goes_left = here.uniform(TURN) < left
                    next_level[2 * index] = samples.take(goes_left)
                    next_level[2 * index + 1] = samples.take(~goes_left)
            yield stage
            arrived = {i: samples for i, samples in next_level.items() if i in self.nodes and len(samples)}

    def save(self, path: str | FilePath) -> None:
        """Write the tree to a JSON file; either all of it or nothing."""
        from augtree.policies.codec import save

        save(self, path)

    def to_text(self) -> str:
        """The tree as lines of text."""
        from augtree.policies.drawing import to_text

        return to_text(self)

    def to_dot(self) -> str:
        """The tree in Graphviz's language."""
        from augtree.policies.drawing import to_dot

        return to_dot(self)

    def to_svg(self) -> str:
        """The tree as a picture."""
        from augtree.policies.drawing import to_svg

        return to_svg(self)

    def _repr_html_(self) -> str:
        """The picture, in a notebook."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'

    def __repr__(self) -> str:
        nodes = "".join(f".with_node({i}, {node.transform!r}, p={node.p!r})" for i, node in self.nodes.items())
        return f"Tree(){nodes}"

    def __str__(self) -> str:
        return f"Tree({', '.join(f'{i}: {node.transform} p={node.p:g}' for i, node in self.nodes.items())})"


APPLY, TURN = 64, 65
"""Counters of the tree's own draws at a node, beyond any that the node's transform makes there."""


@programs.makes(Tree)
def _program(tree: Tree, program: programs.Program, path: programs.Path, then: int) -> int:
    """The instructions of `stages`, node by node."""

    def enter(index: int) -> int:
        node, here = tree.nodes.get(index), (*path, index)
        if node is None:
            return then
        left = tree.p_left(index)
        after = then if left is None else program.test(here, TURN, left, enter(2 * index), enter(2 * index + 1))
        body = programs.make(node.transform, program, here, after)
        return program.test(here, APPLY, node.p, body, after) if index == 1 else body

    return enter(1)


def sorted_by_index(nodes: Mapping[Any, Any]) -> list[tuple[int, Any]]:
    """The nodes in order, their indices checked."""
    pairs = ((whole_number("nodes", index, 1, 2**DEEPEST - 1), node) for index, node in nodes.items())
    return sorted(pairs, key=lambda pair: pair[0])


def _checked_node(index: int, given: Any) -> Node:
    if not isinstance(given, tuple) or len(given) != 2:
        raise ArgumentError(f"nodes/{index}", "must be a transform and its p", given)
    transform, p = given
    if not isinstance(transform, Transform):
        raise ArgumentError(f"nodes/{index}/transform", "must be a transform", transform)
    if transform.whole:
        rule = "must not change shape or type: a tree applies it to some samples only"
        raise ArgumentError(f"nodes/{index}/transform", rule, str(transform))
    return Node(transform, number(f"nodes/{index}/p", p, 0, 1))


def _check_place(index: int, nodes: Mapping[int, Node]) -> None:
    """A node needs a parent that is no Identity, and its p must go with its sibling's."""
    if index == 1:
        return
    parent, sibling = nodes.get(index // 2), nodes.get(index ^ 1)
    if parent is None:
        raise ArgumentError(f"nodes/{index}", f"must have a parent {index // 2}", sorted(nodes))
    if isinstance(parent.transform, Identity):
        raise ArgumentError(f"nodes/{index}", f"must not stand under Identity, which node {index // 2} is")
    if sibling is not None and abs(nodes[index].p + sibling.p - 1) > SUM_TOLERANCE:
        rule = f"must sum to 1 with its sibling's, which is {sibling.p!r}"
        raise ArgumentError(f"nodes/{index}/p", rule, nodes[index].p)


def _check_domains(nodes: Mapping[int, Node]) -> None:
    """All nodes work on the same kind of data."""
    first: str | None = None
    for index, node in nodes.items():
        if node.transform.domain == "any":
            continue
        first = first or node.transform.domain
        if node.transform.domain != first:
            rule = f"must work on {first}s as the other nodes do"
            raise ArgumentError(f"nodes/{index}/transform", rule, str(node.transform))


def is_below(index: int, top: int) -> bool:
    """Whether a node is another one or stands below it."""
    while index > top:
        index //= 2
    return index == top
