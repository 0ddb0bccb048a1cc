import torch
from torch_geometric.data import Data

import augtree as at
from support.benchmarks import benchmark


def test_the_row_of_the_papers_table():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    samples = [Data(x=torch.ones(nodes, 1), edge_index=path[:, :edges]) for nodes, edges in ((4, 4), (1, 0), (2, 2))]
    data = at.data.from_arrays(samples, torch.tensor([[1, 0], [1, 1], [0, 1]], dtype=torch.uint8), name="three")
    row = benchmark("protein_build").figures(data)
    assert row == {"graphs": 3, "functions": 2, "nodes": [1, 4], "degree": [0.0, 1.0]}
