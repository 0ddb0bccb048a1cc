"""A learned policy on graphs, in a PyTorch Geometric training loop: the lines 1 and 2.

pip install "augtree[train,graph]"
"""

import networkx
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import from_networkx

import augtree as at


def graph(number: int) -> Data:
    """A ring (class 0) or a random graph (class 1) of 12 to 20 nodes."""
    nodes = 12 + number % 9
    made = networkx.cycle_graph(nodes) if number % 2 == 0 else networkx.gnm_random_graph(nodes, nodes, seed=number)
    data = from_networkx(made)
    data.x, data.y = torch.ones(nodes, 1), torch.tensor([number % 2])
    return data


class Net(torch.nn.Module):
    """One GIN layer, then a sum over nodes."""

    def __init__(self):
        super().__init__()
        self.conv = GINConv(torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16)))
        self.head = torch.nn.Linear(16, 2)

    def forward(self, batch):
        return self.head(global_add_pool(self.conv(batch.x, batch.edge_index).relu(), batch.batch))


torch.manual_seed(0)
space = at.spaces.graphs()
policy = at.Tree().with_node(1, space["DropNodes", 0.1], p=0.5).with_node(2, space["MaskNodes", 0.1], p=0.5)  # 1
train = DataLoader([graph(i) for i in range(200)], batch_size=32, shuffle=True)
test = DataLoader([graph(i) for i in range(200, 300)], batch_size=100)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(15):
    for batch in train:
        batch = policy(batch)  # 2: all graphs at once; or one by one: Dataset(transform=policy)
        loss = cross_entropy(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = [(model(batch).argmax(1) == batch.y).float().mean().item() for batch in test]
print(f"test accuracy {accuracy[0]:.3f}")
