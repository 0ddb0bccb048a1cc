"""The undirected edges of a batch as numbers of pairs of nodes, in order, and the pairs that are no edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from augtree.transforms.graph_batch import Graphs, stable_order
from augtree.transforms.graph_fields import numbered, slices, true_at


@dataclass(frozen=True)
class UndirectedEdges:
    """Every undirected edge of a batch once, graph by graph, in the order of the pairs of nodes; no self-loops."""

    graphs: Graphs
    pair: Tensor
    """The number of each edge, when the pairs of all graphs are counted one graph after the other."""
    column: Tensor
    """The columns of `edge_index`, edge by edge."""
    begin: Tensor
    """Where the columns of each edge begin, and the end."""
    first_pair: Tensor
    """The number of the first pair of each graph, and the end."""
    count: Tensor
    """Edges of each graph."""

    @staticmethod
    def of(graphs: Graphs) -> UndirectedEdges:
        """Sort the edges of a batch, which must have some."""
        source, target = (graphs.local.index_select(0, end) for end in graphs.edge_index)
        first_pair = slices(graphs.nodes * (graphs.nodes - 1) >> 1)
        end, first_pair = int(first_pair[-1]), first_pair.to(source.device)
        pair = pair_number(torch.minimum(source, target), torch.maximum(source, target))
        pair += first_pair.index_select(0, graphs.edge_graph)
        pair.masked_fill_(source == target, end)  # self-loops come last
        column = stable_order(pair, end.bit_length())
        pair = pair.index_select(0, column)
        last = pair.new_full((1,), -1)
        begin = true_at(torch.cat([last, pair]) != torch.cat([pair, last]))
        pair = pair.index_select(0, begin[:-1])
        bounds = torch.searchsorted(pair, first_pair)
        return UndirectedEdges(graphs, pair[: int(bounds[-1])], column, begin, first_pair, bounds.diff())

    def columns(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """The columns of some edges, and for each column which of these edges it belongs to."""
        begin = self.begin.index_select(0, edges)
        which, number = numbered(self.begin.index_select(0, edges + 1) - begin)
        return self.column.index_select(0, begin.index_select(0, which) + number), which

    def absent(self, graph: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and the higher node of the pairs without an edge that have these numbers in their graphs."""
        # The nth absent pair of a batch is n, and one more for every edge that is there before it.
        absent_before = self.pair - torch.arange(len(self.pair), device=self.pair.device)
        first = self.first_pair[:-1] - (self.count.cumsum(0) - self.count)
        nth = first.index_select(0, graph) + number
        pair = nth + torch.searchsorted(absent_before, nth, right=True)
        low, high = pair_ends(pair - self.first_pair.index_select(0, graph))
        start = self.graphs.start.index_select(0, graph)
        return low + start, high + start


def pair_number(low: Tensor, high: Tensor) -> Tensor:
    """Pairs of nodes counted: (0,1), (0,2), (1,2), (0,3) ..."""
    return (high * (high - 1) >> 1) + low


def pair_ends(number: Tensor) -> tuple[Tensor, Tensor]:
    """The lower and the higher node of a pair."""
    high = ((1 + (1 + 8 * number.double()).sqrt()) / 2).long()
    high = torch.where(high * (high - 1) >> 1 > number, high - 1, high)
    high = torch.where((high + 1) * high >> 1 <= number, high + 1, high)
    return number - (high * (high - 1) >> 1), high
