"""Search a policy for graphs of your own.

pip install "augtree[train,graph]"
"""

import torch
from torch_geometric.data import Data

import augtree as at


def graph(number: int) -> Data:
    """A ring (class 0) or a star (class 1) of 8 to 14 nodes."""
    nodes = 8 + number % 7
    here = torch.arange(nodes) if number % 2 == 0 else torch.zeros(nodes, dtype=torch.int64)
    edges = torch.stack([here, (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.ones(nodes, 1), edge_index=torch.cat([edges, edges.flip(0)], 1))


graphs = [graph(i) for i in range(200)]  # or at.data.load("NCI1"), at.data.read_tu("NCI1.zip")
data = at.data.from_arrays(graphs, torch.arange(200) % 2)
task = at.tasks.Classification(model="gin", options={"hidden": 8, "layers": 2}, steps=40, batch_size=32)
result = at.search_tree(data, task, at.spaces.graphs(), budget=2)
print(result.tree.to_text())
print(result.verdict())
