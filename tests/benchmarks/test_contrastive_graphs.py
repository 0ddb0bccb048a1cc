"""No label that a search has seen may be among those that it is judged by."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from support.benchmarks import benchmark

LABELS = np.array([0, 1, 1, 2] * 26)


@pytest.fixture(scope="module")
def graphs():
    """The benchmark as a module."""
    return benchmark("contrastive_graphs")


@pytest.fixture(scope="module")
def data():
    one = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    split = ["train", "val", "test", "train"] * 26
    return at.data.from_arrays([one] * len(LABELS), LABELS, split=split, name="pairs")


def test_the_halves_have_as_many_of_each_label(graphs, data):
    halves = graphs.halves_of(data)
    assert [np.bincount(halves[label == LABELS]).tolist() for label in range(3)] == [[13, 13], [26, 26], [13, 13]]


@pytest.mark.parametrize("half", [0, 1])
def test_a_search_sees_the_labels_of_its_half_alone(graphs, data, half):
    seen = graphs.with_half(data, half)
    labelled = np.concatenate([seen.indices("train"), seen.indices("val")])
    assert sorted(labelled) == np.flatnonzero(graphs.halves_of(data) == half).tolist()
    assert len(seen.indices("test")) == 0
    assert abs(len(seen.indices("train")) - len(seen.indices("val"))) <= 3


@pytest.mark.parametrize("row", ["none", "tree@0", "forest@1"])
def test_what_was_searched_with_a_half_is_judged_on_the_other(graphs, data, row):
    about = {"row": row, "seed": 3, "seen": []}
    found = list(graphs.folds_for(Path("features-pairs-graphcl-ridge-halves/a.npz"), None, data, about))
    judged = np.concatenate([test for _, (_, test) in found])
    if row == "none":
        assert [fold for fold, _ in found] == list(range(10))
        assert sorted(judged) == list(range(len(data)))
    else:
        half = int(row[-1])
        assert [fold for fold, _ in found] == ([5, 6, 7, 8, 9] if half == 0 else [0, 1, 2, 3, 4])
        searched = graphs.with_half(data, half)
        assert not {*judged} & {*searched.indices("train"), *searched.indices("val")}
        assert sorted(judged) == np.flatnonzero(graphs.halves_of(data) != half).tolist()
    for _, (train, test) in found:
        assert not {*train} & {*test}
        assert len(train) + len(test) == len(data)


def row(mean, seeds):
    return {"mean": mean, "sd": 0.1, "seeds": seeds}


def test_of_two_rows_that_of_more_seeds_stays(graphs):
    key = {"set": "A", "protocol": "graphcl", "judge": "ridge", "seen": 0}
    old = {
        **key,
        "rows": {"none": row(0.7, 3), "tree": {"mean": None, "halves": [None, 0.6]}, "graphcl": row(0.5, 2)},
        "policies": {"none": "old", "tree@0": "old"},
        "trained_on": None,
    }
    new = {
        **key,
        "rows": {"none": row(0.8, 2), "tree": row(0.9, 1), "graphcl": row(0.6, 2), "one random tree": row(0.4, 1)},
        "policies": {"none": "new", "tree@0": "new", "random tree 0": "new"},
        "trained_on": {"none": ["new"], "tree": ["new"], "random tree 0": ["new"]},
    }
    other = {**old, "set": "B"}
    merged, kept = graphs.merged([new], [old, other])
    assert kept == other
    assert {name: found["mean"] for name, found in merged["rows"].items()} == {
        "none": 0.7, "tree": 0.9, "graphcl": 0.6, "one random tree": 0.4}  # fmt: skip
    assert merged["policies"] == {"none": "old", "tree@0": "new", "random tree 0": "new"}
    assert merged["trained_on"] == {"tree": ["new"], "random tree 0": ["new"]}
    assert graphs.merged([], [old]) == [old]
    assert graphs.merged([new], []) == [new]


def test_a_half_that_is_known_from_before_stays(graphs):
    key = {"set": "A", "protocol": "graphcl", "judge": "ridge", "seen": 0, "policies": {}, "trained_on": {}}
    old, new = ({**key, "rows": {"tree": {"mean": None, "halves": halves}}} for halves in ([0.5, None], [None, 0.6]))
    assert graphs.merged([new], [old])[0]["rows"]["tree"]["halves"] == [0.5, 0.6]


def test_a_seed_counts_where_it_has_all_folds_and_once(graphs):
    rows = [{"row": "a", "seed": 0, "fold": fold, "accuracy": 0.5} for fold in range(10)]
    again = [{**one, "accuracy": 0.6} for one in rows]
    part = [{**one, "row": "b"} for one in rows[:5]]
    assert graphs.complete(rows + again + part) == rows
    assert graphs.complete(part) == []


def test_policies_that_are_trained_with_alike(graphs):
    dropped = at.Tree().with_node(1, at.spaces.graphs()["DropNodes", 0.2], p=0.5)
    one, other = (
        at.Forest({"a": (at.Tree(), 0.3), "b": (dropped, 0.7)}),
        at.Forest({"a": (at.Tree(), 0.5), "b": (dropped, 0.5)}),
    )
    third = at.Forest({"a": (dropped, 0.5), "b": (at.Tree(), 0.5)})
    assert graphs.alike(at.Weighted(one)) == graphs.alike(at.Weighted(other)) != graphs.alike(at.Weighted(third))
    assert graphs.alike(graphs.Identity()) == graphs.alike(at.Tree()) != graphs.alike(dropped)
    assert graphs.alike(None) is None
