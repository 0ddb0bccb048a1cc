"""Residual graph convolutional networks (Chen, Bian and Sun 2019) on a PyG batch, without PyG."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augtree.models.base import Inputs
from augtree.models.graph import GraphModel, check_form, degrees, membership, one_hot, require_features
from augtree.models.neighbour_sums import Sums

HIGHEST_DEGREE = 100


class Layer(nn.Module):
    """A residual layer: a node's features, plus a graph convolution of the normalised ones."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.bn, self.linear = nn.BatchNorm1d(hidden), nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, neighbours: Sums, root: Tensor) -> Tensor:
        """The nodes' next features."""
        return x + F.relu(self.linear(graph_convolution(self.bn(x), neighbours, root)))


class ResGcn(GraphModel):
    """Residual graph convolutions; the classifier takes the pooled nodes of the last.

    A node's features are those of the batch, its degree, and its degree one-hot; degrees are those of the augmented
    graph.
    """

    def __init__(self, inputs: Inputs, *, layers: int = 3, hidden: int = 128, pooling: str = "sum") -> None:
        super().__init__()
        check_form(layers, hidden, pooling)
        self.channels, self.pooling = inputs.channels, pooling
        features = inputs.channels + 1 + HIGHEST_DEGREE + 1
        self.bn, self.linear = nn.BatchNorm1d(features), nn.Linear(features, hidden)
        self.layers = nn.ModuleList([Layer(hidden) for _ in range(layers)])
        self.fc = nn.Linear(hidden, inputs.outputs)

    def node_layers(self, batch: Any) -> tuple[list[Tensor], Sums]:
        """The nodes of the last layer."""
        members = membership(batch)
        nodes, _ = members.sizes
        degree, neighbours = degrees(batch.edge_index, nodes), Sums.over_neighbours(batch.edge_index, nodes)
        x = F.relu(self.linear(self.bn(self.node_features(batch, degree))))
        x = x.to(self.fc.weight.dtype)  # residuals add up in float32 where layers are bfloat16
        root = (degree + 1).to(x.dtype).rsqrt()[:, None]
        for layer in self.layers:
            x = layer(x, neighbours, root)
        return [x], members

    def node_features(self, batch: Any, degree: Tensor) -> Tensor:
        """Those of the batch, the degree, and the degree one-hot."""
        parts = [degree[:, None], one_hot(degree, HIGHEST_DEGREE)]
        if self.channels:
            parts.insert(0, require_features(batch, self.channels, "resgcn"))
        return torch.cat([part.to(self.fc.weight.dtype) for part in parts], dim=1)


def graph_convolution(x: Tensor, neighbours: Sums, root: Tensor) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 x, where root [nodes, 1] is the diagonal of D^-1/2, and D counts the node itself.

    Repeated edges count repeatedly.
    """
    x = x * root
    return (x + neighbours(x)) * root
