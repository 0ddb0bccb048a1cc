import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch_geometric.data import Data

from augtree import Forest, Tree, models
from augtree.comparison import Comparison, compare, resume, train
from augtree.data import from_arrays
from augtree.errors import ArgumentError, DataError, PolicyFileError, RunError, TaskError
from augtree.tasks import Classification
from augtree.transforms import DropNodes, Flip, Identity, Invert, RandAugment
from tasks.small import MINE, POLICIES, blobs, by_hand, net, task


def rows(metric="test", **policies):
    """Rows of policies, each with a value for every seed; validation values stand behind a stroke."""
    found = []
    for name, (tested, val) in policies.items():
        for seed, value in enumerate(tested):
            found.append({"policy": name, "seed": seed, metric: value} | ({} if val is None else {"val": val}))
    return found


# ---- what follows from the rows

ROWS = rows(
    none=([0.50, 0.54, 0.52], 0.60),
    randaugment=([0.60, 0.70, 0.65], 0.70),
    trivialaugment=([0.80, 0.80, 0.80], 0.65),  # best on the test data, which must not matter
    mine=([0.64, 0.72, 0.71], 0.72),
)
FREE = ["none", "randaugment", "trivialaugment"]


def test_lines_by_hand():
    found = Comparison("accuracy", ROWS, FREE, "test")
    assert found.best_free == "randaugment"
    none, rand, _, mine = found.lines()
    assert [line.policy for line in found.lines()] == ["none", "randaugment", "trivialaugment", "mine"]
    assert (none.seeds, none.worst_group, none.val) == (3, None, 0.6)
    assert (none.mean, none.spread) == (pytest.approx(0.52), pytest.approx(0.02))
    assert none.difference == pytest.approx(-0.13)
    assert (rand.difference, rand.difference_se) == (None, None)
    # 0.04, 0.02, 0.06: a mean of 0.04, a deviation of 0.02
    assert mine.difference == pytest.approx(0.04)
    assert mine.difference_se == pytest.approx(0.02 / 3**0.5)


def test_seeds_are_paired_by_their_number():
    found = Comparison(
        "accuracy", [*rows(none=([0.5, 0.6], 0.5)), {"policy": "mine", "seed": 1, "test": 0.9}], ["none"], "test"
    )
    mine = found.lines()[1]
    assert (mine.difference, mine.difference_se, mine.spread) == (pytest.approx(0.3), None, 0.0)
    alone = Comparison(
        "accuracy", [*rows(none=([0.5], 0.5)), {"policy": "mine", "seed": 7, "test": 0.9}], ["none"], "test"
    )
    assert alone.lines()[1].difference is None
    assert alone.verdict() == "There must be a free policy and another one, with a seed in common, for a verdict."


@pytest.mark.parametrize(
    ("metric", "free", "mine", "expected"),
    [
        ("accuracy", [0.5, 0.6], [0.7, 0.81], "mine is 0.2050 ± 0.0050 ahead of none, the best free policy."),
        (
            "accuracy",
            [0.5, 0.6],
            [0.6, 0.6],
            "mine is 0.0500 ± 0.0500 ahead of none, the best free policy: not more than noise.",
        ),
        ("accuracy", [0.5], [0.6], "mine is 0.1000 ahead of none, the best free policy: not more than noise."),
        (
            "accuracy",
            [0.5, 0.6],
            [0.4, 0.52],
            "The search did not help: mine is 0.0900 ± 0.0100 behind none, which is free.",
        ),
        ("accuracy", [0.5], [0.5], "The search did not help: mine does just as none, which is free."),
        ("error", [0.5, 0.4], [0.3, 0.19], "mine is 0.2050 ± 0.0050 ahead of none, the best free policy."),
        (
            "error",
            [0.5, 0.4],
            [0.6, 0.48],
            "The search did not help: mine is 0.0900 ± 0.0100 behind none, which is free.",
        ),
    ],
)
def test_verdicts(metric, free, mine, expected):
    found = Comparison(metric, rows(none=(free, 0.5), mine=(mine, 0.5)), ["none"], "test")
    assert found.verdict() == expected


def test_where_lower_is_better_the_lowest_is_best():
    table = rows(none=([0.4], 0.4), ra=([0.5], 0.3), a=([0.2], 0.6), b=([0.3], 0.2))
    found = Comparison("error", table, ["none", "ra"], "test")
    assert found.best_free == "ra"
    assert found.verdict().startswith("b is 0.2000 ahead of ra")


