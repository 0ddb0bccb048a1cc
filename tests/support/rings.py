"""Rings of nodes, and batches of them of which some nodes are kept."""

import torch
from torch_geometric.data import Data

from augtree.transforms.graph_batch import Graphs


def ring(count, **fields):
    """A ring of nodes whose x, pos and names tell which node it is, and edges that tell their ends."""
    nodes = torch.arange(count)
    one = torch.stack([nodes, (nodes + 1) % count])
    edge_index = torch.cat([one, one.flip(0)], dim=1) if count > 2 else torch.empty(2, 0, dtype=torch.long)
    data = Data(x=nodes.float().view(-1, 1), edge_index=edge_index, y=torch.tensor([count % 2]), **fields)
    data.edge_attr = edge_index.t().float().clone()
    return data


def kept(batch, keep):
    """The batch on the nodes for which `keep` holds."""
    graphs = Graphs.of(batch)
    mask = torch.tensor([keep(int(g), int(n)) for g, n in zip(graphs.graph, graphs.local, strict=True)])
    counts = torch.bincount(graphs.graph[mask], minlength=len(graphs.nodes))
    return graphs.keep_nodes(mask, counts)
