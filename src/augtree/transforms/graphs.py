"""The four graph transformations of GraphCL, on a whole PyG batch at once, with one ratio a graph.

The graphs are undirected and simple, each edge stored in both directions: readers remove self-loops and doubled
edges once (a directed graph stays one). The share of a graph that changes is its ratio to within one node or edge,
rounded up or down at random so that it holds on average even for graphs of three nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.errors import whole_number
from augtree.keys import Key, element_bits
from augtree.transforms.base import Policy, Stage, Transform, check_magnitude
from augtree.transforms.graph_arrays import Array, array, library, numbered, random_bits, stable_order, tensor, whole
from augtree.transforms.graph_batch import Graphs, in_order
from augtree.transforms.graph_fields import true_at
from augtree.transforms.graph_pairs import UndirectedEdges

ROUND, PICK, NEW, TURN, WALK, CHOICE = range(6)
"""Counters: rounding; order of nodes or edges; new edges; their cyclic turn; steps of walks; which of several."""


@dataclass(frozen=True)
class GraphTransform(Transform):
    """A transformation of a share of each graph."""

    magnitude: float = field()
    """The share of nodes or edges that changes, in (0, 1]."""
    domain = "graph"
    scaled = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", check_magnitude(self.magnitude))

    def act(self, graphs: Any, key: Key) -> Any:
        """Transform the graphs the key names, at the magnitude as ratio; the others have ratio 0."""
        opened = Graphs.of(graphs)
        ratio, uniform = np.zeros(len(opened.nodes)), np.zeros(len(opened.nodes))
        state = np.zeros(len(opened.nodes), np.int64)
        ratio[key.rows], uniform[key.rows] = self.magnitude, key.uniform(ROUND)
        state[key.rows] = key.state.view(np.int64)
        states = torch.from_numpy(state).to(opened.graph.device)
        return self.on_batch(opened, torch.from_numpy(ratio), torch.from_numpy(uniform), states)

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """The new batch; a graph with ratio 0 stays as it is. `ratio` and `uniform` are on the CPU."""
        raise NotImplementedError


def share(counts: Array, ratio: Array, uniform: Array) -> Array:
    """Ratio * counts, rounded up or down at random."""
    return whole(library(counts).floor(counts * ratio + uniform * (ratio > 0)))


def node_share(graphs: Graphs, ratio: Tensor, uniform: Tensor) -> Tensor:
    """Ratio * nodes of each graph, rounded up or down at random."""
    return tensor(share(*map(array, (graphs.nodes, ratio, uniform))))


def in_random_order(graph: Array, order: Array, graphs: int) -> Array:
    """The numbers of elements that stand graph by graph, those of each graph sorted by `order` (40 bits)."""
    return stable_order((graph << 40) | order, 40 + graphs.bit_length())


def heads(rows: Array, first: Array, counts: Array) -> Array:
    """From the rows of each graph, which begin at `first`, so many."""
    graph, number = numbered(counts)
    return rows.take(first.take(graph) + number)


def first_nodes(graphs: Graphs, order: Array, count: Tensor) -> Tensor:
    """The numbers of the `count` nodes of each graph that come first by `order` (40 bits)."""
    by_order = in_random_order(array(graphs.graph), order, len(graphs.nodes))
    return tensor(heads(by_order, array(graphs.start), array(count.to(graphs.start.device))))


def random_nodes(graphs: Graphs, count: Tensor, state: Tensor) -> Tensor:
    """The numbers of `count` nodes of each graph, drawn without replacement."""
    bits = random_bits(array(state).take(array(graphs.graph)), array(graphs.local), PICK)
    return first_nodes(graphs, bits >> 23, count)


@dataclass(frozen=True)
class DropNodes(GraphTransform):
    """Remove a share of the nodes with their edges; at least one stays."""

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Drop the nodes that come first in a random order."""
        gone = torch.minimum(node_share(graphs, ratio, uniform), (graphs.nodes - 1).clamp(min=0))
        kept = torch.ones_like(graphs.graph, dtype=torch.bool)
        kept.index_fill_(0, random_nodes(graphs, gone, state), False)
        return graphs.keep_nodes(kept, graphs.nodes - gone)


