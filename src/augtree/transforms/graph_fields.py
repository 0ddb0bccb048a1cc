"""What happens to every field of a PyG batch when nodes or edges go.

Which fields hold one value a node or an edge is read from the batch's own slices (where each graph's share of a
field begins), not guessed from sizes: the label of a one-node graph is no node field. Where slices cannot tell, the
name does, and where that cannot either, there is an error rather than a guess. Fields that hold node numbers
(`edge_index`, `face`, whatever else PyG increments by the number of nodes) are renumbered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from augtree.errors import InputError, TransformError
from augtree.transforms.graph_arrays import array, groups, places, tensor

if TYPE_CHECKING:
    from augtree.transforms.graph_batch import Graphs

Level = Literal["node", "edge", "graph"]
NODE_FIELDS = ("x", "pos", "feat", "node_type", "n_id")
"""What PyG takes for one value a node, whatever else fits (besides names with `node`)."""


@dataclass(frozen=True)
class Nodes:
    """Which nodes stay (as a mask and as numbers), their new numbers, and how many in each graph (on the CPU)."""

    kept: Tensor
    which: Tensor
    number: Tensor
    counts: Tensor


@dataclass(frozen=True)
class Field:
    """One field of a batch, with PyG's notes on it."""

    key: str
    value: Any
    slices: Any
    increments: Any


NOTES = ("value", "slices", "increments")


