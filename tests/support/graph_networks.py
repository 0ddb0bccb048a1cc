"""Small graphs, and networks that have seen some."""

import torch
from torch_geometric.data import Data

from augtree.models import Inputs, build


def graph(nodes, edges, features=4, seed=0):
    """An undirected graph with random node features."""
    ends = torch.tensor([*edges, *[(b, a) for a, b in edges]], dtype=torch.int64).reshape(-1, 2).T
    if features == 0:
        return Data(edge_index=ends, num_nodes=nodes)
    return Data(x=torch.randn(nodes, features, generator=torch.Generator().manual_seed(seed)), edge_index=ends)


def trained(name, features, **options):
    """A network as it is after some training: norms that do something."""
    torch.manual_seed(0)
    model = build(name, Inputs("graph", features, 0, 3), **options).double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model
