"""Forests with learned weights in a comparison."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.errors import ArgumentError
from augtree.forests.algorithm2 import WeightedTraining

TASK = at.tasks.Classification(model="gin", steps=12, batch_size=16, optimizer="adamw")


def rings(count=120):
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(count):
        n = int(rng.integers(4, 30))
        ends = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        graphs.append(Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=n, x=torch.randn(n, 3) + i % 2))
    split = [("train", "val", "test")[i % 3] for i in range(count)]
    return at.data.from_arrays(graphs, [i // 3 % 2 for i in range(count)], split=split)


def forest(*groups):
    drop = at.Tree().with_node(1, at.transforms.DropNodes(0.2), p=0.5)
    return at.Forest({group: (drop, 1 / len(groups)) for group in groups})


def test_forests_of_other_groups_are_judged_in_those_of_the_data(tmp_path):
    torch.manual_seed(0)
    data = at.data.group(rings(), "size:3")
    options = at.Weighting(alpha=4, eta=0.5)
    policies = {
        "none": None,
        "three": at.Weighted(forest("size0", "size1", "size2"), options),
        "two": at.Weighted(forest("size0", "size1"), options, groups="size:2"),
    }
    found = at.compare(data, TASK, policies, seeds=1, out=tmp_path / "c")
    rows = {row["policy"]: row for row in found.rows}
    for row in rows.values():
        assert [key for key in row if key.startswith("group ")] == ["group size0", "group size1", "group size2"]
    assert [key for key in rows["two"] if key.startswith("weight ")] == ["weight size0", "weight size1"]
    trainer = TASK.prepare(at.data.group(data, "size:2"))
    training = WeightedTraining(trainer, policies["two"].forest, options, 0)
    at_end = training.run(range(training.rounds))
    assert rows["two"]["weight size0"] == at_end.w[0]
    assert rows["two"]["test"] == trainer.measures(at_end.theta, data.indices("test"))["accuracy"]
    assert at.resume(tmp_path / "c", data=data).rows == found.rows


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (
            lambda: at.Weighted(forest("size0")),
            r"must have a tree for each group of the data \(size0, size1\) and no other, got 'size1 missing'",
        ),
        (lambda: at.Weighted(forest("size0", "size1", "x")), "and no other, got 'x beside them'"),
        (lambda: at.Weighted(at.Tree()), "forest must be a forest"),
        (lambda: at.Weighted(forest("size0"), merge="closest"), "merge must be one of nearest"),
        (lambda: at.Weighted(forest("size0"), {"alpha": 3}), "weighting must be augtree.forests.Weighting"),
    ],
)
def test_what_does_not_fit_is_told(way, message):
    data = at.data.group(rings(), "size:2")
    with pytest.raises(ArgumentError, match=message):
        at.compare(data, TASK, {"none": None, "mine": way()}, seeds=1)


def test_weights_that_are_learned_on_validation_data_leave_it_out_of_the_training():
    data = at.data.group(rings(), "size:2")
    rule = "train_on must be train where the validation data is needed to learn or choose"
    with pytest.raises(ArgumentError, match=rule):
        at.compare(data, TASK, {"mine": at.Weighted(forest("size0", "size1"))}, seeds=1, train_on="train+val")
