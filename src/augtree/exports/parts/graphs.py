"""Operations on one PyG graph, each by a given ratio; and what an exported module for graphs begins with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from augtree.exports.parts.draws import Draws, draws_of, new_seed
from augtree.keys import element_bits, signed
from augtree.transforms.graph_pairs import pair_number

NODE_FIELDS = ("x", "pos", "feat", "node_type", "n_id")


def augment(picture: Any, draws: Draws, group: str | None = None) -> Any:
    """Every export writes its own."""
    raise NotImplementedError


class Policy(nn.Module):
    """Augments graphs while training; in eval mode it returns them as they are."""

    @torch.no_grad()
    def forward(
        self,
        graphs: Any,
        groups: Sequence[str] | str | None = None,
        *,
        seed: int | None = None,
        index: int | Sequence[int] = 0,
        step: int = 0,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Augment a PyG Data or Batch, undirected and simple, each edge stored in both directions.

        A policy for groups takes the name of each graph's group; without it, trees are drawn by their weights.
        With a seed the result can be repeated: sample `index` (that of the first, or of each) in pass `step` over
        the data always gets the same. Without one, a seed is drawn from the generator, or torch's own.
        """
        if not self.training:
            return graphs
        many = graphs.to_data_list() if hasattr(graphs, "to_data_list") else [graphs]
        numbers = range(index, index + len(many)) if isinstance(index, int) else index
        names = [groups] * len(many) if groups is None or isinstance(groups, str) else groups
        if len(numbers) != len(many) or len(names) != len(many):
            raise ValueError(f"index and groups must have an entry for each of the {len(many)} graphs")
        seed = new_seed(generator) if seed is None else seed
        fields = entries(many)
        draws = [draws_of(seed, step, int(number), row, fields) for row, number in enumerate(numbers)]
        done = [augment(*each) for each in zip(many, draws, names, strict=True)]
        return done[0] if done and many[0] is graphs else type(graphs).from_data_list(done)


def random_share(draws: Draws, count: int, ratio: float) -> int:
    """A share of a count, rounded up or down at random so that it holds on average."""
    return int(count * ratio + draws.uniform(0))


def ranks(draws: Draws, count: int) -> Tensor:
    """The rank of each of `count` elements in a random order."""
    return places(random_bits(draws, torch.arange(count), 1) >> 23)


def places(order: Tensor) -> Tensor:
    """The place of each element when they are sorted."""
    return torch.argsort(torch.argsort(order, stable=True))


def random_bits(draws: Draws, elements: Tensor, counter: int) -> Tensor:
    """63 random bits for each element."""
    return element_bits(torch.full_like(elements, signed(draws.state)), elements, counter)


def drop_nodes(graph: Any, draws: Draws, ratio: float) -> Any:
    """Remove a share of the nodes with their edges; at least one stays."""
    gone = min(random_share(draws, graph.num_nodes, ratio), max(graph.num_nodes - 1, 0))
    return keep_nodes(graph, draws, ranks(draws, graph.num_nodes) >= gone)


def mask_nodes(graph: Any, draws: Draws, ratio: float) -> Any:
    """Set the features of a share of the nodes to zero."""
    if graph.x is None:
        return graph
    masked = ranks(draws, graph.num_nodes) < random_share(draws, graph.num_nodes, ratio)
    graph = copy.copy(graph)
    graph.x = graph.x.clone()
    graph.x[masked.to(graph.x.device)] = 0
    return graph


