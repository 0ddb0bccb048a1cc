"""What the checks need to know of pictures and of graphs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from augtree.errors import InputError, need
from augtree.transforms import graph_batch
from augtree.transforms.pictures import checked
from augtree.transforms.spaces import GRAPH_MAGNITUDES, IMAGE_MAGNITUDES


class Samples(Protocol):
    """A batch of samples, and how to compare, cut and spoil it. Problems are told in words; none is ""."""

    batch: Any

    @property
    def magnitudes(self) -> tuple[float, ...]: ...

    def cloned(self) -> Any: ...
    def equal(self, one: Any, other: Any) -> bool: ...
    def count(self, batch: Any) -> int: ...
    def first(self, batch: Any) -> Any: ...
    def cut(self, batch: Any, start: int, count: int) -> Any: ...
    def parts(self) -> Iterator[tuple[int, Any]]: ...
    def with_others_changed(self) -> Any: ...
    def forms(self) -> dict[str, Any]: ...
    def degenerate(self) -> dict[str, Any]: ...
    def type_change(self, before: Any, after: Any) -> str: ...
    def shape_change(self, before: Any, after: Any, whole: bool) -> str: ...
    def label_change(self, after: Any) -> str: ...
    def invalid(self, after: Any) -> str: ...
    def effect(self, after: Any) -> float: ...
    def changes(self, after: Any) -> tuple[Tensor, ...]: ...


def samples_of(sample: Any) -> Samples:
    """A batch of a few samples, made of one or more."""
    if isinstance(sample, Tensor):
        return PictureSamples(sample)
    if graph_batch.is_graph(sample):
        return GraphSamples(sample)
    raise InputError(f"a sample must be a picture (a tensor) or a PyG graph, got {type(sample).__name__}")


class PictureSamples:
    """Pictures."""

    magnitudes = IMAGE_MAGNITUDES

    def __init__(self, sample: Tensor) -> None:
        batch = checked(sample)
        if batch.dtype != torch.uint8:
            batch = (batch * 255).round().to(torch.uint8)
        batch = batch[None] if batch.ndim == 3 else batch[:6]
        while len(batch) < 6:
            batch = torch.cat([batch, batch.flip(3), batch.flip(2)])
        self.batch = batch[:6].clone()

    def cloned(self) -> Tensor:
        return self.batch.clone()

    def equal(self, one: Any, other: Any) -> bool:
        return isinstance(one, Tensor) and isinstance(other, Tensor) and same_tensors(one, other)

    def count(self, batch: Tensor) -> int:
        return len(batch)

    def first(self, batch: Tensor) -> Tensor:
        return batch[:1]

    def cut(self, batch: Tensor, start: int, count: int) -> Tensor:
        return batch[start : start + count]

    def parts(self) -> Iterator[tuple[int, Tensor]]:
        yield 0, self.batch[:1]
        yield 1, self.batch[1:4]
        yield 4, self.batch[4:]

    def with_others_changed(self) -> Tensor:
        return torch.cat([self.batch[:1], 255 - self.batch[1:].flip(0)])

    def forms(self) -> dict[str, Any]:
        return {
            "a uint8 batch": self.batch,
            "a uint8 picture": self.batch[0],
            "a float batch": self.batch.float() / 255,
            "a batch in channels_last order": self.batch.contiguous(memory_format=torch.channels_last),
        }

    def degenerate(self) -> dict[str, Any]:
        channels = self.batch.shape[1]
        sizes = ((1, 1), (1, 9), (9, 1), (2, 2))
        out = {f"{h}x{w} pixels": self.batch.new_full((3, channels, h, w), 90) for h, w in sizes}
        out["black"] = torch.zeros_like(self.batch)
        out["white"] = torch.full_like(self.batch, 255)
        out["no pictures"] = self.batch[:0]
        return out

    def type_change(self, before: Tensor, after: Any) -> str:
        if not isinstance(after, Tensor):
            return f"a tensor became {type(after).__name__}"
        if (before.dtype, before.device) != (after.dtype, after.device):
            return f"{before.dtype} on {before.device} became {after.dtype} on {after.device}"
        return ""

    def shape_change(self, before: Tensor, after: Tensor, whole: bool) -> str:
        kept = before.shape[:-3] == after.shape[:-3] if whole else before.shape == after.shape
        return "" if kept else f"shape {list(before.shape)} became {list(after.shape)}"

    def label_change(self, after: Any) -> str:  # noqa: ARG002
        return ""  # a policy never sees a picture's label

    def invalid(self, after: Tensor) -> str:
        if after.is_floating_point() and not bool(after.isfinite().all()):
            return "values are not finite"
        return ""

    def effect(self, after: Tensor) -> float:
        return float((after.float() - self.batch.float()).abs().mean() / 255)

    def changes(self, after: Tensor) -> tuple[Tensor, ...]:
        """The first picture's change, as it is and smoothed: fine texture hides which way things moved."""
        change = after[0].float() - self.batch[0].float()
        smooth = torch.nn.functional.avg_pool2d(change, max(1, min(change.shape[1:]) // 6), 1)
        top, left = smooth.shape[1] // 8, smooth.shape[2] // 8
        inside = smooth[:, top : smooth.shape[1] - top, left : smooth.shape[2] - left]
        return change.flatten(), inside.flatten()


class GraphSamples:
    """PyG graphs."""

    magnitudes = GRAPH_MAGNITUDES

    def __init__(self, sample: Any) -> None:
        self.pyg = need("torch_geometric.data", "graph")
        batch, _ = graph_batch.as_batch(sample)
        graphs = batch.to_data_list()
        self.graphs = [copy.copy(graphs[i % len(graphs)]) for i in range(6)]
        self.batch = self.pyg.Batch.from_data_list(self.graphs)

    def cloned(self) -> Any:
        return self.batch.clone()

    def equal(self, one: Any, other: Any) -> bool:
        if not isinstance(one, self.pyg.Data) or set(one.keys()) != set(other.keys()):
            return False
        return all(same(one[key], other[key]) for key in one.keys())  # noqa: SIM118 - a Data iterates over pairs

    def count(self, batch: Any) -> int:
        return int(batch.num_graphs)

    def first(self, batch: Any) -> Any:
        return self.cut(batch, 0, 1)

    def cut(self, batch: Any, start: int, count: int) -> Any:
        return self.pyg.Batch.from_data_list(batch.to_data_list()[start : start + count])

    def parts(self) -> Iterator[tuple[int, Any]]:
        for start, count in ((0, 1), (1, 3), (4, 2)):
            yield start, self.cut(self.batch, start, count)

    def with_others_changed(self) -> Any:
        others = [copy.copy(graph) for graph in self.graphs[1:]]
        for graph in others:
            if "x" in graph:
                graph.x = graph.x.flip(0)
            if "edge_index" in graph:
                keep = graph.edge_index.max(0).values > 0
                for key in list(graph.keys()):
                    if graph.is_edge_attr(key):
                        graph[key] = graph[key][:, keep] if key == "edge_index" else graph[key][keep]
        return self.pyg.Batch.from_data_list([self.graphs[0], *others])

    def forms(self) -> dict[str, Any]:
        return {"a Batch": self.batch, "a Data": self.graphs[0]}

    def degenerate(self) -> dict[str, Any]:
        data, batch = self.pyg.Data, self.pyg.Batch.from_data_list
        none = torch.empty(2, 0, dtype=torch.long)
        one = data(x=torch.ones(1, 2), edge_index=none, y=torch.tensor([0]))
        full = torch.ones(4, 4).fill_diagonal_(0).nonzero().t()
        bare = data(edge_index=full, num_nodes=4, y=torch.tensor([0]))
        return {
            "one node": one,
            "graphs of one node": batch([one, one]),
            "no edges": data(x=torch.ones(3, 2), edge_index=none, y=torch.tensor([0])),
            "no edge_index at all": data(x=torch.ones(3, 2), y=torch.tensor([0])),
            "no node features": batch([bare, bare]),
            "a complete graph": data(x=torch.ones(4, 2), edge_index=full, y=torch.tensor([0])),
        }

    def type_change(self, before: Any, after: Any) -> str:
        if type(before) is not type(after):
            return f"{type(before).__name__} became {type(after).__name__}"
        for key in before.keys():  # noqa: SIM118 - a Data iterates over pairs
            one: Any = before[key]
            other: Any = after.get(key, None)
            if isinstance(one, Tensor) and not isinstance(other, Tensor):
                return f"the field {key} is gone or no tensor any more"
            if isinstance(one, Tensor) and (one.dtype, one.device) != (other.dtype, other.device):
                return f"{key}: {one.dtype} on {one.device} became {other.dtype} on {other.device}"
        return ""

    def shape_change(self, before: Any, after: Any, whole: bool) -> str:  # noqa: ARG002
        if isinstance(before, self.pyg.Batch) and before.num_graphs != after.num_graphs:
            return f"{before.num_graphs} graphs became {after.num_graphs}"
        if "x" in before and before.x.shape[1:] != after.x.shape[1:]:
            return f"features {list(before.x.shape[1:])} became {list(after.x.shape[1:])}"
        if after.num_nodes < (before.num_graphs if isinstance(before, self.pyg.Batch) else 1):
            return "a graph has no node left"
        return ""

    def label_change(self, after: Any) -> str:
        for i, (one, other) in enumerate(zip(self.graphs, after.to_data_list(), strict=True)):
            if "y" in one and ("y" not in other or not same(one.y, other.y)):
                return f"y of graph {i} was {one.y} and is {other.y if 'y' in other else 'gone'}"
        return ""

    def invalid(self, after: Any) -> str:
        graphs = after.to_data_list() if isinstance(after, self.pyg.Batch) else [after]
        for i, graph in enumerate(graphs):
            if "x" in graph and not bool(graph.x.isfinite().all()):
                return f"graph {i} has features that are not finite"
            if "x" in graph and len(graph.x) != graph.num_nodes:
                return f"graph {i} has {len(graph.x)} feature rows for {graph.num_nodes} nodes"
            problem = invalid_edges(graph)
            if problem:
                return f"graph {i} {problem}"
        return ""

    def effect(self, after: Any) -> float:
        return sum(difference(a, b) for a, b in zip(self.graphs, after.to_data_list(), strict=True)) / len(
            self.graphs
        )

    def changes(self, after: Any) -> tuple[Tensor, ...]:  # noqa: ARG002
        raise InputError("no graph transform has two sides")


def invalid_edges(graph: Any) -> str:
    """What is wrong with a graph's edges."""
    if "edge_index" not in graph or not graph.edge_index.numel():
        return ""
    if int(graph.edge_index.min()) < 0 or int(graph.edge_index.max()) >= graph.num_nodes:
        return f"has an edge to node {int(graph.edge_index.max())} of {graph.num_nodes}, or of another graph"
    for key in graph.keys():  # noqa: SIM118 - a Data iterates over pairs
        if key.startswith("edge_attr") and len(graph[key]) != graph.edge_index.shape[1]:
            return f"has {len(graph[key])} entries of {key} for {graph.edge_index.shape[1]} edges"
    return ""


def difference(one: Any, other: Any) -> float:
    """The largest share of nodes, edges or feature rows that changed."""
    shares = [abs(one.num_nodes - other.num_nodes) / max(one.num_nodes, 1)]
    if "edge_index" in one and one.num_nodes == other.num_nodes:
        before, after = (set(map(tuple, graph.edge_index.t().tolist())) for graph in (one, other))
        shares.append(len(before - after) / max(len(before), 1))
    if "x" in one and one.x.shape == other.x.shape:
        shares.append(float((one.x != other.x).flatten(1).any(1).float().mean()))
    return float(max(shares))


def same_tensors(one: Tensor, other: Tensor) -> bool:
    """Equal in type, shape and every bit that counts (NaN equals NaN)."""
    return one.dtype == other.dtype and one.shape == other.shape and bool(((one == other) | (one != one)).all())


def same(one: Any, other: Any) -> bool:
    """Equal, tensors and all."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return same_tensors(one, other)
    return type(one) is type(other) and bool(one == other)
