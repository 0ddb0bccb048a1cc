import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from augtree import Forest, Tree, wrap
from augtree.comparison import Comparison, compare, resume
from augtree.data import from_arrays
from augtree.errors import ArgumentError, DataError, PolicyFileError, RunError, TaskError
from augtree.runs.events import Planned, RowTrained
from augtree.tasks import Classification
from augtree.tasks.trainer import Trainer
from augtree.transforms import DropNodes, Identity, Invert, RandAugment
from support.blobs import MINE, POLICIES, Fragile, blobs, net, task


def test_a_comparison_repeats_and_is_kept(tmp_path):
    events = []
    first = compare(blobs(), task(metric="loss"), POLICIES, seeds=2, out=tmp_path / "run", watch=events.append)
    (note,) = first.notes
    assert note.startswith("A training has 6 steps: too short")
    began, plan, *trained, finished = events
    assert plan == Planned(notes=[note], lines=["6 trainings."], trainings=6)
    assert (began.spec["kind"], finished.text) == ("compare", f"{first.to_text()}\n\n{first.verdict()}")
    assert sorted(((event.policy, event.seed, event.figures) for event in trained), key=str) == sorted(
        ((row["policy"], row["seed"], {name: row[name] for name in ("val", "test", "cost")}) for row in first.rows),
        key=str,
    )
    assert all(isinstance(event, RowTrained) and not event.failed for event in trained)
    assert [(row["policy"], row["seed"]) for row in first.rows] == [(p, s) for s in (0, 1) for p in ("b", "ra", "a")]
    assert list(first.free) == ["b", "ra"]
    assert first.judged_on == "test"
    assert len({row[split] for row in first.rows for split in ("val", "test")}) == 12
    assert compare(blobs(), task(metric="loss"), POLICIES, seeds=2).rows == first.rows
    files = {name: (tmp_path / "run" / name).read_bytes() for name in ("comparison.csv", "comparison.json")}
    assert json.loads(files["comparison.json"])["rows"] == first.rows
    again = resume(tmp_path / "run", data=blobs(), task=task(metric="loss"))
    assert again == Comparison(first.metric, first.rows, first.free, first.judged_on, [note], [], [], [])
    assert {name: (tmp_path / "run" / name).read_bytes() for name in files} == files


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from augtree.comparison import compare
from support.blobs import POLICIES, blobs, task
compare(blobs(), task(model="cnn", metric="loss"), POLICIES, seeds=2, out=sys.argv[2])
"""


@pytest.mark.parametrize("fault", ["unit.recorded:2", "unit.computed:3", "result.written:1"])
def test_a_comparison_that_was_killed_goes_on_to_the_same_bytes(tmp_path, fault):
    whole = compare(blobs(), task(model="cnn", metric="loss"), POLICIES, seeds=2, out=tmp_path / "whole")
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[1]), str(tmp_path / "killed")]
    surroundings = {**os.environ, "AUGTREE_FAULT": fault}
    done = subprocess.run(command, env=surroundings, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not (tmp_path / "killed" / "comparison.json").exists()
    found = resume(tmp_path / "killed", data=blobs())  # the task comes from the folder
    assert found.rows == whole.rows
    for name in ("comparison.csv", "comparison.json", "spec.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


DIVERGED = "TaskError: the model must give finite numbers, but the training diverged with lr=0.05 after 6 steps"
RISKY = {
    "always": Tree().with_node(1, Invert(1.0), p=1.0),
    "sometimes": Tree().with_node(1, Invert(1.0), p=0.005),
    "none": None,
}


def test_a_training_that_diverges_is_marked_and_the_others_go_on(tmp_path):
    events = []
    found = compare(blobs(), task(model=Fragile), RISKY, seeds=3, out=tmp_path, watch=events.append)
    failed = [event for event in events if isinstance(event, RowTrained) and event.failed]
    assert {event.seed for event in failed if event.policy == "always"} == {0, 1, 2}
    assert {event.failed for event in failed} == {DIVERGED}
    assert all(list(event.figures) == ["cost"] for event in failed)
    sometimes, none, always = found.lines()
    assert (sometimes.policy, none.policy, always.policy) == ("sometimes", "none", "always")
    assert sometimes.failures == f"1 of 3 failed: {DIVERGED}"
    assert (always.mean, always.failures) == (None, f"3 of 3 failed: {DIVERGED}")
    assert {**found.rows[0], "cost": 1} == {"policy": "always", "seed": 0, "failed": DIVERGED, "cost": 1}
    assert 0 < found.rows[0]["cost"] < none.cost  # it never got to be judged
    plain = compare(blobs(), task(), {"none": None}, seeds=3).lines()[0]
    assert (none.mean, none.failed) == (plain.mean, 0)
    assert f"3 of 3 failed: {DIVERGED}" in found.to_text()
    assert DIVERGED in (tmp_path / "comparison.csv").read_text()
    again = resume(tmp_path, data=blobs(), task=task(model=Fragile))
    assert (again.rows, again.to_json()) == (found.rows, found.to_json())


def test_a_policy_that_raises_is_marked_with_the_reason():
    def fog(picture):
        raise ValueError("no such\npicture")

    found = compare(blobs(), task(), {"none": None, "fog": Tree().with_node(1, wrap(fog, name="Fog"))}, seeds=1)
    assert found.lines()[1].failures.startswith("1 of 1 failed: TransformError: ")
    assert "no such picture" in found.lines()[1].reason


def test_where_every_training_fails_that_is_an_error(tmp_path):
    with pytest.raises(TaskError, match="every training failed, the first with: TaskError: the model must give"):
        compare(blobs(), task(model=lambda: net(3)), POLICIES, seeds=2, out=tmp_path)
    assert (tmp_path / "comparison.csv").read_text().count("TaskError") == 6


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError, OSError, KeyboardInterrupt])
def test_what_is_no_fault_of_the_policy_ends_the_comparison(tmp_path, monkeypatch, error):
    def fit(*_, **__):
        raise error("not now")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", fit)
        with pytest.raises(MemoryError if error is torch.OutOfMemoryError else error):
            compare(blobs(), task(), POLICIES, seeds=1, out=tmp_path)
    assert all("failed" not in row for row in resume(tmp_path, data=blobs(), task=task()).rows)


def test_policies_by_name_file_value_and_none(tmp_path):
    MINE.save(tmp_path / "mine.json")
    named = {
        "x": "none",
        "y": None,
        "z": Identity(),
        "file": str(tmp_path / "mine.json"),
        "path": tmp_path / "mine.json",
    }
    found = compare(blobs(), task(), {**named, "value": MINE, "ra": RandAugment(m=14)}, seeds=[4])
    assert list(found.free) == ["x", "y", "z", "ra"]
    scores = {row["policy"]: (row["val"], row["test"]) for row in found.rows}
    assert scores["x"] == scores["y"] == scores["z"]
    assert scores["file"] == scores["path"] == scores["value"]
    assert {row["seed"] for row in found.rows} == {4}


def test_without_policies_the_free_ones_are_compared():
    assert list(compare(blobs(), task(steps=1), seeds=1).free) == ["none", "randaugment", "trivialaugment"]
    graphs = [Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2 + i % 2) for i in range(8)]
    data = from_arrays(graphs, [0, 1] * 4, split=["train"] * 4 + ["val"] * 4)
    found = compare(data, Classification(steps=2, batch_size=4, device="cpu"), seeds=1)
    assert (list(found.free), found.judged_on) == (["none"], "val")


def test_each_policy_is_measured_as_a_training_by_itself():
    found = compare(blobs(), task(metric="loss"), {"a": MINE}, seeds=[3]).rows[0]
    ready = task().prepare(blobs())
    state = ready.fit(MINE, 3)
    assert found["val"] == ready.measures(state, np.arange(48, 64))["loss"]
    assert found["test"] == ready.measures(state, np.arange(64, 80))["loss"]


def test_training_on_validation_samples_too():
    asked = task(steps=None, epochs=2, metric="loss")
    found = compare(blobs(), asked, POLICIES, seeds=1, train_on="train+val")
    assert all(set(row) == {"policy", "seed", "test", "cost"} for row in found.rows)
    ready = asked.prepare(blobs())
    state = ready.fit(MINE, 0, rows=np.arange(64))
    assert state.step == 8
    assert found.rows[2]["test"] == ready.measures(state, np.arange(64, 80))["loss"]


def test_the_worst_group():
    groups = np.where(np.arange(80) % 4 < 2, "odd", "even")
    data = blobs(groups=groups)
    policies = {"none": None, "forest": Forest({"odd": (MINE, 0.5), "even": (Tree(), 0.5)})}
    for metric, worst in (("accuracy", min), ("loss", max)):
        asked = task(metric=metric, steps=2)
        found = compare(data, asked, policies, seeds=1)
        ready = asked.prepare(data)
        for row in found.rows:
            state = ready.fit(policies[row["policy"]] or Identity(), 0)
            each = [ready.measures(state, data.indices("test", name))[metric] for name in ("even", "odd")]
            assert row["worst_group"] == worst(each)
            assert metric == "accuracy" or each[0] != each[1]


def test_a_group_in_which_the_metric_does_not_exist_is_left_out():
    groups = ["a" if i % 4 == 0 else "b" for i in range(80)]  # in a there is class 0 alone
    found = compare(blobs(groups=groups), task(metric="auroc"), {"none": None}, seeds=1).rows[0]
    assert 0 <= found["worst_group"] <= 1


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"seeds": 0}, ArgumentError, "seeds must be a whole number from 1 to 1000, got 0"),
        ({"seeds": True}, ArgumentError, "seeds must be a whole number"),
        ({"seeds": []}, ArgumentError, "seeds must be at least one, and all different"),
        ({"seeds": [1, 1]}, ArgumentError, "seeds must be at least one, and all different"),
        ({"seeds": [0, 0.5]}, ArgumentError, "seeds/1 must be a whole number"),
        ({"train_on": "val"}, ArgumentError, r"train_on must be one of train, train\+val, got 'val'"),
        ({"policies": {}}, ArgumentError, "policies must map at least one name to a policy"),
        ({"policies": {"": None}}, ArgumentError, "policies must have names that are printable text"),
        ({"policies": {"a": 3}}, ArgumentError, "policies/a must be a policy, a name, a file or None, got 3"),
        ({"policies": {"a": "randaugmnt"}}, PolicyFileError, r"did you mean randaugment\?"),
        ({"policies": {"a": DropNodes(0.2)}}, ArgumentError, "policies/a must work on images as the data does"),
        (
            {"policies": {"a": Forest({"x": (Tree(), 1.0)})}},
            ArgumentError,
            "policies/a must have a tree for the group all",
        ),
        (
            {"data": blobs(test=0), "train_on": "train+val"},
            DataError,
            "must have validation samples to train on and test",
        ),
    ],
)
def test_bad_arguments_are_refused_and_leave_nothing(tmp_path, more, error, words):
    arguments = {"data": blobs(), "task": task(), "policies": POLICIES, **more}
    with pytest.raises(error, match=words):
        compare(**arguments, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_comparison_is_refused(tmp_path):
    compare(blobs(), task(), POLICIES, seeds=1, out=tmp_path)
    before = (tmp_path / "comparison.csv").read_bytes()
    with pytest.raises(RunError, match=r"differs in /seeds, /task/steps\)"):
        compare(blobs(), task(steps=7), POLICIES, seeds=2, out=tmp_path)
    with pytest.raises(RunError, match=r"differs in /order\)"):
        compare(blobs(), task(), dict(reversed(POLICIES.items())), seeds=1, out=tmp_path)
    assert (tmp_path / "comparison.csv").read_bytes() == before


def test_there_must_be_something_to_judge_by():
    data = replace(blobs(), split=np.zeros(80, np.int8))
    with pytest.raises(DataError, match="blobs must have validation or test samples to judge by, got "):
        compare(data, task(), POLICIES, seeds=1)


def test_an_upside_down_policy_is_seen():
    """The comparison notices a policy that matters: training on inverted pictures alone ruins a linear model."""
    linear = task(model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), steps=40, lr=0.02)
    found = compare(blobs(), linear, {"none": None, "inverted": Tree().with_node(1, Invert(1.0), p=1.0)}, seeds=2)
    assert found.best_free == "none"
    assert found.lines()[0].mean > 0.9
    assert found.lines()[1].mean < 0.5
    assert found.verdict().startswith("The search did not help: inverted is ")
