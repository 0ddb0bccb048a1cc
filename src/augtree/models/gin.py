"""Graph isomorphism networks (Xu et al. 2019) on a PyG batch, without PyG."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from augtree.models.base import Inputs
from augtree.models.graph import GraphModel, check_form, degrees, membership, one_hot, require_features
from augtree.models.neighbour_sums import Sums

HIGHEST_DEGREE = 64


class Layer(nn.Module):
    """The sum of a node and its neighbours, through two linear layers, each with norm and ReLU."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.linear1, self.bn1 = nn.Linear(channels, hidden), nn.BatchNorm1d(hidden)
        self.linear2, self.bn2 = nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden)

    def forward(self, x: Tensor, neighbours: Sums) -> Tensor:
        """The nodes' next features."""
        x = x + neighbours(x)
        x = F.relu(self.bn1(self.linear1(x)))
        return F.relu(self.bn2(self.linear2(x)))


class Gin(GraphModel):
    """Layers of message passing; the classifier takes the pooled nodes of all of them.

    Graphs without node features get one-hot degrees instead.
    """

    def __init__(self, inputs: Inputs, *, layers: int = 3, hidden: int = 64, pooling: str = "sum") -> None:
        super().__init__()
        check_form(layers, hidden, pooling)
        self.channels, self.pooling = inputs.channels, pooling
        widths = [inputs.channels or HIGHEST_DEGREE + 1, *[hidden] * layers]
        self.layers = nn.ModuleList([Layer(a, b) for a, b in pairwise(widths)])
        self.fc = nn.Linear(layers * hidden, inputs.outputs)

    def node_layers(self, batch: Any) -> tuple[list[Tensor], Sums]:
        """The nodes of each layer."""
        members = membership(batch)
        nodes, _ = members.sizes
        neighbours = Sums.over_neighbours(batch.edge_index, nodes)
        x, outputs = self.node_features(batch, nodes), []
        for layer in self.layers:
            x = layer(x, neighbours).to(self.fc.weight.dtype)  # sums are float32 where layers are bfloat16
            outputs.append(x)
        return outputs, members

    def node_features(self, batch: Any, nodes: int) -> Tensor:
        """Those of the batch, or one-hot degrees."""
        if self.channels:
            x = require_features(batch, self.channels, "gin")
        else:
            x = one_hot(degrees(batch.edge_index, nodes), HIGHEST_DEGREE)
        return x.to(self.fc.weight.dtype)
