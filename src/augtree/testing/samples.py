"""What the checks need to know of pictures and of graphs: how to compare, cut and change a batch of them.

A problem is a text; "" is none.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from augtree.errors import InputError, need
from augtree.transforms import graph_batch
from augtree.transforms.pictures import check_pictures
from augtree.transforms.spaces import GRAPH_MAGNITUDES, IMAGE_MAGNITUDES

COUNT = 6


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
        batch = check_pictures(sample)
        if not batch.numel():
            raise InputError(f"a sample must hold at least one picture, got shape {list(batch.shape)}")
        if batch.dtype != torch.uint8:
            batch = (batch * 255).round().to(torch.uint8)
        batch = batch[None] if batch.ndim == 3 else batch[:COUNT]
        while len(batch) < COUNT:
            batch = torch.cat([batch, batch.flip(3), batch.flip(2)])
        self.pictures = batch[:COUNT].clone()

    @property
    def batch(self) -> Tensor:
        """Fresh each time, so that nothing spoils it for the next check."""
        return self.pictures.clone()

    @property
    def most_at_weakest(self) -> float:
        """Half of what lies between two pictures that have nothing to do with each other."""
        return 0.5 * float((self.pictures.float() - self.pictures.roll(1, 0).float()).abs().mean() / 255)

    def stock(self) -> PictureSamples:
        """Pictures with everything in them: slopes, edges, texture, colours."""
        rng = torch.Generator().manual_seed(7)
        y, x = torch.meshgrid(torch.linspace(0, 1, 48), torch.linspace(0, 1, 48), indexing="ij")
        pictures = torch.zeros(COUNT, self.pictures.shape[1], 48, 48)
        for picture in pictures:
            for channel in picture:
                a, b, c = torch.rand(3, generator=rng) * 7 + 1
                channel += 0.5 + 0.35 * torch.sin(a * x + b * y + c)
            left, top = (int(v) for v in torch.randint(4, 24, (2,), generator=rng))
            picture[:, top : top + 16, left : left + 12] *= torch.rand(len(picture), 1, 1, generator=rng) * 2
        pictures += 0.06 * torch.randn(pictures.shape, generator=rng)
        return PictureSamples((pictures.clamp(0, 1) * 255).round().to(torch.uint8))

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
        channels = self.pictures.shape[1]
        sizes = ((1, 1), (1, 9), (9, 1), (2, 2))
        out = {f"{h}x{w} pixels": self.pictures.new_full((3, channels, h, w), 90) for h, w in sizes}
        out["black"] = torch.zeros_like(self.pictures)
        out["white"] = torch.full_like(self.pictures, 255)
        out["no pictures"] = self.pictures[:0]
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
        return "" if bool(after.isfinite().all()) else "values are not finite"

    def effect(self, after: Tensor) -> float:
        return float((after.float() - self.pictures.float()).abs().mean() / 255)

    def changes(self, after: Tensor) -> tuple[Tensor, ...]:
        """The first picture's change, as it is and smoothed: fine texture hides which way things moved."""
        change = after[0].float() - self.pictures[0].float()
        smooth = torch.nn.functional.avg_pool2d(change, max(1, min(change.shape[1:]) // 6), 1)
        top, left = smooth.shape[1] // 8, smooth.shape[2] // 8
        inside = smooth[:, top : smooth.shape[1] - top, left : smooth.shape[2] - left]
        return change.flatten(), inside.flatten()


class GraphSamples:
    """PyG graphs."""

    magnitudes = GRAPH_MAGNITUDES
    most_at_weakest = 0.2

    def __init__(self, sample: Any) -> None:
        self.pyg = need("torch_geometric.data", "graph")
        batch, _ = graph_batch.as_batch(sample)
        graphs = [graph for graph in batch.to_data_list() if graph.num_nodes]
        if not graphs:
            raise InputError("a sample must hold at least one graph with nodes, got none")
        self.graphs = [graphs[i % len(graphs)] for i in range(COUNT)]
        keys = list(graphs[0].keys())
        self.of_nodes = [key for key in keys if all(graph.is_node_attr(key) for graph in graphs)]
        self.of_edges = [key for key in keys if all(graph.is_edge_attr(key) for graph in graphs)]
        self.of_graphs = [key for key in keys if key not in (*self.of_nodes, *self.of_edges, "num_nodes")]

    @property
    def batch(self) -> Any:
        """Fresh each time, so that nothing spoils it for the next check."""
        return self.pyg.Batch.from_data_list([graph.clone() for graph in self.graphs])

    def stock(self) -> GraphSamples:
        """Graphs with everything in them."""
        rng = torch.Generator().manual_seed(7)
        graphs = []
        for _ in range(COUNT):
            joined = (torch.rand(18, 18, generator=rng) < 0.25).triu(1)
            edges = (joined | joined.t()).nonzero().t().contiguous()
            x, y = torch.randn(18, 3, generator=rng), torch.randint(2, (1,), generator=rng)
            graphs.append(self.pyg.Data(x=x, edge_index=edges, edge_attr=torch.rand(edges.shape[1], 2), y=y))
        return GraphSamples(self.pyg.Batch.from_data_list(graphs))

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
        others = [without_node_0(graph) for graph in self.graphs[1:]]
        return self.pyg.Batch.from_data_list([self.graphs[0], *others])

    def forms(self) -> dict[str, Any]:
        return {"a Batch": self.batch, "a Data": self.graphs[0].clone()}

    def degenerate(self) -> dict[str, Any]:
        """The smallest and emptiest graphs that have the sample's fields."""
        one = self.graphs[0].subgraph(torch.tensor([0]))
        out = {"one node": one, "graphs of one node": self.pyg.Batch.from_data_list([one, one])}
        if "edge_index" in one:
            none = copy.copy(self.graphs[0])
            for key in self.of_edges:
                none[key] = none[key][:, :0] if key == "edge_index" else none[key][:0]
            out["no edges"] = none
            if self.graphs[0].num_edges:
                out["a complete graph"] = self.complete()
        return out

    def complete(self) -> Any:
        """Three nodes of the first graph, each joined with each other."""
        out = self.graphs[0].subgraph(torch.arange(min(3, self.graphs[0].num_nodes)))
        full = (1 - torch.eye(out.num_nodes)).nonzero().t()
        for key in self.of_edges:
            value = self.graphs[0][key]
            out[key] = full if key == "edge_index" else value[torch.arange(full.shape[1]) % len(value)]
        return out

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
        for key in (*self.of_nodes, *self.of_edges):
            if key == "edge_index" or not isinstance(before.get(key, None), Tensor):
                continue
            one, other = list(before[key].shape[1:]), list(after[key].shape[1:])
            if one != other:
                return f"entries of {key} of shape {one} became {other}"
        return ""

    def label_change(self, after: Any) -> str:
        for i, (one, other) in enumerate(zip(self.graphs, after.to_data_list(), strict=True)):
            for key in self.of_graphs:
                if key not in other or not same(one[key], other[key]):
                    return f"{key} of graph {i} was {one[key]} and is {other.get(key, 'gone')}"
        return ""

    def invalid(self, after: Any) -> str:
        graphs = after.to_data_list() if isinstance(after, self.pyg.Batch) else [after]
        for i, graph in enumerate(graphs):
            problem = self.invalid_graph(graph)
            if problem:
                return f"graph {i} {problem}"
        return ""

    def invalid_graph(self, graph: Any) -> str:
        """What is wrong with a graph."""
        if not graph.num_nodes:
            return "has no node left"
        for key, value in graph:
            if isinstance(value, Tensor) and not bool(value.isfinite().all()):
                return f"has {key} with values that are not finite"
        edges = graph.get("edge_index", None)
        if edges is not None and edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= graph.num_nodes):
            return f"has an edge to node {int(edges.max())} of {graph.num_nodes}, or of another graph"
        for keys, count, what in (
            (self.of_nodes, graph.num_nodes, "nodes"),
            (self.of_edges, graph.num_edges, "edges"),
        ):
            for key in keys:
                size = graph[key].shape[1] if key == "edge_index" else len(graph[key])
                if key in graph and size != count:
                    return f"has {size} entries of {key} for {count} {what}"
        return ""

    def effect(self, after: Any) -> float:
        pairs = zip(self.graphs, after.to_data_list(), strict=True)
        return sum(difference(one, other) for one, other in pairs) / COUNT

    def changes(self, after: Any) -> tuple[Tensor, ...]:  # noqa: ARG002
        raise InputError("no graph transform has two sides")


def without_node_0(graph: Any) -> Any:
    """Another graph, with the same fields."""
    if graph.num_nodes == 1:
        return graph
    return graph.subgraph(torch.arange(1, graph.num_nodes))


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


Samples = PictureSamples | GraphSamples
