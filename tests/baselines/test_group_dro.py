"""GroupDRO: weights that grow with the groups' losses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from augtree.baselines.group_dro import GroupDro, by_group, group_means, reweighted
from augtree.errors import ArgumentError
from support.blobs import blobs, same
from support.methods import grouped, task


def test_a_worked_example_of_the_weights():
    """Two steps by hand: weights 1/2 and 1/2, losses (1, 3) and then (2, 2.5), step size 0.1."""
    first = [0.5 * math.exp(0.1), 0.5 * math.exp(0.3)]
    first = [w / sum(first) for w in first]
    second = [first[0] * math.exp(0.2), first[1] * math.exp(0.25)]
    second = [w / sum(second) for w in second]
    weights = reweighted(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 3.0]), 0.1)
    assert weights.tolist() == pytest.approx(first)
    assert weights.tolist() == pytest.approx([0.45017, 0.54983], abs=1e-5)
    assert reweighted(weights, torch.tensor([2.0, 2.5]), 0.1).tolist() == pytest.approx(second)


def test_means_of_groups_and_a_group_without_samples_keeps_its_share_of_the_rest():
    means, there = group_means(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 2, 2]), 3)
    assert means.tolist() == [1, 0, 4]
    assert there.tolist() == [1, 0, 1]
    weights = reweighted(torch.tensor([0.2, 0.3, 0.5]), torch.tensor([1.0, 0.0, 1.0]), 0.5)
    assert (weights[0] / weights[2]).item() == pytest.approx(0.4)
    assert weights[1] < 0.3


def test_groups_are_drawn_alike_and_samples_within_a_group_too():
    members = [np.arange(100), np.zeros(0, np.int64), np.arange(200, 210)]
    rows, places = by_group(members, 1)(0, 20_000)
    assert places.tolist() == [*range(20_000)]
    small = rows >= 200
    assert 0.48 < small.mean() < 0.52
    assert {*rows[small].tolist()} == {*range(200, 210)}
    counts = np.bincount(rows[~small], minlength=100)
    assert counts.min() > 60
    assert counts.max() < 150
    assert np.array_equal(by_group(members, 1)(500, 30)[0], rows[500:530])
    assert not np.array_equal(by_group(members, 2)(0, 50)[0], rows[:50])


def test_the_weights_of_a_training_follow_the_rule_step_by_step(monkeypatch):
    """A model that does not learn: each group's losses are known, so the weights are too."""
    data = blobs(groups=np.where(np.arange(80) % 4 == 0, "a", "b"))
    trainer = task(lr=1e-12, weight_decay=0.0, model=linear, options={}).prepare(data)
    method = GroupDro(step_size=0.3, adjustment=2.0)
    _, row = method.fit(trainer, 2)
    trainer.load(trainer.fresh(2))
    trainer.model.eval()
    with torch.no_grad():
        outputs = trainer.outputs(trainer.samples, len(data), trainer.model)
        losses = trainer.output_losses(outputs, trainer.labels).double().numpy()
    members = [data.indices("train", name) for name in ("a", "b")]
    q, order = np.array([0.5, 0.5]), by_group(members, 2)
    for step in range(8):
        rows, _ = order(step * 16, 16)
        for g in range(2):
            mine = losses[rows[data.groups[rows] == g]]
            q[g] *= math.exp(0.3 * (mine.mean() + 2 / len(members[g]) ** 0.5)) if len(mine) else 1
        q /= q.sum()
    assert [row["weight a"], row["weight b"]] == pytest.approx(q, abs=1e-4)
    assert abs(q[0] - 0.5) > 1e-3


def linear():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))


def test_the_group_with_noise_for_labels_gets_the_weight():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    groups = np.where(np.arange(80) // 2 % 2, "clean", "noisy")
    labels = np.where(groups == "noisy", rng.integers(0, 2, 80), labels)
    data = blobs(y=labels, groups=groups)
    _, row = GroupDro(step_size=0.5).fit(task(steps=40).prepare(data), 0)
    assert row["weight noisy"] > 0.8
    assert row["weight noisy"] + row["weight clean"] == pytest.approx(1)


def test_with_step_size_zero_it_draws_groups_alike_and_leaves_the_weights():
    data = grouped()
    state, row = GroupDro(step_size=0.0).fit(task().prepare(data), 0)
    assert row == {"weight a": 0.5, "weight b": 0.5}
    assert not same(state, GroupDro(step_size=1.0).fit(task().prepare(data), 0)[0])


def test_a_group_without_training_samples_has_no_weight():
    data = grouped()
    groups = np.where(np.arange(96) >= 60, 2, data.groups)
    data = replace(data, groups=groups.astype(np.int64), group_names=("a", "b", "c"))
    _, row = GroupDro().fit(task().prepare(data), 0)
    assert row["weight c"] == 0


def test_one_group_alone_is_refused():
    with pytest.raises(ArgumentError, match=r"group-dro must have training samples of two groups .*, got \['all'\]"):
        GroupDro().check(task(), blobs())
