"""A network that augments graphs step by step, and how likely its choices were."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augtree.keys import Key, element_bits
from augtree.models import Inputs
from augtree.models.gin import Gin
from augtree.transforms.base import Policy
from augtree.transforms.graph_batch import Graphs
from augtree.transforms.graph_fields import true_at
from augtree.transforms.graphs import pair_number

MASK_NODES, DROP_NODES, DROP_EDGES = CATEGORIES = range(3)
CATEGORY, NODE, EDGE = range(3)
"""Counters of the draws."""
RARE = -2.0
"""The score of a node or edge before any training: about one of eight is chosen."""


class Chosen(NamedTuple):
    """Which elements of a batch are chosen, and how likely this was for each graph, as a logarithm."""

    which: Tensor
    log_probability: Tensor


class UndirectedEdges(NamedTuple):
    """The edges of a batch, both directions as one; self-loops are none."""

    low: Tensor
    high: Tensor
    graph: Tensor
    local: Tensor
    """The number of each edge within its graph."""
    slots: Tensor
    """The columns of `edge_index` that are no self-loops."""
    edge_of_slot: Tensor


class Generator(nn.Module):
    """Chooses, for each graph and step, a category of transforms, and then the nodes or edges that it changes."""

    def __init__(self, channels: int, length: int, hidden: int = 32) -> None:
        super().__init__()
        self.length, self.featured = length, channels > 0
        self.encoder = Gin(Inputs("graph", channels, 0, 1), layers=2, hidden=hidden, pooling="mean")
        width = 2 * hidden
        self.memory, self.category = nn.GRUCell(width, width), nn.Linear(width, len(CATEGORIES))
        self.scores = nn.ModuleList([scores(width) for _ in CATEGORIES])

    def forward(self, batch: Any, key: Key) -> tuple[Any, Tensor]:
        """The batch after all steps, and the logarithm of the probability of what was done to each graph."""
        memory: Tensor | None = None
        total: Tensor | float = 0.0
        for step in range(self.length):
            batch, memory, log_probability = self.step(batch, memory, key.at(step))
            total = total + log_probability
        return batch, cast(Tensor, total)

    def step(self, batch: Any, memory: Tensor | None, key: Key) -> tuple[Any, Tensor, Tensor]:
        """One step: the new batch, what is remembered, and how likely the choices were."""
        pooled, nodes, _ = self.encoder.with_nodes(batch)
        memory = self.memory(pooled, memory)
        graphs, state = Graphs.of(batch), torch.from_numpy(key.state.view(np.int64)).to(pooled.device)
        category = self.choose_category(cast(Tensor, memory), key)
        edges = undirected(graphs)
        node_scores = torch.cat([self.scores[i](nodes) for i in (MASK_NODES, DROP_NODES)], 1)
        kind = category.which.index_select(0, graphs.graph)
        node_score = node_scores.gather(1, kind.clamp(max=DROP_NODES)[:, None])[:, 0]
        edge_score = self.scores[DROP_EDGES](nodes[edges.low] + nodes[edges.high])[:, 0]
        drawn = chosen(node_score, kind != DROP_EDGES, graphs.graph, graphs.local, state, NODE)
        of_edges = category.which.index_select(0, edges.graph) == DROP_EDGES
        dropped = chosen(edge_score, of_edges, edges.graph, edges.local, state, EDGE)
        masked = drawn.which & (kind == MASK_NODES)
        changed = without(graphs, masked, drawn.which & (kind == DROP_NODES), dropped.which, edges)
        likely = category.log_probability + drawn.log_probability + dropped.log_probability
        return changed, cast(Tensor, memory), likely

    def choose_category(self, memory: Tensor, key: Key) -> Chosen:
        """The category of each graph; nothing is masked where nodes have no features."""
        logits = self.category(memory)
        if not self.featured:
            logits = logits.index_fill(1, torch.tensor([MASK_NODES], device=logits.device), float("-inf"))
        log_probabilities = F.log_softmax(logits, 1)
        edges = log_probabilities.detach().exp().double().cumsum(1)[:, :-1]
        uniform = torch.from_numpy(key.uniform(CATEGORY)).to(edges.device)
        which = (uniform[:, None] >= edges).sum(1)
        return Chosen(which, log_probabilities.gather(1, which[:, None])[:, 0])


def scores(width: int) -> nn.Sequential:
    """The score of each node or edge, low at first."""
    last = nn.Linear(width, 1)
    nn.init.constant_(last.bias, RARE)
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), last)


def chosen(score: Tensor, active: Tensor, graph: Tensor, local: Tensor, state: Tensor, counter: int) -> Chosen:
    """Choose each active element of the graphs independently, with the probability sigmoid(score)."""
    bits = element_bits(state.index_select(0, graph), local, counter)
    which = (bits.double() * 2.0**-63 < torch.sigmoid(score.detach()).double()) & active
    each = torch.where(active, F.logsigmoid(torch.where(which, score, -score)), 0.0)
    return Chosen(which, each.new_zeros(len(state)).index_add(0, graph, each))


def undirected(graphs: Graphs) -> UndirectedEdges:
    """The edges of a batch, graph by graph."""
    source, target = graphs.edge_index
    slots = true_at(source != target)
    low, high = torch.minimum(source, target)[slots], torch.maximum(source, target)[slots]
    numbers, edge_of_slot = torch.unique(pair_number(low, high), return_inverse=True)
    low = torch.empty_like(numbers).scatter_(0, edge_of_slot, low)
    high = torch.empty_like(numbers).scatter_(0, edge_of_slot, high)
    graph = graphs.graph.index_select(0, high)
    counts = torch.bincount(graph, minlength=len(graphs.nodes))
    local = torch.arange(len(numbers), device=graph.device) - (counts.cumsum(0) - counts).index_select(0, graph)
    return UndirectedEdges(low, high, graph, local, slots, edge_of_slot)


def without(graphs: Graphs, masked: Tensor, gone: Tensor, gone_edges: Tensor, edges: UndirectedEdges) -> Any:
    """The batch without the features of some nodes, without some nodes, without some edges; one node stays."""
    batch = graphs.batch
    if bool(masked.any()):
        batch = copy.copy(batch)
        batch.x = batch.x.index_fill(0, true_at(masked), 0)
    if bool(gone_edges.any()):
        stays = torch.ones(graphs.edge_index.shape[1], dtype=torch.bool, device=masked.device)
        stays[edges.slots] = ~gone_edges.index_select(0, edges.edge_of_slot)
        kept = true_at(stays)
        batch = Graphs.of(batch).keep_edges(graphs.edge_index.index_select(1, kept), kept)
    if bool(gone.any()):
        left = torch.bincount(graphs.graph[~gone], minlength=len(graphs.nodes))
        kept_nodes = ~gone | ((graphs.local == 0) & (left == 0).index_select(0, graphs.graph))
        batch = Graphs.of(batch).keep_nodes(kept_nodes, left.clamp(min=1).cpu())
    return batch


@dataclass(frozen=True, eq=False)
class Generated(Policy):
    """The steps of a trained generator as a policy."""

    domain: ClassVar[str] = "graph"
    generator: Generator

    def act(self, graphs: Any, key: Key) -> Any:
        """All graphs of the batch after their steps."""
        self.generator.eval()
        return self.generator(graphs, key)[0]
