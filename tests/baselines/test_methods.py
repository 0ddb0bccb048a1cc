"""Methods to train a model, as a user may name them."""

import numpy as np
import pytest

import augtree as at
from augtree import Forest, Tree
from augtree.baselines.methods import (
    check_domain,
    fit,
    free_policies,
    is_free,
    method_of,
    policy_of,
    restore_method,
    seeds_of,
)
from augtree.comparison import Longer
from augtree.errors import ArgumentError, TaskError
from augtree.policies.codec import Reader, to_json
from augtree.policies.presets import find
from augtree.transforms import Chain, DropNodes, Flip, Identity, PadCrop, RandAugment, Rotate
from augtree.transforms.spaces import simclr_chain as simclr
from support.blobs import MINE, blobs, same, task

QUICK = {"model": "cnn", "steps": 2, "batch_size": 8, "dim": 8, "device": "cpu"}


def pictures(channels):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (48, channels, 8, 8)).astype(np.uint8)
    return at.data.from_arrays(x, np.arange(48) % 2, split=["train", "val", "test"] * 16)


def test_simclr_by_name_for_four_channels():
    data, task = pictures(4), at.tasks.Contrastive(**QUICK)
    table = at.compare(data, task, {"simclr": "simclr"}, seeds=1)
    assert not any(row.get("failed") for row in table.rows)
    found = at.evaluate(data, task, {"simclr": "simclr"}, protocol="linear", seeds=1)
    assert str(simclr(colours=False)) == found.policies["simclr"]
    assert is_free(simclr(colours=False))
    assert is_free(find("graphcl"))


def test_seeds_are_a_number_of_them_or_the_seeds_themselves():
    assert seeds_of(3) == seeds_of(np.int64(3)) == [0, 1, 2]
    assert seeds_of([7, 2]) == [7, 2]


def test_policies_that_need_no_search():
    assert is_free(RandAugment())
    assert is_free(Chain([Flip(), PadCrop(1), RandAugment()]))
    assert not is_free(Chain([(Flip(), 0.5), RandAugment()]))
    assert not is_free(Rotate(0.4))
    assert not is_free(MINE)
    assert not is_free(Longer(2, RandAugment()))
    assert list(free_policies(blobs())) == ["none", "randaugment", "trivialaugment"]


def test_a_policy_is_a_value_a_name_a_file_or_none(tmp_path):
    MINE.save(tmp_path / "mine.json")
    assert policy_of(None, "p", blobs()) == Identity()
    assert policy_of("randaugment", "p", blobs()) == RandAugment()
    assert policy_of(str(tmp_path / "mine.json"), "p", blobs()) == policy_of(MINE, "p", blobs()) == MINE
    with pytest.raises(ArgumentError, match="p must be a policy, a name, a file or None, got 3"):
        policy_of(3, "p", blobs())
    for name in ("mixup", "search"):
        with pytest.raises(ArgumentError, match=f"p must be a policy, and not a method, .*, got '{name}'"):
            policy_of(name, "p", blobs())


def test_a_method_comes_back_from_its_specification(tmp_path):
    reader = Reader(tmp_path / "spec.json", ())
    forest = at.Weighted(Forest({"a": (MINE, 0.5), "b": (Tree(), 0.5)}), at.Weighting(alpha=3), "size:2", "nearest")
    assert restore_method(to_json(MINE), reader) == MINE
    assert restore_method(Longer(2, MINE).spec(), reader) == Longer(2, MINE)
    assert restore_method(forest.spec(), reader) == forest
    assert method_of(forest, "p", blobs()) is forest


def test_a_policy_must_work_on_the_data_and_have_a_tree_for_each_group():
    data = blobs(groups=np.where(np.arange(80) % 4 < 2, "a", "b"))
    check_domain("p", Forest({"a": (MINE, 0.5), "b": (Tree(), 0.5)}), data)
    with pytest.raises(ArgumentError, match="p must have a tree for the group b"):
        check_domain("p", Forest({"a": (MINE, 1.0)}), data)
    with pytest.raises(ArgumentError, match="p must work on images as the data does"):
        check_domain("p", DropNodes(0.2), data)


def test_a_training_by_a_forest_in_other_groups_counts_as_the_comparison_s():
    data = blobs(groups=np.where(np.arange(80) % 4 < 2, "a", "b"))
    trainer = task().prepare(data)
    forest = at.Weighted(Forest({"a": (MINE, 0.5), "b": (Tree(), 0.5)}), at.Weighting(alpha=2, eta=0.0))
    state, row = fit(trainer, forest, 0, "train")
    assert row == {"weight a": 0.5, "weight b": 0.5}
    assert trainer.passes.total == 2 * 6 * 16
    other = task().prepare(data)
    regrouped = at.Weighted(forest.forest, forest.weighting, groups="given")
    again, _ = fit(other, regrouped, 0, "train")
    assert same(state, again)
    assert other.passes.total == trainer.passes.total


def test_a_control_needs_the_best_free_policy():
    with pytest.raises(TaskError, match="the best free policy must be known"):
        fit(task().prepare(blobs()), Longer(2), 0, "train")
