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
from augtree.keys import Key, element_bits, shift
from augtree.transforms.base import Policy, Stage, Transform, check_magnitude
from augtree.transforms.graph_batch import Graphs, in_order
from augtree.transforms.graph_fields import spread_out, true_at

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


def share(counts: Tensor, ratio: Tensor, uniform: Tensor) -> Tensor:
    """Ratio * counts, rounded up or down at random."""
    return (counts * ratio + uniform * (ratio > 0)).floor().long()


def ranks(order: Tensor, graph: Tensor, local: Tensor) -> Tensor:
    """The rank of each element within its graph when sorted by `order` (40 bits); elements stand graph by graph."""
    by_order = torch.argsort((graph << 40) | order, stable=True)
    return torch.empty_like(local).scatter_(0, by_order, local)


def first_in_random_order(graphs: Graphs, count: Tensor, state: Tensor) -> Tensor:
    """A mask of `count` nodes of each graph, drawn without replacement."""
    of = graphs.graph
    bits = element_bits(state.index_select(0, of), graphs.local, PICK)
    return ranks(shift(bits, 23), of, graphs.local) < count.to(of.device).index_select(0, of)


@dataclass(frozen=True)
class DropNodes(GraphTransform):
    """Remove a share of the nodes with their edges; at least one stays."""

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Drop the nodes that come first in a random order."""
        gone = torch.minimum(share(graphs.nodes, ratio, uniform), (graphs.nodes - 1).clamp(min=0))
        return graphs.keep_nodes(~first_in_random_order(graphs, gone, state), graphs.nodes - gone)


@dataclass(frozen=True)
class MaskNodes(GraphTransform):
    """Set the features of a share of the nodes to zero; graphs without features stay as they are."""

    def on_batch(self, graphs: Graphs, ratio: Tensor, uniform: Tensor, state: Tensor) -> Any:
        """Mask the nodes that come first in a random order."""
        if "x" not in graphs.batch:
            return graphs.batch
        masked = first_in_random_order(graphs, share(graphs.nodes, ratio, uniform), state)
        out = copy.copy(graphs.batch)
        out.x = out.x.index_fill(0, true_at(masked), 0)
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
        gone = torch.minimum(share(graphs.nodes, ratio, uniform), (graphs.nodes - 1).clamp(min=0))
        wanted = graphs.nodes - gone
        walks = torch.where(gone > 0, (3 * wanted + self.length - 1) // self.length, 0)
        of = graphs.graph
        # Nodes that are not visited come after, in random order.
        order = shift(element_bits(state.index_select(0, of), graphs.local, PICK), 25) | (1 << 38)
        self.walk(graphs, walks, state, order)
        kept = ranks(order, of, graphs.local) < wanted.to(of.device).index_select(0, of)
        return graphs.keep_nodes(kept, wanted)

    def walk(self, graphs: Graphs, walks: Tensor, state: Tensor, order: Tensor) -> None:
        """Write into `order` when each node is first visited, walks counted one after the other."""
        device = graphs.graph.device
        degree, first, target = neighbours(graphs.edge_index, len(order))
        graph = spread_out(walks)
        number = (torch.arange(len(graph), device="cpu") - (walks.cumsum(0) - walks).index_select(0, graph)).to(
            device
        )
        graph = graph.to(device)
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
        source, target = graphs.edge_index
        slots = true_at(source != target)
        if not slots.numel():
            return graphs.batch
        device = source.device
        # Every undirected edge once, sorted, by its number among all pairs of nodes of the batch.
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        edges, which = torch.unique(pair_number(low, high).index_select(0, slots), return_inverse=True)
        high = torch.empty_like(edges).scatter_(0, which, high.index_select(0, slots))
        owner = graphs.graph.index_select(0, high)
        count = torch.bincount(owner, minlength=len(graphs.nodes))
        first = count.cumsum(0) - count
        local = torch.arange(len(edges), device=device) - first.index_select(0, owner)

        nodes = graphs.nodes.to(device)
        absent = (nodes * (nodes - 1) >> 1) - count
        gone = share(count, ratio.to(device), uniform.to(device))
        bits = element_bits(state.index_select(0, owner), local, PICK)
        rank = ranks(shift(bits, 23), owner, local)
        leaves = rank < gone.index_select(0, owner)
        changes = true_at(rank < torch.minimum(gone, absent).index_select(0, owner))

        # The nth absent edge of a graph: n, and one more for every edge that is there before it.
        start = graphs.start.index_select(0, owner)
        low = edges - (high * (high - 1) >> 1)
        absent_before = pair_number(low - start, high - start) - local
        whose = owner.index_select(0, changes)
        nth = spread(rank.index_select(0, changes), torch.minimum(gone, absent)[whose], absent[whose], state[whose])
        room = (absent + 1).cumsum(0) - (absent + 1)
        passed = torch.searchsorted(room.index_select(0, owner) + absent_before, room[whose] + nth, right=True)
        new_low, new_high = pair_ends(nth + passed - first[whose])
        low.scatter_(0, changes, new_low + graphs.start[whose])
        high.scatter_(0, changes, new_high + graphs.start[whose])

        leaves.scatter_(0, changes, False)
        return graphs.keep_edges(*rewired(graphs.edge_index, slots, which, low, high, leaves))


def rewired(
    edge_index: Tensor, slots: Tensor, which: Tensor, low: Tensor, high: Tensor, leaves: Tensor
) -> tuple[Tensor, Tensor]:
    """Edges with their new ends, and the numbers of the edges whose places they take."""
    source, target = edge_index
    kept = slots.index_select(0, true_at(~leaves.index_select(0, which)))
    if len(slots) < len(source):  # self-loops stay where they are
        kept = torch.cat([kept, true_at(source == target)]).sort().values
    forward = source < target
    low_end, high_end = source.clone(), source.clone()
    low_end.scatter_(0, slots, low.index_select(0, which))
    high_end.scatter_(0, slots, high.index_select(0, which))
    ends = torch.stack([torch.where(forward, low_end, high_end), torch.where(forward, high_end, low_end)])
    return ends.index_select(1, kept), kept


def spread(rank: Tensor, count: Tensor, size: Tensor, state: Tensor) -> Tensor:
    """For ranks 0 .. count-1 different numbers in [0, size), each number equally likely.

    Systematic sampling: one number from each of `count` equal parts, all turned by the same amount.
    """
    begin, end = rank * size // count, (rank + 1) * size // count
    turn = element_bits(state, torch.zeros_like(rank), TURN)
    return (begin + element_bits(state, rank, NEW) % (end - begin) + turn % size) % size


def pair_number(low: Tensor, high: Tensor) -> Tensor:
    """Pairs of nodes counted: (0,1), (0,2), (1,2), (0,3) ..."""
    return (high * (high - 1) >> 1) + low


def pair_ends(number: Tensor) -> tuple[Tensor, Tensor]:
    """The lower and the higher node of a pair."""
    high = ((1 + (1 + 8 * number.double()).sqrt()) / 2).long()
    high = torch.where(high * (high - 1) >> 1 > number, high - 1, high)
    high = torch.where((high + 1) * high >> 1 <= number, high + 1, high)
    return number - (high * (high - 1) >> 1), high


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
