"""Graph isomorphism networks (Xu et al. 2019) on a PyG batch, without PyG."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augtree.errors import ArgumentError, InputError, whole_number
from augtree.models.base import Inputs, Model

POOLINGS = ("sum", "mean", "max")
HIGHEST_DEGREE = 64


class Layer(nn.Module):
    """A node and the sum of its neighbours, through two linear maps, each with norm and ReLU."""

    def __init__(self, inside: int, hidden: int) -> None:
        super().__init__()
        self.linear1, self.bn1 = nn.Linear(inside, hidden), nn.BatchNorm1d(hidden)
        self.linear2, self.bn2 = nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """The nodes' next features; an edge goes from edges[0] to edges[1]."""
        x = x.index_add(0, edges[1], x[edges[0]])
        x = F.relu(self.bn1(self.linear1(x)))
        return F.relu(self.bn2(self.linear2(x)))


class Gin(Model):
    """Layers of message passing; the classifier sees the pooled nodes of all of them.

    Graphs without node features get their nodes' degrees, one-hot.
    """

    def __init__(self, inputs: Inputs, *, layers: int = 3, hidden: int = 64, pooling: str = "sum") -> None:
        super().__init__()
        whole_number("layers", layers, 1, 64)
        whole_number("hidden", hidden, 1, 8192)
        if pooling not in POOLINGS:
            raise ArgumentError("pooling", f"must be one of {', '.join(POOLINGS)}", pooling)
        self.channels, self.pooling = inputs.channels, pooling
        widths = [inputs.channels or HIGHEST_DEGREE + 1, *[hidden] * layers]
        self.layers = nn.ModuleList([Layer(a, b) for a, b in pairwise(widths)])
        self.fc = nn.Linear(layers * hidden, inputs.outputs)

    def features(self, batch: Any) -> Tensor:
        """The pooled nodes of each layer, side by side."""
        graph, graphs = membership(batch)
        x, pooled = self.node_features(batch, len(graph)), []
        for layer in self.layers:
            x = layer(x, batch.edge_index)
            pooled.append(pool(x, graph, graphs, self.pooling))
        return torch.cat(pooled, dim=1)

    def node_features(self, batch: Any, nodes: int) -> Tensor:
        """The given ones, or the degrees."""
        if not self.channels:
            return degrees(batch.edge_index, nodes).to(self.fc.weight.dtype)
        x: Tensor | None = batch.x
        if x is None or x.shape[1:] != (self.channels,):
            got = "no x" if x is None else f"x of shape {list(x.shape)}"
            raise InputError(f"this gin needs graphs with {self.channels} node features, got {got}")
        return x.to(self.fc.weight.dtype)


def membership(batch: Any) -> tuple[Tensor, int]:
    """The graph of each node, and how many graphs there are; a Data is a batch of one."""
    if batch.batch is None:
        return batch.edge_index.new_zeros(batch.num_nodes), 1
    return batch.batch, batch.num_graphs


def degrees(edges: Tensor, nodes: int) -> Tensor:
    """How many edges come into each node, one-hot; the last column is for all from 64 on."""
    count = edges.new_zeros(nodes).index_add(0, edges[1], torch.ones_like(edges[1])).clamp(max=HIGHEST_DEGREE)
    return count[:, None] == torch.arange(HIGHEST_DEGREE + 1, device=edges.device)


def pool(x: Tensor, graph: Tensor, graphs: int, how: str) -> Tensor:
    """The sum, mean or maximum over the nodes of each graph; 0 where a graph has none."""
    zeros = x.new_zeros(graphs, x.shape[1])
    if how == "max":
        return zeros.scatter_reduce(0, graph[:, None].expand_as(x), x, "amax", include_self=False)
    total = zeros.index_add(0, graph, x)
    if how == "sum":
        return total
    count = x.new_zeros(graphs).index_add(0, graph, torch.ones_like(x[:, 0]))
    return total / count.clamp(min=1)[:, None]