@dataclass(frozen=True)
class Change:
    """What happens to every field when nodes or edges go."""

    graphs: Graphs
    edges_kept: Tensor | None
    """The numbers of the edges whose fields stay; None where all do."""
    nodes: Nodes | None
    edges: Tensor

    @cached_property
    def old_nodes(self) -> Tensor:
        """Where each graph's nodes begin, before."""
        return slices(self.graphs.nodes)

    @cached_property
    def old_edges(self) -> Tensor:
        """Where each graph's edges begin, before."""
        cuts: Tensor | None = self.graphs.batch._slice_dict.get("edge_index")
        return torch.zeros_like(self.old_nodes) if cuts is None else cuts

    @cached_property
    def offsets(self) -> Tensor:
        """The number of the first node of each graph, afterwards."""
        cuts = self.old_nodes if self.nodes is None else slices(self.nodes.counts)
        return cuts[:-1].clone()

    def of(self, field: Field) -> Field:
        """The field afterwards; itself where nothing of it goes."""
        if isinstance(field.value, Tensor):
            return self.of_tensor(field)
        if isinstance(field.value, Mapping):
            parts = {
                name: self.of(Field(name, value, field.slices[name], field.increments[name]))
                for name, value in field.value.items()
            }
            return Field(field.key, *({k: getattr(f, a) for k, f in parts.items()} for a in NOTES))
        if isinstance(field.value, Sequence) and isinstance(field.slices, Sequence):
            rows = zip(field.value, field.slices, field.increments, strict=True)
            items = [self.of(Field(field.key, *row)) for row in rows]
            return Field(field.key, *([getattr(f, a) for f in items] for a in NOTES))
        return self.of_list(field)

    def level(self, key: str, cuts: Tensor) -> Level:
        """What a field has one entry for: what its slices say in all graphs, then what its name says."""
        a_node, an_edge = torch.equal(cuts, self.old_nodes), torch.equal(cuts, self.old_edges)
        if key.startswith("edge_attr") and not an_edge:
            raise InputError(
                f"{key} must have an entry for each of the {int(self.old_edges[-1])} edges, got {int(cuts[-1])}"
            )
        if not (a_node or an_edge):
            return "graph"
        if an_edge and "edge" in key:
            return "edge"
        if a_node and (key in NODE_FIELDS or "node" in key):
            return "node"
        if torch.equal(cuts, torch.arange(len(cuts), device="cpu")):
            return "graph"  # one entry a graph: that each has one node or one edge is chance
        if a_node and an_edge:
            return self.unclear(key, "every graph has as many nodes as edges")
        fits: Level = "node" if a_node else "edge"
        counts = cuts.diff()
        if key == "y" and bool((counts == counts[0]).all()):  # a label must not be cut
            return self.unclear(key, f"every graph has {int(counts[0])} {fits}s", fits)
        return fits

    def unclear(self, key: str, why: str, fits: Level | None = None) -> Level:
        """An error where something of the field would go; otherwise it does not matter."""
        if fits == "node" and self.nodes is None:
            return "graph"
        remedy = (
            "store a graph's label as [1, n], and call labels of nodes node_y"
            if key == "y"
            else ("give it a name that begins with node_ or edge_")
        )
        raise TransformError(f"{key} may hold values of nodes, of edges or of the graph, since {why}: {remedy}")

    def of_tensor(self, field: Field) -> Field:
        """A field that PyG concatenated."""
        level = self.level(field.key, field.slices)
        if self.numbers_nodes(field.key, field.value):
            return self.renumbered(field, level)
        kept, counts = self.kept_at(level)
        if kept is None:
            return field
        return replace(field, value=field.value.index_select(self.along(field), kept), slices=slices(counts))

    def of_whole(self, key: str, value: Tensor) -> Tensor:
        """A field that was added to the batch itself, so that only its size can tell what it is for."""
        size = value.shape[0] if value.ndim else -1
        nodes, edges = int(self.old_nodes[-1]), int(self.old_edges[-1])
        if size not in (nodes, edges):
            return value
        if nodes == edges and "edge" not in key and "node" not in key:
            self.unclear(key, "the batch has as many nodes as edges")
        level: Level = "edge" if size == edges and (nodes != edges or "edge" in key) else "node"
        kept, _ = self.kept_at(level)
        return value if kept is None else value.index_select(0, kept)

    def along(self, field: Field) -> int:
        """The dimension that entries are counted along."""
        return int((self.graphs.batch.__cat_dim__(field.key, field.value) or 0) % field.value.ndim)

    def kept_at(self, level: Level) -> tuple[Tensor | None, Tensor]:
        """The numbers of the entries of a level that stay, and how many in each graph."""
        if level == "edge":
            return self.edges_kept, self.edges
        if level == "node" and self.nodes is not None:
            return self.nodes.which, self.nodes.counts
        return None, self.edges

    def numbers_nodes(self, key: str, value: Tensor) -> bool:
        """Whether the entries are numbers of nodes: PyG adds the number of nodes of the graphs before."""
        added = 0 if "batch" in key else self.graphs.batch.__inc__(key, value)
        if not isinstance(added, Tensor) and added == 0:
            return False
        if not isinstance(added, Tensor) and added == int(self.old_nodes[-1]):
            return True
        if self.nodes is None:
            return False
        raise TransformError(
            f"the field {key!r} is incremented by something other than the number of nodes, so it cannot be kept "
            "valid when nodes go: leave it out of the batch"
        )

    def renumbered(self, field: Field, level: Level) -> Field:
        """A field of node numbers: columns that name a node that is gone go too."""
        if self.nodes is None and level != "edge":
            return field
        if self.nodes is None or level == "node":
            raise TransformError(
                f"the field {field.key!r} holds a node number for every {level}, which cannot be kept valid when "
                f"{level}s go: leave it out of the batch, or rename it if these are no node numbers"
            )
        along = self.along(field)
        owner = spread_out(field.slices.diff())
        self.check_numbers(field, along, owner)
        others = [dim for dim in range(field.value.ndim) if dim != along]
        kept = self.nodes.kept[field.value]
        whole = kept.all(dim=others) if others else kept
        counts = torch.bincount(owner[whole.cpu()], minlength=len(self.graphs.nodes))
        value = self.nodes.number[field.value.index_select(along, true_at(whole))]
        return replace(field, value=value, slices=slices(counts), increments=self.offsets)

    def check_numbers(self, field: Field, along: int, owner: Tensor) -> None:
        """Raise unless a field's node numbers are those of its own graph."""
        shape = [-1 if dim == along else 1 for dim in range(field.value.ndim)]
        value = field.value.cpu()
        first, last = self.old_nodes[owner].view(shape), self.old_nodes[owner + 1].view(shape)
        if not bool(((value >= first) & (value < last)).all()):
            raise TransformError(
                f"the field {field.key!r} must hold node numbers of its graph, as its name says, but some are not: "
                "rename it if these are no node numbers"
            )

    def of_list(self, field: Field) -> Field:
        """A field that PyG left as one Python object a graph."""
        if not all(isinstance(value, list | tuple | np.ndarray) for value in field.value):
            return field
        sizes = [len(value) for value in field.value]
        kept, _ = self.kept_at(self.level(field.key, slices(torch.tensor(sizes, device="cpu"))))
        if kept is None:
            return field
        mask = torch.zeros(sum(sizes), dtype=torch.bool, device="cpu")
        mask[kept.cpu()] = True
        parts = [taken(value, part) for value, part in zip(field.value, mask.split(sizes), strict=True)]
        return replace(field, value=parts)


def true_at(mask: Tensor) -> Tensor:
    """The numbers of the entries that hold."""
    return tensor(places(array(mask)))


def spread_out(counts: Tensor) -> Tensor:
    """The graph of each entry, from the number of entries of each graph."""
    return tensor(groups(array(counts)))


def taken(value: Any, mask: Tensor) -> Any:
    """Some entries of a list, a tuple or an array."""
    if isinstance(value, np.ndarray):
        return value[mask.numpy()]
    return type(value)(entry for entry, keep in zip(value, mask.tolist(), strict=True) if keep)


def slices(counts: Tensor) -> Tensor:
    """Where each graph's share begins, and the end."""
    cuts = np.zeros(len(counts) + 1, np.int64)
    cuts[1:] = counts.numpy().cumsum()
    return torch.from_numpy(cuts)
