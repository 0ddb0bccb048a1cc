"""The undirected edges of a batch as numbers of pairs of nodes, in order, and the pairs that are no edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.transforms.graph_arrays import (
    Array,
    array,
    floats,
    library,
    numbered,
    places,
    stable_order,
    up_to,
    whole,
)
from augtree.transforms.graph_batch import Graphs


@dataclass(frozen=True)
class UndirectedEdges:
    """Every undirected edge of a batch once, graph by graph, in the order of the pairs of nodes; no self-loops."""

    graph: Array
    """The graph of each edge."""
    local: Array
    """The number of each edge within its graph."""
    pair: Array
    """The number of each edge, when the pairs of all graphs are counted one graph after the other."""
    column: Array
    """The columns of `edge_index`, edge by edge."""
    begin: Array
    """Where the columns of each edge begin, and the end."""
    count: Array
    """Edges of each graph."""
    first: Array
    """The number of the first edge of each graph."""
    first_pair: Array
    """The number of the first pair of each graph."""
    absent: Array
    """Pairs without an edge of each graph."""

    @staticmethod
    def of(graphs: Graphs) -> UndirectedEdges:
        """Sort the edges of a batch, which must have some."""
        start, (one, other) = array(graphs.start), array(graphs.edge_index)
        arrays, room = library(start), len(graphs.graph).bit_length()
        ends = arrays.maximum(one, other)
        ends <<= room
        ends |= arrays.minimum(one, other)
        ends[one == other] = len(graphs.graph) << room  # self-loops come last
        column = stable_order(ends, 2 * room)
        ends = ends.take(column)
        fresh = arrays.ones_like(ends, dtype=bool)
        fresh[1:] = ends[1:] != ends[:-1]
        begin = places(fresh)
        ends = ends.take(begin)
        nodes = array(graphs.nodes.to(graphs.start.device))
        last = arrays.searchsorted(ends, start + nodes << room)
        count = last + 0
        count[1:] -= last[:-1]
        graph, local = numbered(count)
        before, ends = start.take(graph), ends[: len(graph)]
        pairs = nodes * (nodes - 1) >> 1
        first_pair = pairs.cumsum(0) - pairs
        pair = pair_number((ends & ((1 << room) - 1)) - before, (ends >> room) - before) + first_pair.take(graph)
        begin = arrays.concatenate([begin, begin[:1] + len(column)])
        return UndirectedEdges(graph, local, pair, column, begin, count, last - count, first_pair, pairs - count)

    def columns(self, edges: Array) -> tuple[Array, Array]:
        """The columns of some edges, and for each column which of these edges it belongs to."""
        begin = self.begin.take(edges)
        which, number = numbered(self.begin.take(edges + 1) - begin)
        return self.column.take(begin.take(which) + number), which

    def absent_ends(self, graph: Array, number: Array) -> tuple[Array, Array]:
        """The lower and the higher node, within their graphs, of the absent pairs that have these numbers there."""
        # The nth absent pair of a batch is n, and one more for every edge that is there before it.
        absent_before = self.pair - up_to(len(self.pair), self.pair)
        nth = (self.absent.cumsum(0) - self.absent).take(graph) + number
        pair = nth + library(nth).searchsorted(absent_before, nth, side="right")
        return pair_ends(pair - self.first_pair.take(graph))


def pair_number(low: Any, high: Any) -> Any:
    """Pairs of nodes counted: (0,1), (0,2), (1,2), (0,3) ..."""
    return (high * (high - 1) >> 1) + low


def pair_ends(pair: Array) -> tuple[Array, Array]:
    """The lower and the higher node of a pair; exact for up to 2**25 nodes."""
    high = whole(library(pair).sqrt(floats(pair) * 2 + 0.25) + 0.5)
    return pair - pair_number(0, high), high
