import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.forests.analysis import average, between, disparity, features_by_group, root, similarity
from support.two_groups import forest, normed, task, two_groups


def by_definition(one, other):
    """The paper's formula from whole eigendecompositions, nothing cut off."""
    parts = []
    for x in (one, other):
        values, vectors = np.linalg.eigh(x.T @ x)
        parts.append(vectors * np.sqrt(np.maximum(values, 0)))
    top = np.linalg.norm(parts[0].T @ parts[1])
    return top / (np.linalg.norm(parts[0]) * np.linalg.norm(parts[1]))


def test_against_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(5):
        one, other = rng.normal(size=(30, 6)), rng.normal(size=(20, 6)) @ rng.normal(size=(6, 6))
        assert similarity(one, other) == pytest.approx(by_definition(one, other), rel=0.02)  # 1 % is cut off
        assert similarity(one, other) == pytest.approx(similarity(other, one))
        assert similarity(one, 3 * one) == pytest.approx(similarity(one, one))


def test_the_rank_has_99_percent_of_the_singular_values():
    spread = np.diag(np.sqrt([90.0, 9.0, 0.6, 0.4]))
    assert root(spread).shape == (4, 2)
    assert root(np.diag(np.sqrt([97.0, 1.0, 1.0, 1.0]))).shape == (4, 3)
    assert root(np.zeros((3, 4))).shape == (4, 1)
    assert similarity(np.zeros((3, 4)), np.ones((3, 4))) == 0


def test_of_every_pair():
    table = between({"a": np.eye(2)[:1], "b": np.eye(2)[1:], "c": np.ones((1, 2))})
    assert table["a"]["b"] == pytest.approx(0)
    assert table["a"]["c"] == pytest.approx(np.sqrt(0.5))
    assert average(table) == pytest.approx((0 + 2 * np.sqrt(0.5)) / 3)
    assert average({"a": {"a": 1.0}}) is None


def test_features_are_what_the_last_layer_sees():
    data = two_groups()
    trainer = task(normed).prepare(data)
    state = trainer.fit(forest(data), 0, steps=5)
    found = features_by_group(trainer, state, "test")
    assert {group: part.shape for group, part in found.items()} == {"a": (400, 16), "b": (400, 16)}
    rows = data.indices("test", "a")
    layer = list(trainer.module(state).modules())[-1]
    expected = trainer.logits(state, rows).double().numpy()
    weight, bias = (p.detach().double().numpy() for p in (layer.weight, layer.bias))
    assert found["a"] @ weight.T + bias == pytest.approx(expected, abs=1e-4)


def test_disparity_is_for_graphs():
    graphs = [Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=n) for n in (2, 2, 4, 8)]
    data = at.data.group(at.data.from_arrays(graphs, [0, 1, 0, 1], split=["train"] * 4), "size:2")
    assert disparity(data) == [{"groups": ["size0", "size1"], "size": 4.0, "degree": 0.625}]
    assert disparity(two_groups()) == []
