"""Taking nodes and edges out of a PyG batch with every field kept aligned.

Which fields hold one value a node or an edge is read from the batch's own slices (where each graph's share of a
field begins), not guessed from sizes: the label of a one-node graph is no node field. Fields that hold node
numbers (`edge_index`, `face`, whatever else PyG increments by the number of nodes) are renumbered.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.errors import InputError, TransformError, need


def is_graph(batch: object) -> bool:
    """Whether it is a PyG graph or batch, asked without importing PyG."""
    return any(cls.__module__.startswith("torch_geometric.data.") for cls in type(batch).__mro__)


def as_batch(graphs: Any) -> tuple[Any, bool]:
    """The graphs as a batch that can be taken apart, and whether it was a graph alone."""
    data = need("torch_geometric.data", "graph")
    if not isinstance(graphs, data.Data):
        raise InputError(f"graphs must be a homogeneous PyG Data or Batch, got {type(graphs).__name__}")
    for name in ("adj", "adj_t"):
        if name in graphs:
            raise InputError(f"graphs must have edge_index, got the sparse matrix {name}: leave ToSparseTensor out")
    if not isinstance(graphs, data.Batch):
        if "batch" in graphs:
            raise InputError(
                "a batch must come from Batch.from_data_list or PyG's DataLoader, got a Data with .batch"
            )
        return data.Batch.from_data_list([graphs]), True
    if not hasattr(graphs, "_slice_dict"):
        raise InputError("a Batch must come from Batch.from_data_list or PyG's DataLoader, got one made by hand")
    return graphs, False


@dataclass(frozen=True)
class Graphs:
    """A batch of graphs laid open."""

    batch: Any
    nodes: Tensor
    """Nodes of each graph, on the CPU."""
    graph: Tensor
    """The graph of each node."""
    start: Tensor
    """The first node of each graph."""
    local: Tensor
    """The number of each node within its graph."""
    edge_index: Tensor

    @staticmethod
    def of(batch: Any) -> Graphs:
        """Lay a batch open."""
        nodes = node_counts(batch)
        device = device_of(batch)
        graph = torch.repeat_interleave(torch.arange(len(nodes)), nodes).to(device)
        start = (nodes.cumsum(0) - nodes).to(device)
        local = torch.arange(len(graph), device=device) - start.index_select(0, graph)
        none = torch.empty(2, 0, dtype=torch.long, device=device)
        edges: Any = batch.get("edge_index", none)
        if type(edges) is not Tensor:  # PyG's EdgeIndex carries an order that no longer holds afterwards
            edges = edges.as_tensor()
        return Graphs(batch, nodes, graph, start, local, edges)

    def keep_nodes(self, kept: Tensor, counts: Tensor) -> Any:
        """The batch with only these nodes and the edges between them; `counts` of them in each graph."""
        number = kept.cumsum(0) - 1
        source, target = self.edge_index
        edges_kept = true_at(kept.index_select(0, source) & kept.index_select(0, target))
        ends = self.edge_index.index_select(1, edges_kept)
        edge_index = number.index_select(0, ends.view(-1)).view(2, -1)
        return self.rebuilt(edge_index, edges_kept, Nodes(kept, true_at(kept), number, counts))

    def keep_edges(self, edge_index: Tensor, edges_kept: Tensor) -> Any:
        """The batch with these edges, which take the fields of the edges kept (their numbers), in order."""
        return self.rebuilt(edge_index, edges_kept, None)

    def rebuilt(self, edge_index: Tensor, edges_kept: Tensor, nodes: Nodes | None) -> Any:
        """A new batch that still splits into its graphs."""
        out = copy.copy(self.batch)
        out._slice_dict, out._inc_dict = dict(out._slice_dict), dict(out._inc_dict)
        graph = self.graph if nodes is None else self.graph.index_select(0, nodes.which)
        edges = torch.bincount(graph.index_select(0, edge_index[0]), minlength=len(self.nodes)).cpu()
        change = Change(self, edges_kept, nodes, edges)
        for key in list(out._slice_dict):
            if key == "edge_index":
                out[key], out._slice_dict[key] = edge_index, slices(edges)
                out._inc_dict[key] = change.offsets
            elif key in out:
                field = Field(key, out[key], out._slice_dict[key], out._inc_dict[key])
                new = change.of(field)
                if new is not field:
                    out[key], out._slice_dict[key], out._inc_dict[key] = new.value, new.slices, new.increments
        if nodes is not None:
            set_node_counts(out, nodes.counts, graph)
        follow(out)
        return out


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


@dataclass(frozen=True)
class Change:
    """What happens to every field when nodes or edges go."""

    graphs: Graphs
    edges_kept: Tensor
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
        counts = self.graphs.nodes if self.nodes is None else self.nodes.counts
        return counts.cumsum(0) - counts

    def of(self, field: Field) -> Field:
        """The field afterwards; itself where nothing of it goes."""
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
        if isinstance(field.value, Tensor):
            return self.of_tensor(field)
        return self.of_list(field)

    def level(self, key: str, cuts: Tensor) -> str:
        """Whether a field has an entry a node, an edge, or something else: what its slices say in all graphs."""
        a_node = torch.equal(cuts, self.old_nodes)
        an_edge = torch.equal(cuts, self.old_edges)
        if a_node and key == "y":
            return self.level_of_label()
        if a_node and an_edge:
            return "edge" if "edge" in key else "node"
        return "node" if a_node else "edge" if an_edge else "graph"

    def level_of_label(self) -> str:
        """Whether y, which has as many entries as there are nodes, is a label a node; a label must not be cut."""
        most, least = int(self.graphs.nodes.max()), int(self.graphs.nodes.min())
        if most == least == 1:
            return "graph"
        if most == least:
            raise TransformError(
                f"y has as many entries as each graph has nodes ({most}): a label a node or a label of the graph? "
                "Store a graph's label as [1, n]"
            )
        return "node"

    def of_tensor(self, field: Field) -> Field:
        """A field that PyG concatenated."""
        level = self.level(field.key, field.slices)
        numbers_nodes = self.numbers_nodes(field)
        if numbers_nodes:
            return self.renumbered(field, level)
        kept, counts = self.kept_at(level)
        if kept is None:
            return field
        along = self.graphs.batch.__cat_dim__(field.key, field.value) or 0
        return replace(field, value=field.value.index_select(along, kept), slices=slices(counts))

    def kept_at(self, level: str) -> tuple[Tensor | None, Tensor]:
        """The numbers of the entries of a level that stay, and how many in each graph."""
        if level == "edge":
            return self.edges_kept, self.edges
        if level == "node" and self.nodes is not None:
            return self.nodes.which, self.nodes.counts
        return None, self.edges

    def numbers_nodes(self, field: Field) -> bool:
        """Whether the entries are numbers of nodes: PyG adds the nodes of the graphs before."""
        if not isinstance(field.increments, Tensor) or not bool(field.increments.any()):
            return False
        if field.increments.ndim == 1 and torch.equal(field.increments, self.old_nodes[:-1]):
            return True
        raise TransformError(
            f"the field {field.key!r} is incremented by something other than the number of nodes, so it cannot be "
            "kept valid when nodes or edges go: leave it out of the batch"
        )

    def renumbered(self, field: Field, level: str) -> Field:
        """A field of node numbers: columns that name a node that is gone go too."""
        if self.nodes is None and level != "edge":
            return field
        if self.nodes is None or level == "node":
            raise TransformError(
                f"the field {field.key!r} holds a node number for every {level}, which cannot be kept valid when "
                f"{level}s go: leave it out of the batch, or rename it if these are no node numbers"
            )
        along = self.graphs.batch.__cat_dim__(field.key, field.value) % field.value.ndim
        others = [dim for dim in range(field.value.ndim) if dim != along]
        kept = self.nodes.kept[field.value]
        whole = kept.all(dim=others) if others else kept
        owner = torch.repeat_interleave(torch.arange(len(self.graphs.nodes)), field.slices.diff())
        counts = torch.bincount(owner[whole.cpu()], minlength=len(self.graphs.nodes))
        value = self.nodes.number[field.value.index_select(along, true_at(whole))]
        return replace(field, value=value, slices=slices(counts), increments=self.offsets)

    def of_list(self, field: Field) -> Field:
        """A field that PyG left as one Python object a graph."""
        if not all(isinstance(value, list | tuple | np.ndarray) for value in field.value):
            return field
        level = self.level(field.key, slices(torch.tensor([len(value) for value in field.value])))
        kept, _ = self.kept_at(level)
        if kept is None:
            return field
        sizes = [len(value) for value in field.value]
        mask = torch.zeros(sum(sizes), dtype=torch.bool)
        mask[kept.cpu()] = True
        masks = mask.split(sizes)
        parts = [taken(value, mask) for value, mask in zip(field.value, masks, strict=True)]
        return replace(field, value=parts)


NOTES = ("value", "slices", "increments")


def true_at(mask: Tensor) -> Tensor:
    """The numbers of the entries that hold."""
    return mask.nonzero().view(-1)


def taken(value: Any, mask: Tensor) -> Any:
    """Some entries of a list, a tuple or an array."""
    if isinstance(value, np.ndarray):
        return value[mask.numpy()]
    return type(value)(entry for entry, keep in zip(value, mask.tolist(), strict=True) if keep)


def slices(counts: Tensor) -> Tensor:
    """Where each graph's share begins, and the end."""
    return torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])


