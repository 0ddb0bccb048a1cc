"""What the graph networks share: node features, degrees, and pooling of nodes into graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from augtree.errors import InputError, one_of, whole_number
from augtree.models.base import Model
from augtree.models.neighbour_sums import Sums

POOLINGS = ("sum", "mean", "max")


class GraphModel(Model):
    """A graph network, whose features are pooled nodes."""

    pooling: str

    def node_layers(self, batch: Any) -> tuple[list[Tensor], Sums]:
        """The nodes of the layers that are pooled, each [nodes, width], and which graph they are from."""
        raise NotImplementedError

    def features(self, batch: Any) -> Tensor:
        """The pooled nodes of these layers, side by side."""
        layers, members = self.node_layers(batch)
        return self.pooled(layers, members)

    def with_nodes(self, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The features of graphs, those of nodes, and the graph of each node."""
        layers, members = self.node_layers(batch)
        return self.pooled(layers, members), torch.cat(layers, dim=1), members.targets

    def pooled(self, layers: list[Tensor], members: Sums) -> Tensor:
        """The pooled nodes of some layers, side by side."""
        return torch.cat([pool(x, members, self.pooling) for x in layers], dim=1)


def check_form(layers: int, hidden: int, pooling: str) -> None:
    """Raise for options that no network has."""
    whole_number("layers", layers, 1, 64)
    whole_number("hidden", hidden, 1, 8192)
    one_of("pooling", pooling, POOLINGS)


def membership(batch: Any) -> Sums:
    """Sums over the nodes of each graph; a `Data` is a batch of one graph."""
    if batch.batch is None:
        return Sums.over_members(batch.edge_index.new_zeros(batch.num_nodes), 1)
    return Sums.over_members(batch.batch, batch.num_graphs)


def require_features(batch: Any, channels: int, model: str) -> Tensor:
    """The nodes' features, or an InputError where they do not fit the model."""
    x: Tensor | None = batch.x
    if x is None or x.shape[1:] != (channels,):
        got = "no x" if x is None else f"x of shape {list(x.shape)}"
        raise InputError(f"this {model} needs graphs with {channels} node features, got {got}")
    return x


def degrees(edges: Tensor, nodes: int) -> Tensor:
    """The number of incoming edges of each node; an edge goes from edges[0] to edges[1]."""
    return edges.new_zeros(nodes).index_add(0, edges[1], torch.ones_like(edges[1]))


def one_hot(counts: Tensor, highest: int) -> Tensor:
    """A column for each count from 0 on; the last is for `highest` and above."""
    return counts.clamp(max=highest)[:, None] == torch.arange(highest + 1, device=counts.device)


def pool(x: Tensor, members: Sums, pooling: str) -> Tensor:
    """The sum, mean or maximum over the nodes of each graph; 0 for a graph without nodes."""
    graph, graphs = members.targets, members.sizes[1]
    if pooling == "max":
        zeros = x.new_zeros(graphs, x.shape[1])
        return zeros.scatter_reduce(0, graph[:, None].expand_as(x), x, "amax", include_self=False)
    total = members(x)
    if pooling == "sum":
        return total
    count = graph.new_zeros(graphs).index_add(0, graph, torch.ones_like(graph))
    return total / count.clamp(min=1)[:, None]