@dataclass(frozen=True)
class MaskNodes(GraphTransform):
    """Set the features of a share of the nodes to zero; graphs without features stay as they are."""

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Mask the nodes that come first in a random order."""
        if "x" not in graphs.batch:
            return graphs.batch
        masked = random_nodes(graphs, node_share(graphs, ratio, uniform), state)
        out = copy.copy(graphs.batch)
        out.x = out.x.index_fill(0, masked, 0)
        return out


@dataclass(frozen=True)
class Subgraph(GraphTransform):
    """Keep 1 - magnitude of the nodes: those that random walks from random start nodes reach first.

    Walks of `length` nodes start one after the other until enough nodes are reached; after about three steps for
    each node wanted, the rest are start nodes themselves.
    """

    length: int = 16
    """Nodes on a walk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("length", self.length, 1, 1024)

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Walk in all graphs at once, then keep the nodes with the earliest visits."""
        gone = torch.minimum(node_share(graphs, ratio, uniform), (graphs.nodes - 1).clamp(min=0))
        wanted = graphs.nodes - gone
        walks = torch.where(gone > 0, (3 * wanted + self.length - 1) // self.length, 0)
        of = graphs.graph
        # Nodes that are not visited come after, in random order.
        order = (element_bits(state.index_select(0, of), graphs.local, PICK) >> 25) | (1 << 38)
        self.walk(graphs, walks, state, order)
        kept = torch.zeros_like(of, dtype=torch.bool).index_fill_(0, first_nodes(graphs, array(order), wanted), True)
        return graphs.keep_nodes(kept, wanted)

    def walk(self, graphs: Graphs, walks: Tensor, state: Tensor, order: Tensor) -> None:
        """Write into `order` when each node is first visited, walks counted one after the other."""
        device = graphs.graph.device
        degree, first, target = neighbours(graphs.edge_index, len(order))
        graph, number = map(tensor, numbered(array(walks.to(device))))
        seen = number * self.length + torch.arange(self.length, device=device).view(-1, 1)
        draws = element_bits(state.index_select(0, graph), seen, WALK).unbind()
        here = graphs.start.index_select(0, graph) + draws[0] % graphs.nodes.to(device).index_select(0, graph)
        path = [here]
        for draw in draws[1:]:
            here = target.index_select(0, first.index_select(0, here) + draw % degree.index_select(0, here))
            path.append(here)
        order.scatter_reduce_(0, torch.cat(path), seen.view(-1), "amin")


def neighbours(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Degree of each node and where its neighbours begin in a list of targets; an isolated node leads to itself."""
    source, target = edge_index
    degree = torch.bincount(source, minlength=nodes)
    alone = true_at(degree == 0)
    target = torch.cat([in_order(target, source), alone])
    first = degree.cumsum(0) - degree
    first[alone] = torch.arange(len(source), len(target), device=source.device)
    return degree.clamp(min=1), first, target


@dataclass(frozen=True)
class PermuteEdges(GraphTransform):
    """Replace a share of the edges by as many new ones inside the same graph, as far as absent edges exist.

    A new edge takes the place, the directions and the fields of one that goes. Every absent edge is equally likely.
    Self-loops, should there be any, stay.
    """

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Give the edges that come first in a random order new ends, or none."""
        if not graphs.edge_index.numel():
            return graphs.batch
        edges, state = UndirectedEdges.of(graphs), array(state)
        bits = random_bits(state.take(edges.graph), edges.local, PICK)
        order = in_random_order(edges.graph, bits >> 23, len(graphs.nodes))
        gone = share(edges.count, *(array(each.to(graphs.start.device)) for each in (ratio, uniform)))
        changed = library(gone).minimum(gone, edges.absent)
        graph, number = new_pairs(changed, edges.absent, state)
        low, high = (end + array(graphs.start).take(graph) for end in edges.absent_ends(graph, number))
        columns, which = edges.columns(heads(order, edges.first, changed))
        ends = rewired(array(graphs.edge_index), columns, low.take(which), high.take(which))
        if bool((changed < gone).any()):
            lost, _ = edges.columns(heads(order, edges.first + changed, gone - changed))
            mask = torch.ones_like(graphs.edge_graph, dtype=torch.bool)
            kept = true_at(mask.index_fill_(0, tensor(lost), False))
            return graphs.keep_edges(selected(ends, kept), kept)
        return graphs.keep_edges(torch.stack(ends), None)


def selected(rows: list[Tensor], columns: Tensor) -> Tensor:
    """Some columns of rows, written where they stay."""
    out = rows[0].new_empty(len(rows), len(columns))
    for row, to in zip(rows, out, strict=True):
        torch.index_select(row, 0, columns, out=to)
    return out


def rewired(edge_index: Array, columns: Array, low: Array, high: Array) -> list[Tensor]:
    """The sources and the targets of edges of which some columns have new ends, in the same direction."""
    source, target = edge_index
    upward, where = source.take(columns) < target.take(columns), library(columns).where
    ends = []
    for old, new in ((source, where(upward, low, high)), (target, where(upward, high, low))):
        end = old + 0
        end[columns] = new
        ends.append(tensor(end))
    return ends


def new_pairs(count: Array, size: Array, state: Array) -> tuple[Array, Array]:
    """For each graph `count` different numbers in [0, size), each equally likely; first the graph of each number.

    Systematic sampling: one number from each of `count` equal parts, all turned by the same amount.
    """
    graph, rank = numbered(count)
    turn = random_bits(state, state * 0, TURN) % (size + (size == 0))
    count, size, turn, state = (each.take(graph) for each in (count, size, turn, state))
    begin, end = rank * size // count, (rank + 1) * size // count
    return graph, (begin + random_bits(state, rank, NEW) % (end - begin) + turn) % size


FOUR: tuple[type[GraphTransform], ...] = (DropNodes, PermuteEdges, Subgraph, MaskNodes)


@dataclass(frozen=True)
class GraphCL(Transform):
    """GraphCL (You et al. 2020): one of the four transformations for each graph, all equally likely.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> ring = torch.arange(10)
    >>> ring = torch.stack([torch.cat([ring, (ring + 1) % 10]), torch.cat([(ring + 1) % 10, ring])])
    >>> graph = Data(x=torch.ones(10, 2), edge_index=ring)
    >>> DropNodes(0.2)(graph, seed=0), GraphCL(0.2)(graph, seed=0).num_features
    (Data(x=[8, 2], edge_index=[2, 14]), 2)
    """

    magnitude: float = field()
    """The share of nodes or edges that changes, in (0, 1]."""
    domain = "graph"
    scaled = True
    describe = Policy.describe

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", check_magnitude(self.magnitude))

    def stages(self, key: Key) -> Iterator[Stage]:
        """All at once: each graph meets the one that was drawn for it."""
        which = key.below(len(FOUR), CHOICE)
        yield [(kind(self.magnitude), key.take(which == i)) for i, kind in enumerate(FOUR)]
