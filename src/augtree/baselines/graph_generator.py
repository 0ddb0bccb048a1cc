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
from augtree.transforms.graph_pairs import pair_number

MASK_NODES, DROP_NODES, PERTURB_EDGES = CATEGORIES = range(3)
CATEGORY, NODE, EDGE, NEW_EDGE, NEW_ENDS = range(5)
"""Counters of the draws."""
RARE = -2.0
"""The score of a node or edge before any training: about one of eight is chosen."""


class Chosen(NamedTuple):
    """Which elements of a batch are chosen, and how likely this was for each graph, as a logarithm."""

    which: Tensor
    log_probability: Tensor


class Augmented(NamedTuple):
    """A batch after some steps."""

    batch: Any
    log_probability: Tensor
    """Of what was done to each graph."""
    changes: Tensor
    """How many nodes and edges of each graph were chosen."""


class Pairs(NamedTuple):
    """Pairs of nodes, each within a graph."""

    low: Tensor
    high: Tensor
    graph: Tensor
    local: Tensor
    """The number of each pair within its graph."""
    like: Tensor
    """The column of `edge_index` of each pair; of a pair without an edge, the one whose fields an edge would have."""


class Generator(nn.Module):
    """Chooses, for each graph and step, a category of transforms, and then the nodes or edges that it changes."""

    def __init__(self, channels: int, length: int, hidden: int = 32) -> None:
        super().__init__()
        self.length, self.featured = length, channels > 0
        self.encoder = Gin(Inputs("graph", channels, 0, 1), layers=2, hidden=hidden, pooling="mean")
        width = 2 * hidden
        self.memory, self.category = nn.GRUCell(width, width), nn.Linear(width, len(CATEGORIES))
        self.scores = nn.ModuleList([scores(width), scores(width), scores(width + 1)])

    def forward(self, batch: Any, key: Key) -> Augmented:
        """The batch after all steps."""
        memory, parts = None, []
        for step in range(self.length):
            part, memory = self.step(batch, memory, key.at(step))
            batch = part.batch
            parts.append(part)
        log_probability = torch.stack([part.log_probability for part in parts]).sum(0)
        return Augmented(batch, log_probability, torch.stack([part.changes for part in parts]).sum(0))

    def step(self, batch: Any, memory: Tensor | None, key: Key) -> tuple[Augmented, Tensor]:
        """One step, and what is remembered after it."""
        pooled, nodes, _ = self.encoder.with_nodes(batch)
        memory = self.memory(pooled, memory)
        graphs, state = Graphs.of(batch), torch.from_numpy(key.state.view(np.int64)).to(pooled.device)
        category = self.choose_category(cast(Tensor, memory), key)
        kind = category.which.index_select(0, graphs.graph)
        node_scores = torch.cat([self.scores[i](nodes) for i in (MASK_NODES, DROP_NODES)], 1)
        node_score = node_scores.gather(1, kind.clamp(max=DROP_NODES)[:, None])[:, 0]
        drawn = chosen(node_score, kind != PERTURB_EDGES, graphs.graph, graphs.local, state, NODE)
        edges = edge_pairs(graphs)
        absent = absent_pairs(graphs, edges, state)
        old = self.choose_pairs(edges, 1.0, nodes, category.which, state)
        new = self.choose_pairs(absent, 0.0, nodes, category.which, state)
        changed = masked(graphs, drawn.which & (kind == MASK_NODES))
        changed = rewired(Graphs.of(changed), edges, old.which, absent, new.which)
        changed = dropped(Graphs.of(changed), drawn.which & (kind == DROP_NODES))
        log_probability = category.log_probability + drawn.log_probability + old.log_probability + new.log_probability
        changes = torch.zeros_like(log_probability)
        for each, graph in ((drawn, graphs.graph), (old, edges.graph), (new, absent.graph)):
            changes = changes.index_add(0, graph, each.which.to(changes.dtype))
        return Augmented(changed, log_probability, changes.detach()), cast(Tensor, memory)

    def choose_pairs(self, pairs: Pairs, there: float, nodes: Tensor, category: Tensor, state: Tensor) -> Chosen:
        """The edges that go (`there` is 1), or the pairs that are joined (0)."""
        flags = torch.full_like(nodes[:1, :1], there).expand(len(pairs.low), 1)
        score = self.scores[PERTURB_EDGES](torch.cat([nodes[pairs.low] + nodes[pairs.high], flags], 1))[:, 0]
        active = category.index_select(0, pairs.graph) == PERTURB_EDGES
        return chosen(score, active, pairs.graph, pairs.local, state, EDGE if there else NEW_EDGE)

    def choose_category(self, memory: Tensor, key: Key) -> Chosen:
        """The category of each graph; nothing is masked where nodes have no features."""
        logits = self.category(memory)
        if not self.featured:
            logits = logits.index_fill(1, torch.tensor([MASK_NODES], device=logits.device), float("-inf"))
        log_probabilities = F.log_softmax(logits, 1)
        edges = log_probabilities.detach().exp().double().cpu().cumsum(1)[:, :-1]
        which = (torch.from_numpy(key.uniform(CATEGORY))[:, None] >= edges).sum(1).to(logits.device)
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


