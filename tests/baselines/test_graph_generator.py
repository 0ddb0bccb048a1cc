"""The generator: choices as likely as it says, and graphs changed by just these choices."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from augtree.baselines.graph_generator import DROP_EDGES, DROP_NODES, MASK_NODES, Generated, Generator
from augtree.keys import Key
from support.graph_networks import graph

PATH = graph(3, [(0, 1), (1, 2)], features=2, seed=3)
TAIL = graph(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], features=2, seed=2)


def generator(length=1, category=None, score=None, channels=2):
    """An untrained one, whose choices may be fixed."""
    torch.manual_seed(1)
    out = Generator(channels, length, hidden=4).eval()
    for part in out.scores:
        torch.nn.init.normal_(part[-1].weight, std=3.0)  # so that elements differ
        if score is not None:
            torch.nn.init.constant_(part[-1].weight, 0.0)
            torch.nn.init.constant_(part[-1].bias, score)
    if category is not None:
        torch.nn.init.constant_(out.category.weight, 0.0)
        out.category.bias.data.copy_(100.0 * (torch.arange(3) == category))
    return out


@torch.no_grad()
def test_each_outcome_is_as_frequent_as_its_probability_says():
    """Eight sets of nodes to mask, eight to drop, four sets of edges: 20 outcomes, each of a probability of its own."""
    count = 6000
    _, found = generator()(Batch.from_data_list([PATH] * count), Key.of(0, np.arange(count)))
    values, times = np.unique(found.double().numpy().round(4), return_counts=True)
    probabilities = np.exp(values)
    common = probabilities > 0.01
    assert 5 <= len(values) <= 20
    assert probabilities.sum() == pytest.approx(1, abs=0.01)
    assert times[common] / count == pytest.approx(probabilities[common], abs=0.02)


@torch.no_grad()
@pytest.mark.parametrize(
    ("category", "nodes", "edges", "features"), [(MASK_NODES, 5, 10, 0), (DROP_NODES, 1, 0, 1), (DROP_EDGES, 5, 0, 1)]
)
def test_all_elements_of_the_category_and_no_others_are_changed(category, nodes, edges, features):
    made, _ = generator(category=category, score=50.0)(Batch.from_data_list([TAIL, TAIL]), Key.of(0, [4, 5]))
    for one in made.to_data_list():
        assert (one.num_nodes, one.num_edges) == (nodes, edges)
        assert torch.equal(one.x, TAIL.x[:nodes] * features)  # of dropped nodes the first one stays


@torch.no_grad()
def test_what_is_left_is_part_of_the_original():
    number = torch.arange(5.0)[:, None]
    tail = Data(x=torch.cat([TAIL.x, number], 1), edge_index=TAIL.edge_index, edge_attr=torch.arange(10))
    there = {tuple(ends): int(i) for i, ends in enumerate(tail.edge_index.T.tolist())}
    made, _ = generator(length=3, channels=3)(Batch.from_data_list([tail] * 200), Key.of(0, np.arange(200)))
    changed = 0
    for one in made.to_data_list():
        one.validate()
        assert 1 <= one.num_nodes <= 5
        rows = {tuple(row) for row in tail.x.tolist()} | {(0.0, 0.0, 0.0)}
        assert all(tuple(row) in rows for row in one.x.tolist())
        ends = {tuple(pair) for pair in one.edge_index.T.tolist()}
        assert {(b, a) for a, b in ends} == ends
        if bool((one.x[:, :2] != 0).all()):  # no node is masked, so that each tells its number
            old = one.x[:, 2].long()
            assert [there[int(old[a]), int(old[b])] for a, b in one.edge_index.T] == one.edge_attr.tolist()
        changed += (one.num_nodes, one.num_edges) != (5, 10) or not torch.equal(one.x, tail.x)
    assert changed > 100


def test_as_a_policy_it_does_the_same_whatever_the_batch_is_split_into():
    policy, batch = Generated(generator(length=2)), Batch.from_data_list([TAIL, PATH] * 8)
    whole = policy(batch, seed=3, index=np.arange(16)).to_data_list()
    half = policy(Batch.from_data_list(batch.to_data_list()[8:]), seed=3, index=np.arange(8, 16)).to_data_list()
    assert [str(one) for one in whole[8:]] == [str(one) for one in half]
    assert all(torch.equal(a.edge_index, b.edge_index) for a, b in zip(whole[8:], half, strict=True))
    other = policy(batch, seed=4, index=np.arange(16)).to_data_list()
    assert [str(one) for one in other] != [str(one) for one in whole]
    assert batch[0].num_nodes == 5
    assert torch.equal(batch[0].x, TAIL.x)


@torch.no_grad()
def test_without_features_nothing_is_masked():
    bare = Batch.from_data_list([Data(edge_index=TAIL.edge_index, num_nodes=5)] * 50)
    made, found = generator(channels=0)(bare, Key.of(0, np.arange(50)))
    assert made.num_graphs == 50
    assert found.isfinite().all()


def test_the_gradient_reaches_every_part():
    model = generator(length=2).train()
    _, found = model(Batch.from_data_list([TAIL, PATH] * 20), Key.of(0, np.arange(40)))
    found.sum().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()}
    assert without == {"encoder.fc.weight", "encoder.fc.bias"}