def subgraph(graph: Any, draws: Draws, ratio: float, length: int) -> Any:
    """Keep the nodes that random walks of `length` nodes reach first."""
    nodes = graph.num_nodes
    gone = min(random_share(draws, nodes, ratio), max(nodes - 1, 0))
    if not gone:
        return graph
    wanted = nodes - gone
    order = (random_bits(draws, torch.arange(nodes), 1) >> 25) | (1 << 38)  # of nodes that no walk comes to
    source, target = graph.edge_index.cpu()
    neighbours = target[torch.argsort(source, stable=True)].split(torch.bincount(source, minlength=nodes).tolist())
    for number in range((3 * wanted + length - 1) // length):
        seen = number * length + torch.arange(length)
        steps = random_bits(draws, seen, 4).tolist()
        here = steps[0] % nodes
        for when, step in zip(seen.tolist(), steps, strict=True):
            if when > int(seen[0]) and len(neighbours[here]):
                here = int(neighbours[here][step % len(neighbours[here])])
            order[here] = min(int(order[here]), when)
    return keep_nodes(graph, draws, places(order) < wanted)


def permute_edges(graph: Any, draws: Draws, ratio: float) -> Any:
    """Replace a share of the edges by as many new ones, as far as absent edges exist."""
    source, target = graph.edge_index.cpu()
    between_two = (source != target).nonzero().view(-1)
    if not len(between_two):
        return graph
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    pairs, which = torch.unique(pair_number(low, high)[between_two], return_inverse=True)
    absent = graph.num_nodes * (graph.num_nodes - 1) // 2 - len(pairs)
    gone = random_share(draws, len(pairs), ratio)
    new = min(gone, absent)
    rank = ranks(draws, len(pairs))
    changes = rank < new
    # The nth absent pair is n, and one more for every pair that is there before it.
    nth = spread(draws, rank[changes], new, absent)
    absent_before = pairs - torch.arange(len(pairs))
    pairs = pairs.clone()
    pairs[changes] = nth + torch.searchsorted(absent_before, nth, right=True)
    kept = torch.ones(len(source), dtype=torch.bool)
    kept[between_two] = ((rank >= gone) | changes)[which]
    first = pair_number(0, torch.arange(graph.num_nodes))  # pair of each higher node
    higher = torch.searchsorted(first, pairs, right=True) - 1
    low[between_two], high[between_two] = (pairs - first[higher])[which], higher[which]
    forward = source < target
    edge_index = torch.stack([torch.where(forward, low, high), torch.where(forward, high, low)])
    return with_edges(graph, draws, edge_index[:, kept], kept)


def spread(draws: Draws, rank: Tensor, count: int, size: int) -> Tensor:
    """For ranks 0 .. count-1 different numbers in [0, size), one from each of `count` equal parts, all turned."""
    if not count:
        return rank
    begin, end = rank * size // count, (rank + 1) * size // count
    turn = random_bits(draws, torch.zeros_like(rank), 3)
    return (begin + random_bits(draws, rank, 2) % (end - begin) + turn % size) % size


def keep_nodes(graph: Any, draws: Draws, kept: Tensor) -> Any:
    """The graph with some of its nodes and the edges between them."""
    if bool(kept.all()):
        return graph
    source, target = graph.edge_index.cpu()
    edges_kept = kept[source] & kept[target]
    number = kept.cumsum(0) - 1
    fields = fields_of(graph, draws, "nodes")
    out = with_edges(graph, draws, number[graph.edge_index.cpu()[:, edges_kept]], edges_kept)
    for key in fields:
        out[key] = graph[key][kept.to(graph[key].device)]
    if not fields or "num_nodes" in graph:
        out.num_nodes = int(kept.sum())
    return out


def with_edges(graph: Any, draws: Draws, edge_index: Tensor, kept: Tensor) -> Any:
    """A copy of the graph with these edges, which take the fields of the edges kept, in order."""
    out = copy.copy(graph)
    for key in fields_of(graph, draws, "edges"):
        out[key] = graph[key][kept.to(graph[key].device)]
    out.edge_index = edge_index.to(graph.edge_index.device, graph.edge_index.dtype)
    return out


def entries(graphs: Sequence[Any]) -> dict[str, str]:
    """What fields of graphs have entries for, by sizes and then names; fields of whole graphs are left out."""
    nodes, edges = [graph.num_nodes for graph in graphs], [graph.num_edges for graph in graphs]
    found = {}
    for key in graphs[0].keys() if graphs else []:
        values = [graph[key] for graph in graphs]
        if key == "edge_index" or not all(isinstance(value, Tensor) and value.ndim for value in values):
            continue
        sizes = [len(value) for value in values]
        if "index" in key or key == "face":
            found[key] = "numbers of nodes"
        elif sizes == edges and "edge" in key:
            found[key] = "edges"
        elif sizes == nodes and (key in NODE_FIELDS or "node" in key):
            found[key] = "nodes"
        elif max(sizes) > 1 and sizes in (nodes, edges):
            by_chance = nodes == edges or (key == "y" and len({*sizes}) == 1)
            found[key] = "nodes, edges or graphs" if by_chance else "nodes" if sizes == nodes else "edges"
    return found


def fields_of(graph: Any, draws: Draws, kind: str) -> list[str]:
    """The fields of a graph with an entry for each node, or for each edge."""
    known = entries([graph]) if draws.batch is None else draws.batch
    for key, belongs in known.items():
        if belongs not in ("nodes", "edges"):
            raise ValueError(f"the field {key!r} may be of {belongs}: leave it out, or call it node_..., or edge_...")
    return [key for key, belongs in known.items() if belongs == kind]