def test_the_verdict_chooses_by_validation_too():
    table = rows(none=([0.5], 0.5), lucky=([0.9], 0.4), mine=([0.6], 0.7))
    assert Comparison("accuracy", table, ["none"], "test").verdict().startswith("mine is 0.1000 ahead")


def test_without_validation_the_first_free_policy_is_the_reference():
    table = rows(none=([0.5], None), ra=([0.6], None), mine=([0.7], None))
    found = Comparison("accuracy", table, ["none", "ra"], "test")
    assert found.best_free == "none"
    assert found.verdict() == "mine is 0.2000 ahead of none, which is free: not more than noise."


@pytest.mark.parametrize("free", [[], ["a"]])
def test_without_a_free_policy_or_another_there_is_no_verdict(free):
    found = Comparison("accuracy", rows(a=([0.5], 0.5)), free, "test")
    assert found.verdict().startswith("There must be a free policy and another one")
    assert ("difference" in found.to_text()) == bool(free)


def test_the_table_as_text():
    table = [dict(row) for row in ROWS if row["policy"] in ("randaugment", "mine")]
    table[0]["worst_group"] = 0.4
    assert Comparison("accuracy", table, ["randaugment"], "test").to_text().splitlines() == [
        "| policy      | accuracy, test  | seeds | difference to randaugment | worst group |",
        "| ----------- | --------------- | ----- | ------------------------- | ----------- |",
        "| randaugment | 0.6500 ± 0.0500 | 3     |                           | 0.4000      |",
        "| mine        | 0.6900 ± 0.0436 | 3     | +0.0400 ± 0.0115          |             |",
    ]


def test_csv_and_json_can_be_read_again():
    found = Comparison("accuracy", ROWS, FREE, "test", ["a note"])
    read = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [
        {**row, "seed": int(row["seed"]), "test": float(row["test"]), "val": float(row["val"])} for row in read
    ] == ROWS
    content = json.loads(found.to_json())
    assert content["rows"] == ROWS
    assert content["lines"] == [vars(line) for line in found.lines()]
    assert (content["best_free"], content["verdict"]) == ("randaugment", found.verdict())
    assert (content["metric"], content["judged_on"], content["notes"]) == ("accuracy", "test", ["a note"])


# ---- comparing


