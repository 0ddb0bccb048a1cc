"""The forest: one tree a group, each with a weight."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import ArgumentError, InputError, escaped, number, shown
from augtree.keys import Key
from augtree.policies.tree import SUM_TOLERANCE, Tree
from augtree.transforms import programs
from augtree.transforms.base import Batch, Policy, Stage, batch_size


class Member(NamedTuple):
    """A group's tree and its weight."""

    tree: Tree
    weight: float


@dataclass(frozen=True, init=False, repr=False)
class Forest(Policy):
    """A tree for each group; the weights sum to 1. Groups stand in the order of their names.

    >>> from augtree.transforms import Invert, Rotate
    >>> photo, sketch = Tree().with_node(1, Rotate(0.6), p=0.7), Tree().with_node(1, Invert(1.0), p=0.5)
    >>> forest = Forest({"photo": (photo, 0.4), "sketch": (sketch, 0.6)})
    >>> [f"{probability:.2f} {' '.join(map(str, path))}" for probability, path in forest.paths()]
    ['0.28 Rotate(0.6)', '0.42 ', '0.30 Invert(1)']
    """

    groups: Mapping[str, Member]

    def __init__(self, groups: Mapping[str, tuple[Tree, float]]) -> None:
        if not isinstance(groups, Mapping) or not groups:
            raise ArgumentError("groups", "must map at least one group to its tree and weight", groups)
        members = {name: _checked_member(name, groups[name]) for name in sorted(groups, key=_checked_name)}
        domains = {member.tree.domain for member in members.values()} - {"any"}
        if len(domains) > 1:
            raise ArgumentError("groups", "must have trees that all work on images or all on graphs", sorted(domains))
        total = sum(member.weight for member in members.values())
        if abs(total - 1) > SUM_TOLERANCE:
            raise ArgumentError("groups", "must have weights that sum to 1", total)
        object.__setattr__(self, "groups", MappingProxyType(members))

    def __getitem__(self, group: str) -> Member:
        return self.groups[group]

    def __len__(self) -> int:
        return len(self.groups)

    def __hash__(self) -> int:
        return hash(tuple(self.groups.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Member]]]:
        return type(self), (dict(self.groups),)

    def __call__(
        self,
        batch: Batch,
        *,
        groups: Sequence[Hashable] | Tensor | NDArray[Any] | None = None,
        seed: int | Tensor | None = None,
        index: int | Sequence[int] | NDArray[np.int64] | Tensor | None = None,
        step: int = 0,
    ) -> Batch:
        """Augment a batch, each sample by its group's tree; without groups, by a tree drawn by weight."""
        if groups is None:
            return super().__call__(batch, seed=seed, index=index, step=step)
        names = [str(name) for name in listed(groups)]
        for name in names:
            if name not in self.groups:
                raise InputError(f"a group must be one of {', '.join(self.groups)}, got {shown(name)}")
        if len(names) != batch_size(batch):
            raise InputError(f"there must be a group for each of the {batch_size(batch)} samples, got {len(names)}")
        order = {name: i for i, name in enumerate(self.groups)}
        return _Grouped(self, tuple(order[name] for name in names))(batch, seed=seed, index=index, step=step)

    def stages(self, key: Key) -> Iterator[Stage]:
        """Every tree with the samples that draw it."""
        edges = np.cumsum([member.weight for member in self.groups.values()])
        which = np.searchsorted(edges[:-1], key.uniform(CHOICE), side="right")  # the last has what is left
        yield [(member.tree, key.take(which == i)) for i, member in enumerate(self.groups.values())]

    def route(self, key: Key) -> list[tuple[Any, ...]]:
        """The path of each sample through its tree."""
        return self._gathered(key, lambda tree, part: tree.route(part))

    def paths(self) -> list[tuple[float, tuple[Any, ...]]]:
        """The mixture's paths, with their probabilities."""
        found: dict[tuple[Any, ...], float] = {}
        for tree, weight in self.groups.values():
            for probability, path in tree.paths():
                found[path] = found.get(path, 0.0) + weight * probability
        return [(probability, path) for path, probability in found.items() if probability > 0]

    def save(self, path: str | Path) -> None:
        """Write the forest to a JSON file; either all of it or nothing."""
        from augtree.policies.codec import save

        save(self, path)

    def to_text(self) -> str:
        """The forest as lines of text."""
        from augtree.policies.drawing import forest_to_text

        return forest_to_text(self)

    def to_dot(self) -> str:
        """The forest in Graphviz's language."""
        from augtree.policies.drawing import forest_to_dot

        return forest_to_dot(self)

    def to_svg(self) -> str:
        """The forest as a picture."""
        from augtree.policies.drawing import forest_to_svg

        return forest_to_svg(self)

    def _repr_html_(self) -> str:
        """The picture, in a notebook."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'

    def __repr__(self) -> str:
        return f"Forest({ {name: tuple(member) for name, member in self.groups.items()} })"

    __str__ = __repr__


def listed(groups: Any) -> list[Any]:
    """Groups from a list, an array, a tensor, or one alone."""
    found = groups.tolist() if hasattr(groups, "tolist") else groups
    return list(found) if isinstance(found, Iterable) and not isinstance(found, str) else [found]


def _checked_name(name: Any) -> str:
    try:
        if isinstance(name, str) and name and name.encode():
            return name
    except UnicodeEncodeError:
        pass
    raise ArgumentError("groups", "must have names that are text", name)


def _checked_member(name: str, given: Any) -> Member:
    place = f"groups/{escaped(name)}"
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Tree):
        raise ArgumentError(place, "must be a tree and its weight", given)
    return Member(given[0], number(f"{place}/weight", given[1], 0, 1))


CHOICE = 66
"""The counter of the draw that chooses a tree."""


@programs.makes(Forest)
def _program(forest: Forest, program: programs.Program, path: programs.Path, then: int) -> int:
    """The instructions of `stages`."""
    entries = [programs.make(member.tree, program, path, then) for member in forest.groups.values()]
    edges = np.cumsum([member.weight for member in forest.groups.values()])
    return programs.by_edges(program, path, CHOICE, edges, entries)


@dataclass(frozen=True)
class _Grouped(Policy):
    """A forest whose samples are known by group."""

    forest: Forest
    which: tuple[int, ...]
    """The number of each sample's group."""

    def stages(self, key: Key) -> Iterator[Stage]:
        """Every tree with its group's samples."""
        which = np.array(self.which, np.int64)[key.rows]
        yield [(member.tree, key.take(which == i)) for i, member in enumerate(self.forest.groups.values())]
