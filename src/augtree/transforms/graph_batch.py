"""Taking nodes and edges out of a PyG batch with every field kept aligned."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.errors import InputError, need
from augtree.transforms.graph_arrays import array, numbered, tensor
from augtree.transforms.graph_fields import NODE_FIELDS, Change, Field, Nodes, slices, spread_out, true_at


def is_graph(batch: object) -> bool:
    """Whether it is a PyG graph or batch, found out without importing PyG."""
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
        counts = array(nodes.to(device))
        graph, local = numbered(counts)
        return Graphs(batch, nodes, tensor(graph), tensor(counts.cumsum(0) - counts), tensor(local))

    @property
    def edge_index(self) -> Tensor:
        """The edges, checked, as int64."""
        return self.checked_edges[0]

    @property
    def edge_graph(self) -> Tensor:
        """The graph of each edge."""
        return self.checked_edges[1]

    @cached_property
    def checked_edges(self) -> tuple[Tensor, Tensor]:
        """The edges, and the graph of each."""
        edges: Any = self.batch.get("edge_index", None)
        if edges is None:
            none = torch.empty(2, 0, dtype=torch.long, device=self.graph.device)
            return none, none[0]
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

    def keep_edges(self, edge_index: Tensor, edges_kept: Tensor | None) -> Any:
        """The batch with these edges, which take the fields of those with the numbers kept (None: all), in order."""
        return self.rebuilt(edge_index, edges_kept, None)

    def rebuilt(self, edge_index: Tensor, edges_kept: Tensor | None, nodes: Nodes | None) -> Any:
        """A new batch that still splits into its graphs."""
        out = copy.copy(self.batch)
        out._slice_dict, out._inc_dict = dict(out._slice_dict), dict(out._inc_dict)
        graph = self.edge_graph if edges_kept is None else self.edge_graph.index_select(0, edges_kept)
        edges = torch.bincount(graph, minlength=len(self.nodes)).cpu()
        change = Change(self, edges_kept, nodes, edges)
        fields = dict(iter(out))
        for key, value in fields.items():
            if key == "edge_index":
                out[key] = edge_index.to(value.dtype)
                out._slice_dict[key], out._inc_dict[key] = slices(edges), change.offsets
            elif key in out._slice_dict:
                field = Field(key, value, out._slice_dict[key], out._inc_dict[key])
                new = change.of(field)
                if new is not field:
                    out[key], out._slice_dict[key], out._inc_dict[key] = new.value, new.slices, new.increments
            elif isinstance(value, Tensor) and not key.endswith(("batch", "ptr")):
                out[key] = change.of_whole(key, value)
        if nodes is not None:
            set_node_counts(out, nodes.counts, self.graph.index_select(0, nodes.which))
        follow(out, set(fields))
        return out


def checked_edges(edges: Tensor, graph: Tensor) -> tuple[Tensor, Tensor]:
    """Edges as int64 [2,E] that join nodes of the same graph, and that graph, or an error."""
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise InputError(f"edge_index must be whole numbers [2,E], got {edges.dtype} {list(edges.shape)}")
    edges = edges.long()
    if not edges.numel():
        return edges, edges[0]
    try:
        if edges.is_cuda and not 0 <= int(edges.min()) <= int(edges.max()) < len(graph):  # a CPU notices below
            raise IndexError
        owner, other = (graph.index_select(0, end) for end in edges)
    except (IndexError, RuntimeError) as error:
        found = f"{int(edges.min())} to {int(edges.max())}"
        raise InputError(f"edge_index must have node numbers from 0 to {len(graph) - 1}, got {found}") from error
    if not torch.equal(owner, other):
        at = int(true_at(owner != other)[0])
        raise InputError(f"edge_index must join nodes of the same graph, but edge {at} of the batch joins two graphs")
    return edges, owner


def in_order(rows: Tensor, keys: Tensor) -> Tensor:
    """Rows in the order of their keys; those with the same key stay as they were."""
    if keys.device.type == "cpu" and bool((keys[1:] >= keys[:-1]).all()):  # mostly so, and cheaper than to sort
        return rows
    return rows.index_select(0, torch.argsort(keys, stable=True))


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
    known = any(key in NODE_FIELDS or "node" in key for key in out._slice_dict)
    if hasattr(out, "_num_nodes") or not known:
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
