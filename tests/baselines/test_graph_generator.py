"""The generator: choices as likely as it says, and graphs changed by just these choices."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from augtree.baselines.graph_generator import DROP_NODES, MASK_NODES, PERTURB_EDGES, Generated, Generator
from augtree.keys import Key
from support.graph_networks import graph

PATH = graph(3, [(0, 1), (1, 2)], features=2, seed=3)
TRIANGLE = graph(3, [(0, 1), (1, 2), (0, 2)], features=2, seed=3)
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
    """In a triangle all nodes are alike after a layer: sets of the same size have the same probability.

    There are three sets of one or two nodes (or edges), one set of none or all, and no pair to join.
    """
    count = 6000
    _, found, _ = generator()(Batch.from_data_list([TRIANGLE] * count), Key.of(0, np.arange(count)))
    values, times = np.unique(found.double().numpy().round(4), return_counts=True)
    sets, shares = np.exp(values), times / count
    common = shares > 0.01
    multiples = np.round(shares / sets)[common]
    assert len(values) <= 12
    assert set(multiples) == {1, 3}
    assert multiples * sets[common] == pytest.approx(shares[common], abs=0.02)
    assert (multiples * sets[common]).sum() == pytest.approx(1, abs=0.04)


@torch.no_grad()
@pytest.mark.parametrize(("category", "nodes", "features"), [(MASK_NODES, 5, 0), (DROP_NODES, 1, 1)])
def test_all_nodes_and_no_edges_between_others_are_changed(category, nodes, features):
    tails = Batch.from_data_list([TAIL, TAIL])
    made, _, changes = generator(category=category, score=50.0)(tails, Key.of(0, [4, 5]))
    assert changes.tolist() == [5, 5]
    for one in made.to_data_list():
        assert (one.num_nodes, one.num_edges) == (nodes, 10 if category == MASK_NODES else 0)
        assert torch.equal(one.x, TAIL.x[:nodes] * features)  # of dropped nodes the first one stays


@torch.no_grad()
def test_where_all_edges_go_and_come_only_new_ones_are_left():
    count = 400
    tail = Data(x=TAIL.x, edge_index=TAIL.edge_index, edge_attr=torch.arange(10))
    tails = Batch.from_data_list([tail] * count)
    made, _, changes = generator(category=PERTURB_EDGES, score=50.0)(tails, Key.of(0, np.arange(count)))
    assert changes.tolist() == [5 + one.num_edges / 2 for one in made.to_data_list()]
    old, seen = {tuple(ends) for ends in TAIL.edge_index.T.tolist()}, set()
    for one in made.to_data_list():
        assert torch.equal(one.x, TAIL.x)
        ends = [tuple(pair) for pair in one.edge_index.T.tolist()]
        assert len(set(ends)) == len(ends) == len(one.edge_attr)
        assert {(b, a) for a, b in ends} == set(ends)
        assert not old & set(ends)
        assert all(a != b for a, b in ends)
        seen |= set(ends)
    assert len(seen | old) == 20  # every pair of five nodes


@torch.no_grad()
def test_nodes_that_are_left_keep_their_edges_and_fields():
    number = torch.arange(5.0)[:, None]
    tail = Data(x=torch.cat([TAIL.x, number], 1), edge_index=TAIL.edge_index, edge_attr=torch.arange(10))
    there = {tuple(ends): i for i, ends in enumerate(tail.edge_index.T.tolist())}
    model = generator(channels=3, category=DROP_NODES, score=0.0)
    made, *_ = model(Batch.from_data_list([tail] * 100), Key.of(0, np.arange(100)))
    sizes = []
    for one in made.to_data_list():
        old = one.x[:, 2].long().tolist()
        expected = {ends: i for ends, i in there.items() if set(ends) <= set(old)}
        ends = [(old[a], old[b]) for a, b in one.edge_index.T.tolist()]
        assert dict(zip(ends, one.edge_attr.tolist(), strict=True)) == expected
        assert torch.equal(one.x, tail.x[old])
        sizes.append(one.num_nodes)
    assert np.mean(sizes) == pytest.approx(2.5, abs=0.4)


@torch.no_grad()
def test_each_step_has_draws_of_its_own(monkeypatch):
    model, found, choose = generator(length=2), [], Generator.choose_category
    torch.nn.init.constant_(model.category.weight, 0.0)
    torch.nn.init.constant_(model.category.bias, 0.0)

    def noted(self, memory, key):
        found.append(choose(self, memory, key))
        return found[-1]

    monkeypatch.setattr(Generator, "choose_category", noted)
    model(Batch.from_data_list([TAIL] * 2000), Key.of(0, np.arange(2000)))
    one, two = (step.which for step in found)
    assert (torch.bincount(one) / 2000).tolist() == pytest.approx([1 / 3] * 3, abs=0.04)
    assert float((one == two).float().mean()) == pytest.approx(1 / 3, abs=0.04)


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
    made, found, _ = generator(channels=0)(bare, Key.of(0, np.arange(50)))
    assert made.num_graphs == 50
    assert found.isfinite().all()


def test_the_gradient_reaches_every_part():
    model = generator(length=2).train()
    _, found, _ = model(Batch.from_data_list([TAIL, PATH] * 20), Key.of(0, np.arange(40)))
    found.sum().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()}
    assert without == {"encoder.fc.weight", "encoder.fc.bias"}
