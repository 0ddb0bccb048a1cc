"""What all networks on graphs keep."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Batch, Data

from augtree.errors import InputError
from augtree.models.graph import POOLINGS
from support.graph_networks import graph, trained

RING = graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
NETWORKS = pytest.mark.parametrize("name", ["gin", "resgcn"])


@NETWORKS
@pytest.mark.parametrize("features", [0, 4])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_graph_does_not_see_its_neighbours_in_the_batch(name, pooling, features):
    model = trained(name, features, pooling=pooling)
    lonely, loose, tail = graph(1, []), graph(3, []), graph(6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    graphs = [loose, RING, lonely, tail, lonely]
    if features == 0:
        graphs = [Data(edge_index=one.edge_index, num_nodes=one.num_nodes) for one in graphs]
    together = model(Batch.from_data_list(graphs))
    torch.testing.assert_close(together, torch.cat([model(Batch.from_data_list([one])) for one in graphs]))
    torch.testing.assert_close(together, torch.cat([model(one) for one in graphs]))
    assert together.shape == (5, 3)


@NETWORKS
@pytest.mark.parametrize("pooling", POOLINGS)
def test_half_precision_within_and_the_sums_whole(name, pooling):
    """A graph of 3000 nodes, whose sum, and whose number of nodes, bfloat16 could not hold."""
    model = trained(name, 0, pooling=pooling, hidden=16).float()
    ring = graph(3000, [(i, (i + 1) % 3000) for i in range(3000)], 0)
    with torch.autocast("cpu", torch.bfloat16):
        found = model.features(ring)
    assert found.dtype == torch.float32
    whole = model.features(ring).detach()
    torch.testing.assert_close(found, whole, rtol=0.02, atol=0.02 * float(whole.abs().max()))


@NETWORKS
def test_features_of_any_number_type(name):
    model = trained(name, 4)
    whole = Data(x=torch.eye(4, dtype=torch.int64), edge_index=RING.edge_index)
    floats = Data(x=torch.eye(4), edge_index=RING.edge_index)
    assert torch.equal(model(whole), model(floats))


@NETWORKS
def test_graphs_that_the_network_is_not_for(name):
    with pytest.raises(InputError, match=rf"this {name} needs graphs with 5 node features, got x of shape \[4, 4\]"):
        trained(name, 5)(RING)
    with pytest.raises(InputError, match=f"this {name} needs graphs with 4 node features, got no x"):
        trained(name, 4)(graph(2, [(0, 1)], 0))


def test_no_need_of_torch_geometric():
    code = "import sys; sys.modules['torch_geometric'] = None; import augtree.models as m\n"
    code += "for name in ('gin', 'resgcn'): m.build(name, m.Inputs('graph', 0, 0, 2))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
