"""`resume` goes on with a run of any kind."""

import numpy as np
import pytest

import augtree as at
from augtree import Tree
from augtree.comparison import compare, resume
from augtree.errors import DataError, RunError
from augtree.transforms import Invert, Space
from support.blobs import MINE, POLICIES, blobs, task


def test_resuming_needs_what_the_folder_does_not_hold(tmp_path):
    compare(blobs(), task(), POLICIES, seeds=1, out=tmp_path / "a")
    with pytest.raises(RunError, match="was made on arrays: give them again"):
        resume(tmp_path / "a")
    with pytest.raises(DataError, match="the data must be what the run began with, but blobs has changed"):
        resume(tmp_path / "a", data=blobs(train=50))
    with pytest.raises(RunError, match=r"model is a function \(support.blobs.net\): give the task again"):
        resume(tmp_path / "a", data=blobs())
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "spec.json").write_text('{"version": 1, "kind": "poem"}')
    with pytest.raises(RunError, match="a comparison or an evaluation, got 'poem'"):
        resume(tmp_path / "b")


def test_searches_and_forests_are_resumed_by_the_same_word(tmp_path):
    groups, space = np.where(np.arange(80) // 2 % 2, "odd", "even"), Space([Invert(1.0)])
    data, asked = blobs(groups=groups), task(steps=4)
    tree = at.search_tree(data, asked, space, depth=1, budget=3, out=tmp_path / "tree")
    forest = at.fit_forest(data, asked, {"odd": MINE, "even": Tree()}, alpha=2, out=tmp_path / "forest")
    assert at.resume(tmp_path / "tree", data=data, task=asked).tree == tree.tree
    assert at.resume(tmp_path / "forest", data=data, task=asked).weights == forest.weights
