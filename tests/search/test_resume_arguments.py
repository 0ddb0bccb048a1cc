"""What a search needs again when it is resumed, and which folders are refused."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, DataError, OtherRunError, PolicyFileError, RunError
from augtree.runs.store import VERSION, Run
from augtree.search import Density
from augtree.tasks import Classification
from augtree.tasks.trainer import Trainer
from support.damage import write_spec
from support.searches import INVERT, TASK, bars
from support.tree_runs import DATA, again, files, search, stopped

pytestmark = pytest.mark.usefixtures("full_trees")


def test_arrays_must_be_given_again(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with pytest.raises(RunError, match=r"a was made on arrays: give them again, augtree.resume\(.*, data=...\)"):
        at.resume(tmp_path / "a", task=TASK)


def test_a_model_of_one_s_own_must_be_given_again(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with pytest.raises(
        RunError, match=r"model is a function \(support.searches.small_model\): give the task again, task=..."
    ):
        at.resume(tmp_path / "a", data=DATA)


def test_data_that_changed_are_refused(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    other = bars(0, 0.5, seed=1, wrong=0.2)
    with pytest.raises(DataError, match="the data must be what the run began with, but bars has changed"):
        again(tmp_path / "a", data=other)
    with pytest.raises(
        RunError, match=r"holds another run \(it differs in /data/fingerprint\): choose another --out"
    ):
        search(tmp_path / "a", data=other)


def test_what_a_run_begins_with_is_part_of_it(tmp_path, cut, monkeypatch):
    """A function has a name, not a content: the weights that it gives tell."""
    stopped(tmp_path / "a", cut)
    begin = Trainer.identity
    monkeypatch.setattr(Trainer, "identity", lambda self, seed: {**begin(self, seed), "weights": "others"})
    with pytest.raises(OtherRunError, match="differs in /begins/weights"):
        search(tmp_path / "a")
    monkeypatch.undo()
    flipped = dataclasses.replace(DATA, preprocess=at.transforms.Flip())
    with pytest.raises(OtherRunError, match="differs in /begins/preprocess"):
        search(tmp_path / "a", data=flipped)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        (dict(seed=1), "/seed"),
        (dict(depth=1), "/depth"),
        (dict(probabilities=(0.5,)), "/probabilities"),
        (dict(space=[INVERT]), "/space"),
        (dict(task=Classification(**{**vars(TASK), "steps": 41})), "/task/steps"),
        (dict(scorer=Density()), "/scorer/"),
    ],
)
def test_another_search_does_not_fit_into_the_folder(tmp_path, cut, changes, place):
    stopped(tmp_path / "a", cut)
    before = (tmp_path / "a" / "spec.json").read_bytes()
    with pytest.raises(RunError, match=f"holds another run .it differs in .*{place}"):
        search(tmp_path / "a", **changes)
    assert (tmp_path / "a" / "spec.json").read_bytes() == before


def dim(picture, magnitude):
    return (picture * (1 - magnitude)).to(picture.dtype)


def test_transforms_of_one_s_own_must_be_given_again(tmp_path, cut):
    dims = [at.wrap(dim, name="Dim", magnitude=0.5)]
    search(tmp_path / "whole", space=[INVERT, *dims])
    stopped(tmp_path / "a", cut, space=[INVERT, *dims])
    with pytest.raises(PolicyFileError, match="Dim"):
        again(tmp_path / "a")
    again(tmp_path / "a", transforms=dims)
    assert files(tmp_path / "a") == files(tmp_path / "whole")


@pytest.mark.parametrize(
    "scorer", [{"name": "anneal", "rungs": [0.05, 0.2], "trunk": 0.3}, {"name": "cooldown", "rounds": 3}]
)
def test_a_run_of_an_older_version_is_refused_with_one_clear_word(tmp_path, scorer):
    """Its scorer is gone, or has other options now."""
    Run.begin(tmp_path / "old", {"version": VERSION, "kind": "search", "scorer": scorer}).close()
    name = scorer["name"]
    message = f"old was begun by another version of augtree, with the scorer '{name}': begin it again"
    with pytest.raises(RunError, match=message) as caught:
        at.resume(tmp_path / "old", data=DATA)
    assert "\n" not in str(caught.value)
    with pytest.raises(OtherRunError, match="differs in .*/scorer"):
        search(tmp_path / "old")


def test_a_run_with_a_space_of_an_older_version_is_refused(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    spec = json.loads((tmp_path / "a" / "spec.json").read_text())
    spec["space"] = spec["space"]["candidates"]
    write_spec(tmp_path / "a", spec)
    with pytest.raises(RunError, match="is of a run that another version of augtree began: begin it again"):
        again(tmp_path / "a")


def test_the_budget_of_a_search_by_cooldowns_stays(tmp_path, cut):
    stopped(tmp_path / "a", cut, scorer="cooldown")
    with pytest.raises(ArgumentError, match="budget must be left out or be that of the run: .*, got 3"):
        again(tmp_path / "a", budget=3)
    assert again(tmp_path / "a", budget=6).cost.forward > 0


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="must be the folder of a run, but it has no spec.json"):
        at.resume(tmp_path)
    with pytest.raises(RunError, match="nowhere must be the folder of a run, but there is no such folder"):
        at.resume(tmp_path / "nowhere")


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="must be an empty folder or that of the same run"):
        search(tmp_path / "a")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.txt"]


def test_other_versions_are_told(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with Run.open(tmp_path / "a") as run:
        run.record_fact("surroundings", {**run.fact("surroundings"), "torch": "0.1"})
    notes = again(tmp_path / "a").notes
    expected = f"The run began with torch 0.1 and goes on with {torch.__version__}: the tree may differ."
    assert notes[0] == expected


def test_killed_before_the_specification_is_written(tmp_path, monkeypatch):
    from augtree.runs import store

    def killed(path, content):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_file", killed)
        with pytest.raises(SystemExit):
            search(tmp_path / "a")
    assert Path(tmp_path / "a").exists()
    assert search(tmp_path / "a", depth=1).tree