def edge_pairs(graphs: Graphs) -> Pairs:
    """The pairs of nodes with an edge in any direction, graph by graph; self-loops are none."""
    source, target = graphs.edge_index
    slots = true_at(source != target)
    low, high = torch.minimum(source, target)[slots], torch.maximum(source, target)[slots]
    numbers, inverse = torch.unique(pair_number(low, high), return_inverse=True)
    low, high, like = (torch.empty_like(numbers).scatter_(0, inverse, each) for each in (low, high, slots))
    return numbered(graphs, low, high, like)


def numbered(graphs: Graphs, low: Tensor, high: Tensor, like: Tensor) -> Pairs:
    """Pairs that stand graph by graph, with their numbers."""
    graph = graphs.graph.index_select(0, high)
    counts = torch.bincount(graph, minlength=len(graphs.nodes))
    local = torch.arange(len(high), device=graph.device) - (counts.cumsum(0) - counts).index_select(0, graph)
    return Pairs(low, high, graph, local, like)


def absent_pairs(graphs: Graphs, edges: Pairs, state: Tensor) -> Pairs:
    """Random pairs of nodes without an edge: one for each edge, less those that are drawn twice or have one."""
    bits = element_bits(state.index_select(0, edges.graph), edges.local, NEW_ENDS)
    count, start = (each.to(bits.device)[edges.graph] for each in (graphs.nodes, graphs.start))
    one, two = start + bits % count, start + (bits >> 31) % count
    low, high = torch.minimum(one, two), torch.maximum(one, two)
    number = pair_number(low, high)
    absent = (low != high) & ~torch.isin(number, pair_number(edges.low, edges.high))
    places = true_at(absent)
    values, inverse = torch.unique(number[places], return_inverse=True)
    first = torch.full_like(values, len(number)).scatter_reduce_(0, inverse, places, "amin").sort().values
    return numbered(graphs, low[first], high[first], edges.like[first])


def masked(graphs: Graphs, which: Tensor) -> Any:
    """The batch without the features of some nodes."""
    if not bool(which.any()):
        return graphs.batch
    out = copy.copy(graphs.batch)
    out.x = out.x.index_fill(0, true_at(which), 0)
    return out


def rewired(graphs: Graphs, edges: Pairs, gone: Tensor, absent: Pairs, joined: Tensor) -> Any:
    """The batch without some of its edges, and with some new ones, which have the fields of others."""
    if not bool(gone.any() | joined.any()):
        return graphs.batch
    ends = graphs.edge_index
    number = pair_number(ends.amin(0), ends.amax(0))
    lost = pair_number(edges.low[gone], edges.high[gone])
    kept = true_at(~torch.isin(number, lost) | (ends[0] == ends[1]))
    low, high, like = (each[joined] for each in (absent.low, absent.high, absent.like))
    columns = torch.cat([kept, like, like])
    ends = torch.cat([ends.index_select(1, kept), torch.stack([low, high]), torch.stack([high, low])], 1)
    by_graph = torch.argsort(graphs.graph.index_select(0, ends[0]), stable=True)
    return graphs.keep_edges(ends.index_select(1, by_graph), columns.index_select(0, by_graph))


def dropped(graphs: Graphs, gone: Tensor) -> Any:
    """The batch without some nodes; of a graph that would have none the first stays."""
    if not bool(gone.any()):
        return graphs.batch
    left = torch.bincount(graphs.graph[~gone], minlength=len(graphs.nodes))
    kept = ~gone | ((graphs.local == 0) & (left == 0).index_select(0, graphs.graph))
    return graphs.keep_nodes(kept, left.clamp(min=1).cpu())


@dataclass(frozen=True, eq=False)
class Generated(Policy):
    """The steps of a trained generator as a policy."""

    domain: ClassVar[str] = "graph"
    generator: Generator

    def act(self, graphs: Any, key: Key) -> Any:
        """All graphs of the batch after their steps."""
        self.generator.eval()
        return self.generator(graphs, key).batch