def test_a_comparison_repeats_and_is_kept(tmp_path):
    told = []
    first = compare(
        blobs(),
        task(metric="loss"),
        POLICIES,
        seeds=2,
        out=tmp_path / "run",
        watch=lambda what, **_: told.append(what),
    )
    assert told == ["plan", *["trained"] * 6]
    assert [(row["policy"], row["seed"]) for row in first.rows] == [(p, s) for s in (0, 1) for p in ("b", "ra", "a")]
    assert list(first.free) == ["b", "ra"]
    assert first.judged_on == "test"
    assert len({row[split] for row in first.rows for split in ("val", "test")}) == 12
    assert compare(blobs(), task(metric="loss"), POLICIES, seeds=2).rows == first.rows
    files = {name: (tmp_path / "run" / name).read_bytes() for name in ("comparison.csv", "comparison.json")}
    assert json.loads(files["comparison.json"])["rows"] == first.rows
    again = resume(tmp_path / "run", data=blobs(), task=task(metric="loss"))
    assert again == Comparison(first.metric, first.rows, first.free, first.judged_on, [])
    assert {name: (tmp_path / "run" / name).read_bytes() for name in files} == files


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from augtree.comparison import compare
from tasks.small import POLICIES, blobs, task
compare(blobs(), task(model="cnn", metric="loss"), POLICIES, seeds=2, out=sys.argv[2])
"""


@pytest.mark.parametrize("fault", ["unit.recorded:2", "unit.computed:3", "result.written:1"])
def test_a_comparison_that_was_killed_goes_on_to_the_same_bytes(tmp_path, fault):
    whole = compare(blobs(), task(model="cnn", metric="loss"), POLICIES, seeds=2, out=tmp_path / "whole")
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(tmp_path / "killed")]
    surroundings = {**os.environ, "AUGTREE_FAULT": fault}
    done = subprocess.run(command, env=surroundings, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not (tmp_path / "killed" / "comparison.json").exists()
    found = resume(tmp_path / "killed", data=blobs())  # the task comes from the folder
    assert found.rows == whole.rows
    for name in ("comparison.csv", "comparison.json", "spec.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


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
    assert all(set(row) == {"policy", "seed", "test"} for row in found.rows)
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
        ({"task": task(model="resnet50", options={"wide": 3})}, ArgumentError, "wide must be an option of resnet50"),
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


def test_resuming_needs_what_the_folder_does_not_hold(tmp_path):
    compare(blobs(), task(), POLICIES, seeds=1, out=tmp_path / "a")
    with pytest.raises(RunError, match="was made on arrays: give them again"):
        resume(tmp_path / "a")
    with pytest.raises(DataError, match="the data must be what the run began with, but blobs has changed"):
        resume(tmp_path / "a", data=blobs(train=50))
    with pytest.raises(RunError, match=r"model is a function \(tasks.small.net\): give the task again"):
        resume(tmp_path / "a", data=blobs())
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "spec.json").write_text('{"version": 1, "kind": "forest"}')
    with pytest.raises(RunError, match="must be the run of a search or a comparison, got 'forest'"):
        resume(tmp_path / "b")


# ---- one model to keep


def test_a_trained_model_is_kept_and_loads_again(tmp_path):
    data, asked = blobs(), task(model="cnn", preprocess=Flip())
    told = []
    found = train(
        data, asked, MINE, seed=3, out=tmp_path / "a" / "b", watch=lambda what, **about: told.append((what, about))
    )
    assert told == [("plan", {"steps": 6}), *[("step", {"done": i}) for i in range(1, 7)]]
    folder = tmp_path / "a" / "b"
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "policy.json", "training.json"}
    pictures = by_hand(data.samples, data)
    model = models.build("cnn", models.Inputs("image", 3, 8, 2), weights=folder / "model.safetensors").eval()
    with torch.no_grad():
        assert torch.equal(model(pictures), found.model(pictures))
    about = json.loads((folder / "training.json").read_text())
    assert about["metrics"] == found.metrics
    assert (about["mean"], about["std"], about["classes"]) == (list(found.mean), list(found.std), ["0", "1"])
    assert about["task"]["model"] == "cnn"
    assert (folder / "policy.json").read_text() == (
        MINE.save(tmp_path / "x.json") or (tmp_path / "x.json").read_text()
    )
    ready = asked.prepare(data)
    state = ready.fit(MINE, 3)
    assert found.metrics == {s: ready.measures(state, data.indices(s)) for s in ("val", "test")}


class Tied(nn.Module):
    """The same weight at two places."""

    def __init__(self):
        super().__init__()
        self.net, self.one = net(2), nn.Linear(2, 2, bias=False)
        self.other = nn.Linear(2, 2, bias=False)
        self.other.weight = self.one.weight

    def forward(self, batch):
        return self.other(self.one(self.net(batch)))


def test_tied_weights_are_kept_twice(tmp_path):
    found = train(blobs(), task(model=Tied), out=tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert torch.equal(kept["one.weight"], kept["other.weight"])
    assert kept.keys() == found.model.state_dict().keys()


def test_a_training_without_a_folder():
    found = train(blobs(test=0), task(), "trivialaugment")
    assert set(found.metrics) == {"val"}
    assert not found.model.training


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"policy": 3}, ArgumentError, "policy must be a policy, a name, a file or None"),
        ({"policy": DropNodes(0.2)}, ArgumentError, "policy must work on images"),
        ({"seed": -1}, ArgumentError, "seed must be a whole number"),
        ({"task": task(model=lambda: net(3))}, TaskError, r"here \[16, 2\], got \[16, 3\]"),
        ({"task": task(lr=1e3, steps=30, weight_decay=1e3)}, TaskError, "the training diverged"),
    ],
)
def test_a_training_that_fails_leaves_nothing(tmp_path, more, error, words):
    with pytest.raises(error, match=words):
        train(**{"data": blobs(), "task": task(), **more}, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_before_the_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="--out must be a folder that can be made"):
        train(blobs(), task(), out=tmp_path / "file", watch=lambda *_, **__: pytest.fail("it was trained"))


def test_an_upside_down_policy_is_seen():
    """The comparison notices a policy that matters: training on inverted pictures alone ruins a linear model."""
    linear = task(model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), steps=40, lr=0.02)
    found = compare(blobs(), linear, {"none": None, "inverted": Tree().with_node(1, Invert(1.0), p=1.0)}, seeds=2)
    assert found.best_free == "none"
    assert found.lines()[0].mean > 0.9
    assert found.lines()[1].mean < 0.5
    assert found.verdict().startswith("The search did not help: inverted is ")
