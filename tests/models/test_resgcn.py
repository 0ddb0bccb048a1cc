import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data

from augtree.models import Inputs, build
from augtree.models.neighbour_sums import Sums
from augtree.models.resgcn import graph_convolution
from augtree.tasks.contrastive import Projection
from support.graph_networks import graph, trained

POOLINGS = ["sum", "mean", "max"]


def random_graph(nodes, seed, features=4):
    """Each pair is joined with a probability of 0.3, so that some nodes have no edge."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a in range(nodes) for b in range(a) if rng.random() < 0.3]
    return graph(nodes, edges, features, seed)


def resgcn(features=4, **options):
    return trained("resgcn", features, **options)


SQUARE = graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)], seed=1)
TAIL = graph(6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], seed=2)
"""Its last node is alone."""
LONELY = graph(1, [], seed=3)
LOOSE = graph(3, [], seed=4)
ALL = [SQUARE, TAIL, LONELY, LOOSE, *[random_graph(nodes, nodes) for nodes in (2, 5, 9, 14)]]


def dense(one):
    """D^-1/2 (A + I) D^-1/2 as numpy has it."""
    matrix = np.eye(one.num_nodes)
    for source, target in one.edge_index.T.tolist():
        matrix[target, source] += 1
    root = np.diag(matrix.sum(1) ** -0.5)
    return root @ matrix @ root


def test_a_path_of_three_by_hand():
    """With themselves the nodes have 2, 3 and 2 neighbours."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    root = torch.tensor([[2.0], [3.0], [2.0]]).rsqrt()
    found = graph_convolution(torch.tensor([[2.0], [0.0], [4.0]]), Sums.over_neighbours(edges, 3), root)
    assert found.flatten().tolist() == pytest.approx([2 / 2, (2 + 4) / 6**0.5, 4 / 2])


@pytest.mark.parametrize("one", [*ALL, Data(x=torch.eye(4), edge_index=torch.tensor([[0, 0, 3], [1, 1, 0]]))])
def test_the_convolution_is_a_product_with_the_dense_matrix(one):
    matrix = dense(one)
    root = torch.from_numpy((matrix.diagonal() ** 0.5)[:, None])  # 1 / D stands on the diagonal
    found = graph_convolution(one.x.double(), Sums.over_neighbours(one.edge_index, len(matrix)), root)
    np.testing.assert_allclose(found.numpy(), matrix @ one.x.double().numpy(), rtol=1e-12, atol=1e-12)


def normed(x, norm):
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_dense_formula(pooling):
    model = resgcn(layers=3, hidden=8, pooling=pooling)
    for one in ALL:
        matrix = torch.from_numpy(dense(one))
        count = torch.bincount(one.edge_index[1], minlength=one.num_nodes)
        x = torch.cat([one.x, count[:, None], F.one_hot(count, 101)], dim=1).double()
        x = F.relu(normed(x, model.bn) @ model.linear.weight.T + model.linear.bias)
        for layer in model.layers:
            x = x + F.relu(matrix @ (normed(x, layer.bn) @ layer.linear.weight.T) + layer.linear.bias)
        pooled = getattr(x, "amax" if pooling == "max" else pooling)(dim=0)
        torch.testing.assert_close(model.features(one)[0], pooled)
        torch.testing.assert_close(model(one)[0], model.fc(pooled))


def test_what_is_known_of_a_node():
    """Its own features, its degree, its degree one-hot."""
    path = Data(x=torch.tensor([[7.0], [8.0], [9.0], [5.0]]), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    seen = []
    model = resgcn(1)
    model.bn.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(path)
    assert seen[0][:, :5].tolist() == [[7, 1, 0, 1, 0], [8, 2, 0, 0, 1], [9, 1, 0, 1, 0], [5, 0, 1, 0, 0]]
    assert seen[0].shape == (4, 1 + 1 + 101)
    assert seen[0][:, 5:].count_nonzero() == 0


@pytest.mark.parametrize(("leaves", "column"), [(1, 1), (99, 99), (100, 100), (130, 100)])
def test_degrees_are_one_hot_up_to_100(leaves, column):
    star = graph(leaves + 1, [(0, i + 1) for i in range(leaves)], 0)
    known = resgcn(0).node_features(star, torch.bincount(star.edge_index[1]))
    assert known.shape == (leaves + 1, 102)
    assert known[0].nonzero().flatten().tolist() == [0, 1 + column]
    assert (known[0, 0], known[0, 1 + column]) == (leaves, 1)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_order_of_nodes_and_edges_does_not_matter(pooling):
    model = resgcn(pooling=pooling)
    for one in ALL:
        order = torch.randperm(one.num_nodes, generator=torch.Generator().manual_seed(5))
        mixed = Data(x=one.x[order], edge_index=order.argsort()[one.edge_index].flip(1))
        torch.testing.assert_close(model(one), model(mixed))


def test_without_features_the_degrees_count():
    triangle, path = graph(3, [(0, 1), (1, 2), (0, 2)], 0), graph(3, [(0, 1), (1, 2)], 0)
    logits = resgcn(0)(Batch.from_data_list([triangle, path]))
    assert not torch.allclose(logits[0], logits[1])


def test_a_batch_without_edges():
    batch = Batch.from_data_list([LOOSE, LONELY])
    logits = build("resgcn", Inputs("graph", 4, 0, 3))(batch)
    assert logits.shape == (2, 3)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_all_parameters_learn(pooling):
    torch.manual_seed(0)
    model = build("resgcn", Inputs("graph", 4, 0, 3), hidden=8, pooling=pooling)
    F.cross_entropy(model(Batch.from_data_list([SQUARE, TAIL, LONELY])), torch.tensor([0, 1, 2])).backward()
    weights = {name: p.grad for name, p in model.named_parameters() if name.endswith("weight")}
    assert len(weights) == 2 + 3 * 2 + 1
    assert [name for name, grad in weights.items() if not grad.abs().sum() > 0] == []


def test_its_size_by_hand():
    """Norms have two numbers a feature: 104 known of a node with 2 features, layers of 128, 5 classes."""
    model = build("resgcn", Inputs("graph", 2, 0, 5))
    layer = 2 * 128 + 128 * 128 + 128
    expected = 2 * 104 + 104 * 128 + 128 + 3 * layer + 128 * 5 + 5
    assert sum(p.numel() for p in model.parameters()) == expected


def test_a_projection_may_stand_for_the_classifier():
    model = build("resgcn", Inputs("graph", 4, 0, 3), hidden=8)
    model.fc = Projection(model.fc.in_features, 5)
    assert model(Batch.from_data_list([SQUARE, TAIL])).shape == (2, 5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_nothing_is_made_on_another_device_than_the_graphs(pooling):
    """Tensors of the meta device, as those of a GPU, do not go together with others."""
    model = build("resgcn", Inputs("graph", 4, 0, 3), pooling=pooling).to("meta")
    logits = model(Batch.from_data_list([SQUARE, LOOSE]).to("meta"))
    assert (logits.device.type, logits.shape) == ("meta", (2, 3))
