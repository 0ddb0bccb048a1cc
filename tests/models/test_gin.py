import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data

from augtree.models import Inputs, build
from support.graph_networks import graph, trained

POOLINGS = ["sum", "mean", "max"]


def gin(features=4, **options):
    return trained("gin", features, **options)


SQUARE = graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)], seed=1)
TAIL = graph(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], seed=2)
LONELY = graph(1, [], seed=3)
LOOSE = graph(3, [], seed=4)


@pytest.mark.parametrize(("pooling", "expected"), [("sum", 16), ("mean", 16 / 3), ("max", 7)])
def test_a_path_of_three_by_hand(pooling, expected):
    """Node and neighbours: 1 + 2, 1 + 2 + 4, 2 + 4."""
    model = build("gin", Inputs("graph", 1, 0, 1), layers=1, hidden=1, pooling=pooling).eval()
    for name, parameter in model.named_parameters():
        torch.nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
    for norm in (model.layers[0].bn1, model.layers[0].bn2):
        norm.eps = 0
    path = Data(x=torch.tensor([[1.0], [2.0], [4.0]]), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    assert model(Batch.from_data_list([path])).item() == pytest.approx(expected)


def test_messages_go_along_the_edges():
    model = gin(1, layers=1)
    one_way = Data(x=torch.tensor([[1.0], [2.0]]), edge_index=torch.tensor([[0], [1]]))
    summed = Data(x=torch.tensor([[1.0], [3.0]]), edge_index=torch.empty(2, 0, dtype=torch.int64))
    torch.testing.assert_close(model(one_way), model(summed))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_dense_formula(pooling):
    model = gin(layers=3, hidden=8, pooling=pooling)
    for one in (SQUARE, TAIL, LONELY, LOOSE):
        dense = torch.eye(one.num_nodes, dtype=torch.float64)
        dense[one.edge_index[0], one.edge_index[1]] = 1
        x, pooled = one.x.double(), []
        for layer in model.layers:
            for linear, norm in ((layer.linear1, layer.bn1), (layer.linear2, layer.bn2)):
                x = dense @ x if linear is layer.linear1 else x
                x = x @ linear.weight.T + linear.bias
                x = F.relu((x - norm.running_mean) / (norm.running_var + norm.eps).sqrt())
            pooled.append(getattr(x, "amax" if pooling == "max" else pooling)(dim=0))
        torch.testing.assert_close(model(Batch.from_data_list([one]))[0], model.fc(torch.cat(pooled)))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_order_of_nodes_and_edges_does_not_matter(pooling):
    model = gin(pooling=pooling)
    order = torch.tensor([3, 0, 4, 2, 1])
    mixed = Data(x=TAIL.x[order], edge_index=order.argsort()[TAIL.edge_index].flip(1))
    torch.testing.assert_close(model(TAIL), model(mixed))


def test_without_features_the_degrees_count():
    model = gin(0)
    triangle, path = graph(3, [(0, 1), (1, 2), (0, 2)], 0), graph(3, [(0, 1), (1, 2)], 0)
    logits = model(Batch.from_data_list([triangle, path]))
    assert not torch.allclose(logits[0], logits[1])


def test_degrees_are_one_hot_up_to_64():
    """A star of 70, and two edges back."""
    leaves = torch.arange(1, 71)
    edges = torch.cat([torch.stack([leaves, torch.zeros_like(leaves)]), torch.tensor([[0, 0], [1, 2]])], dim=1)
    found = gin(0).node_features(Data(edge_index=edges), 71)
    assert found.shape == (71, 65)
    assert found.argmax(dim=1).tolist() == [64, 1, 1] + [0] * 68
    assert (found.sum(dim=1) == 1).all()
    assert gin(0).node_features(Data(edge_index=edges[:, :64]), 71)[0].argmax() == 64
    assert gin(0).node_features(Data(edge_index=edges[:, :63]), 71)[0].argmax() == 63


@pytest.mark.parametrize("pooling", POOLINGS)
def test_all_parameters_learn(pooling):
    model = build("gin", Inputs("graph", 4, 0, 3), hidden=8, pooling=pooling)
    torch.manual_seed(0)
    F.cross_entropy(model(Batch.from_data_list([SQUARE, TAIL, LONELY])), torch.tensor([0, 1, 2])).backward()
    weights = {name: p.grad for name, p in model.named_parameters() if name.endswith("weight")}
    assert [name for name, grad in weights.items() if not grad.abs().sum() > 0] == []