def device_of(batch: Any) -> torch.device:
    """Where the batch's tensors are."""
    for _, value in batch:
        if isinstance(value, Tensor):
            return value.device
    return torch.device("cpu")


def node_counts(batch: Any) -> Tensor:
    """Nodes of each graph, on the CPU, from what PyG noted when it made the batch."""
    if hasattr(batch, "_num_nodes"):
        return torch.tensor([int(count) for count in batch._num_nodes], dtype=torch.long)
    for key in ("x", "pos", "z", "batch"):
        if key in batch._slice_dict:
            counts: Tensor = batch._slice_dict[key].diff()
            return counts
    if "ptr" in batch:
        return batch["ptr"].diff().cpu()  # type: ignore[no-any-return]
    raise InputError("the number of nodes must be known: give the graphs x, pos or num_nodes")


def set_node_counts(out: Any, counts: Tensor, graph: Tensor) -> None:
    """Write PyG's notes on nodes."""
    if hasattr(out, "_num_nodes"):
        out._num_nodes = counts.tolist()
        out.num_nodes = int(counts.sum())
    if "batch" in out:
        out.batch = graph
    if "ptr" in out:
        out.ptr = slices(counts).to(graph.device)


def follow(out: Any) -> None:
    """Rewrite the vectors that PyG's follow_batch made: which graph each entry of a field belongs to."""
    for key, cuts in out._slice_dict.items():
        if f"{key}_batch" in out and f"{key}_batch" not in out._slice_dict and isinstance(cuts, Tensor):
            device = out[f"{key}_batch"].device
            out[f"{key}_batch"] = torch.repeat_interleave(torch.arange(len(cuts) - 1), cuts.diff()).to(device)
            out[f"{key}_ptr"] = cuts.to(device)
