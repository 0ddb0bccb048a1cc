"""`resume` goes on with a run of any kind."""

import os
from pathlib import Path

import numpy as np
import pytest

import augtree as at
from augtree import Tree
from augtree.comparison import compare, resume
from augtree.errors import DataError, RunError
from augtree.training.trainer import ModelTrainer
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


# ---- runs that are done

GROUPS = np.where(np.arange(80) // 2 % 2, "odd", "even")
QUICK = {"model": "cnn", "options": {"width": 2}, "steps": 4, "batch_size": 16, "device": "cpu"}
ONE = {"depth": 1, "probabilities": (0.5,), "scorer": "density"}
SPACE = [Invert(1.0)]
KINDS = {
    "search": lambda data, asked, out: at.search_tree(data, asked, SPACE, budget=3, out=out),
    "density": lambda data, asked, out: at.search_tree(data, asked, SPACE, **ONE, out=out),
    "forest": lambda data, asked, out: at.search_forest(data, asked, SPACE, budget=3, alpha=2, out=out),
    "paper": lambda data, asked, out: at.search_forest(data, asked, SPACE, method="paper", **ONE, alpha=2, out=out),
    "fit": lambda data, asked, out: at.fit_forest(data, asked, alpha=2, plain=True, out=out),
    "compare": lambda data, asked, out: at.compare(data, asked, {"none": None, "mine": MINE}, seeds=1, out=out),
    "train": lambda data, asked, out: at.train(data, asked, MINE, out=out),
    "evaluate": lambda data, _, out: at.evaluate(
        data, at.tasks.Contrastive(**QUICK, dim=4), {"none": None}, protocol="linear", seeds=1, out=out
    ),
}


def facts(result):
    """What a result says."""
    return result.metrics if isinstance(result, at.comparison.Trained) else result.to_json()


def contents(folder):
    """Every file below a folder, and when it was written."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_run_is_shown_again_without_training_and_so_is_one_that_cannot_be_written(
    kind, tmp_path, monkeypatch
):
    data, out = blobs(groups=GROUPS), tmp_path / "run"
    first = facts(KINDS[kind](data, at.tasks.Classification(**QUICK), out))

    def trained(*_, **__):
        raise AssertionError("a model was trained again, or a file removed")

    monkeypatch.setattr(ModelTrainer, "train", trained)
    assert facts(resume(out, data=data)) == first
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith(str(tmp_path)))
    monkeypatch.setattr(Path, "unlink", trained)
    before, places = contents(out), sorted(out.rglob("*"))
    assert facts(resume(out, data=data)) == first
    assert (contents(out), sorted(out.rglob("*"))) == (before, places)


def test_an_unfinished_run_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    out = tmp_path / "run"

    def stop(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(blobs(), at.tasks.Classification(**QUICK), {"none": None}, seeds=2, out=out, watch=stop)
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = contents(out)
    with pytest.raises(
        RunError, match=r"run must be a folder that can be written, because .*\(train/none/0 is missing"
    ):
        resume(out, data=blobs())
    assert contents(out) == before
    with pytest.raises(RunError, match="holds another run"):
        compare(blobs(), at.tasks.Classification(**QUICK), {"none": None}, seeds=3, out=out)
