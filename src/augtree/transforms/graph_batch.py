"""Taking nodes and edges out of a PyG batch with every field kept aligned.

Which fields hold one value a node or an edge is read from the batch's own slices (where each graph's share of a
field begins), not guessed from sizes: the label of a one-node graph is no node field. Where slices cannot tell, the
name does, and where that cannot either, there is an error rather than a guess. Fields that hold node numbers
(`edge_index`, `face`, whatever else PyG increments by the number of nodes) are renumbered.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from augtree.errors import InputError, TransformError, need

Level = Literal["node", "edge", "graph"]

NODE_FIELDS = ("x", "pos", "feat", "node_type", "n_id")
"""What PyG takes for one value a node, whatever else fits (besides names with `node`)."""


def is_graph(batch: object) -> bool:
    """Whether it is a PyG graph or batch, asked without importing PyG."""
    return any(cls.__module__.startswith("torch_geometric.data.") for cls in type(batch).__mro__)


def as_batch(graphs: Any) -> tuple[Any, bool]:
    """The graphs as a batch that can be taken apart, and whether it was a graph alone."""
    data = need("torch_geometric.data", "graph")
    if not isinstance(graphs, data.Data):
        raise InputError(f"graphs must be a homogeneous PyG Data or Batch, got {type(graphs).__name__}")
    for name, value in graphs:
        if name in ("adj", "adj_t") or (isinstance(value, Tensor) and value.layout != torch.strided):
            raise InputError(f"graphs must have edge_index and dense fields, got the sparse {name}")
    if not isinstance(graphs, data.Batch):
        if "batch" in graphs:
            raise InputError(
                "a batch must come from Batch.from_data_list or PyG's DataLoader, got a Data with .batch"
            )
        return data.Batch.from_data_list([graphs]), True
    if not hasattr(graphs, "_slice_dict"):
        raise InputError("a Batch must come from Batch.from_data_list or PyG's DataLoader, got one made by hand")
    return graphs, False


def alone(batch: Any, original: Any) -> Any:
    """The one graph of a batch; what batching turns into tensors (a number, a 0-dim y) as it was."""
    out = batch.get_example(0)
    for key, value in original:
        if key in out and (not isinstance(value, Tensor) or value.ndim == 0) and not isinstance(value, list | dict):
            out[key] = out[key] if isinstance(value, np.ndarray | tuple) or key == "num_nodes" else value
    return out


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

    @staticmethod
    def of(batch: Any) -> Graphs:
        """Lay a batch open."""
        nodes = node_counts(batch)
        device = device_of(batch)
        graph = spread_out(nodes).to(device)
        start = (nodes.cumsum(0) - nodes).to(device)
        local = torch.arange(len(graph), device=device) - start.index_select(0, graph)
        return Graphs(batch, nodes, graph, start, local)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges, checked, as int64."""
        edges: Any = self.batch.get("edge_index", None)
        if edges is None:
            return torch.empty(2, 0, dtype=torch.long, device=self.graph.device)
        if type(edges) is not Tensor:  # PyG's EdgeIndex carries an order that no longer holds afterwards
            edges = edges.as_tensor()
        return checked_edges(edges, self.graph)

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
        names = set(out.keys())
        for key in names:
            if key == "edge_index":
                out[key] = edge_index.to(out[key].dtype)
                out._slice_dict[key], out._inc_dict[key] = slices(edges), change.offsets
            elif key in out._slice_dict:
                field = Field(key, out[key], out._slice_dict[key], out._inc_dict[key])
                new = change.of(field)
                if new is not field:
                    out[key], out._slice_dict[key], out._inc_dict[key] = new.value, new.slices, new.increments
            elif isinstance(out[key], Tensor) and not key.endswith(("batch", "ptr")):
                out[key] = change.of_whole(key, out[key])
        if nodes is not None:
            set_node_counts(out, nodes.counts, graph)
        follow(out, names)
        return out


