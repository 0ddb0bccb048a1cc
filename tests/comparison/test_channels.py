"""A policy's name serves pictures of any number of channels."""

import numpy as np
import pytest

import augtree as at
from augtree.baselines.ways import is_free
from augtree.errors import ArgumentError
from augtree.policies.presets import find
from augtree.search import Density
from augtree.transforms.spaces import simclr_chain as simclr

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


def test_a_rule_that_does_not_suit_the_judge_leaves_no_run_behind(tmp_path):
    task = at.tasks.Contrastive(**QUICK, judge="contrastive")
    for search, method in ((at.search_tree, "greedy"), (at.search_forest, "paper")):
        with pytest.raises(ArgumentError, match="rule must be sampled"):
            search(pictures(3), task, scorer=Density(), method=method, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()