def checked_edges(edges: Tensor, graph: Tensor) -> Tensor:
    """Edges as int64 [2,E] that join nodes of the same graph, or an error."""
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise InputError(f"edge_index must be whole numbers [2,E], got {edges.dtype} {list(edges.shape)}")
    edges = edges.long()
    if not edges.numel():
        return edges
    try:
        if edges.is_cuda and not 0 <= int(edges.min()) <= int(edges.max()) < len(graph):  # a CPU notices below
            raise IndexError
        owner, other = graph.index_select(0, edges.reshape(-1)).view(2, -1)
    except (IndexError, RuntimeError) as error:
        found = f"{int(edges.min())} to {int(edges.max())}"
        raise InputError(f"edge_index must have node numbers from 0 to {len(graph) - 1}, got {found}") from error
    if not torch.equal(owner, other):
        at = int(true_at(owner != other)[0])
        raise InputError(f"edge_index must join nodes of the same graph, but edge {at} of the batch joins two graphs")
    return edges


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
        return self.of_tensor(field) if isinstance(field.value, Tensor) else self.of_list(field)

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


def in_order(rows: Tensor, keys: Tensor) -> Tensor:
    """Rows in the order of their keys; those with the same key stay as they were."""
    if keys.device.type == "cpu" and bool((keys[1:] >= keys[:-1]).all()):  # mostly so, and cheaper than to sort
        return rows
    return rows.index_select(0, torch.argsort(keys, stable=True))


def true_at(mask: Tensor) -> Tensor:
    """The numbers of the entries that hold."""
    return mask.nonzero().view(-1)


def spread_out(counts: Tensor) -> Tensor:
    """The graph of each entry, from the number of entries of each graph; on the CPU."""
    return torch.repeat_interleave(torch.arange(len(counts), device="cpu"), counts)


def taken(value: Any, mask: Tensor) -> Any:
    """Some entries of a list, a tuple or an array."""
    if isinstance(value, np.ndarray):
        return value[mask.numpy()]
    return type(value)(entry for entry, keep in zip(value, mask.tolist(), strict=True) if keep)


def slices(counts: Tensor) -> Tensor:
    """Where each graph's share begins, and the end."""
    return torch.cat([torch.zeros(1, dtype=torch.long, device="cpu"), counts.cumsum(0)])


def device_of(batch: Any) -> torch.device:
    """Where the batch's tensors are."""
    for _, value in batch:
        if isinstance(value, Tensor):
            return value.device
    return torch.device("cpu")


def node_counts(batch: Any) -> Tensor:
    """Nodes of each graph, on the CPU, from what PyG noted when it made the batch."""
    if hasattr(batch, "_num_nodes"):
        return torch.tensor([int(count) for count in batch._num_nodes], dtype=torch.long, device="cpu")
    if "x" in batch._slice_dict:
        counts: Tensor = batch._slice_dict["x"].diff()
        return counts
    if "ptr" in batch:
        return batch["ptr"].diff().cpu()  # type: ignore[no-any-return]
    raise InputError("the number of nodes must be known: give the graphs x, pos or num_nodes")


def set_node_counts(out: Any, counts: Tensor, graph: Tensor) -> None:
    """Write PyG's notes on nodes; the number itself where no field tells it."""
    told = any(key in NODE_FIELDS or "node" in key for key in out._slice_dict)
    if hasattr(out, "_num_nodes") or not told:
        out._num_nodes = counts.tolist()
        out.num_nodes = int(counts.sum())
    if "batch" in out:
        out.batch = graph
    if "ptr" in out:
        out.ptr = slices(counts).to(graph.device)


def follow(out: Any, names: set[str]) -> None:
    """Rewrite the vectors that PyG's follow_batch made: which graph each entry of a field belongs to."""
    for key, cuts in out._slice_dict.items():
        if f"{key}_batch" in names and f"{key}_batch" not in out._slice_dict and isinstance(cuts, Tensor):
            device = out[f"{key}_batch"].device
            out[f"{key}_batch"] = spread_out(cuts.diff()).to(device)
            out[f"{key}_ptr"] = cuts.to(device)
