import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import augtree as at
from augtree.cli import options
from augtree.errors import AugtreeError
from support.commands import FREE, QUICK, invoke, last

INVERT = at.transforms.Invert(0.2)


def last_of(folder):
    return json.loads((folder / "comparison.json").read_text())


@pytest.fixture
def folder(tmp_path):
    """What a newcomer has: pictures of several sizes, and a table."""
    rng = np.random.default_rng(0)
    place = tmp_path / "mine"
    (place / "pictures").mkdir(parents=True)
    lines = ["path,label,group"]
    for i in range(60):
        bright = i % 2
        grey = rng.integers(0, 100, (10 + i % 3, 10)) + 120 * bright
        Image.fromarray(grey.astype(np.uint8)).save(place / "pictures" / f"{i}.png")
        lines.append(f"pictures/{i}.png,{('dark', 'light')[bright]},{('left', 'right')[i % 3 == 0]}")
    (place / "index.csv").write_text("\n".join(lines) + "\n")
    return place


def test_a_newcomers_folder_is_searched_compared_and_trained_on(folder, tmp_path):
    out = tmp_path / "run"
    done = invoke("search", folder, *QUICK, "--budget", 40, "--out", out, "--json")
    found = last(done)
    assert "2 classes, 2 groups; train 36, val 12, test 12" in done.stderr
    assert "60/20/20" in done.stderr  # the split was made, and told
    assert "10x10" in done.stderr  # pictures of several sizes are cut, and told
    assert "Budget: 40 trainings, about " in done.stderr
    assert (
        "Plan: one model trains on a mixture of all transforms in play (the trunk); on the way, its predictions tell"
        in done.stderr
    )
    assert "In play: crops, each or not, and one of 13 styles (" in done.stderr
    assert done.stderr.count("calibrated") == 1
    assert "Test after 0.50 trainings: flips left-right: " in done.stderr
    told = done.stderr.splitlines()
    assert sum(line.startswith("Only 12 validation samples: ") for line in told) == 1
    assert "A training has 4 steps: too short" in done.stderr
    assert "Cost: " in done.stderr
    tree = at.load(out / "tree.json")
    assert str(tree) == found["tree"]
    assert (out / "tree.svg").read_text().startswith("<svg")
    assert (out / "history.csv").read_text().count("\n") == 1 + found["cost"]["scorings"]
    files = {"mixture.json", "single.json", "model.safetensors", "training.json"}
    assert files <= {path.name for path in out.iterdir()}

    done = invoke(
        "compare", folder, "none", out / "tree.json", *QUICK, "--seeds", 2, "--out", tmp_path / "c", "--json"
    )
    assert {row["policy"] for row in last(done)["rows"]} == {"none", "run/tree"}
    assert "worst group" in done.stderr
    assert (tmp_path / "c" / "comparison.csv").read_text().count("\n") == 5

    done = invoke("train", folder, *QUICK, "--policy", out / "tree.json", "--out", tmp_path / "t", "--json")
    assert 0 <= last(done)["metrics"]["test"]["accuracy"] <= 1
    assert at.load(tmp_path / "t" / "policy.json") == tree

    done = invoke("compare", out, "--seeds", 1, "--out", tmp_path / "d", "--json")
    free, controls = FREE, ["usual practice, as long", "best free, as long", "best free, averaged"]
    assert [row["policy"] for row in last(done)["rows"]] == [*free, "run/tree", *controls, "search"]
    assert last(done)["rows"][0]["test"] == last_of(tmp_path / "c")["rows"][0]["test"]
    cost = {row["policy"]: row["cost"] for row in last(done)["rows"]}
    assert max(abs(cost[name] - found["cost"]["training_equivalents"]) for name in controls) < 0.8
    assert cost["search"] == pytest.approx(found["cost"]["training_equivalents"], abs=0.8)
    assert "At the same cost, search is " in done.stderr
    with pytest.raises(AugtreeError, match="--steps must be left out: data and task are those of"):
        invoke("compare", out, "--steps", 5)

    listed = invoke("runs", tmp_path, "--json")
    assert {(run["kind"], run["status"]) for run in last(listed)["runs"]} == {
        (kind, "done") for kind in ("search", "compare", "train")
    }


def test_a_stopped_search_is_resumed_from_the_command_line(folder, tmp_path):
    arguments = ["search", folder, *QUICK, "--depth", 2, "--space", "images", "--check", 0]
    whole = tmp_path / "whole"
    assert invoke(*arguments, "--out", whole).exit_code == 0
    code, text, trace = interrupted([*map(str, arguments), "--out", str(tmp_path / "part")])
    assert code == 130, trace
    assert f"augtree resume {tmp_path / 'part'}" in text
    assert "Traceback" not in trace
    assert not (tmp_path / "part" / "tree.json").exists()
    assert "not done" in invoke("runs", tmp_path).stdout
    assert invoke("resume", tmp_path / "part").exit_code == 0
    for name in ("tree.json", "mixture.json", "model.safetensors"):
        assert (tmp_path / "part" / name).read_bytes() == (whole / name).read_bytes()


def interrupted(arguments):
    """A command that gets Ctrl-C after its second unit of work, also where tests run in a shell's background."""
    process = subprocess.run(
        [sys.executable, "-m", "augtree", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "AUGTREE_FAULT": "unit.recorded:2:SIGINT"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # there it is ignored, and would stay so
    )
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "nowhere"], "nowhere"),
        (["search", "digits", "--scorer", "coldown"], "did you mean cooldown"),
        (["search", "digits", "--space", "all"], "--space must be one of"),
        (["search", "digits", "--space", "graphs"], "space must work on images"),
        (["search", "digits", "--budget", "soon"], "--budget must be a time"),
        (["search", "digits", "--probabilities", "0.5,2"], "--probabilities must be a number in"),
        (["search", "digits", "--probabilities", "much"], "--probabilities must be a number"),
        (["search", "digits", "--preprocess", "turn"], "--preprocess must be one of"),
        (["search", "digits", "--model", "wrn-17-4"], r"must be 6n \+ 4"),
        (["search", "digits", "--metric", "acuracy"], "did you mean accuracy"),
        (["search", "digits", "--val", "4"], "at least 8 validation samples"),
        (["compare", "digits", "nonne"], "did you mean none"),
        (["train", "digits", "--policy", "missing.json"], "no such file"),
        (["resume", "nowhere"], "must be the folder of a run"),
    ],
)
def test_bad_arguments_get_one_clear_line_and_leave_nothing(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AugtreeError, match="(?s)" + message):
        invoke(*arguments, *([] if arguments[0] == "resume" else ["--steps", 2]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "--scorer", "coldown"], "did you mean cooldown"),
        (["search", "--set", "nothing=1"], "--set must be NAME=VALUE"),
        (["search", "--set", "looks=0.6,0.3"], "looks must be a tuple of increasing lengths"),
        (["search", "--space", "imagess"], r"--space must be one of .* \(did you mean images\?\)"),
        (["search", "--budget", "soon"], "--budget must be a time"),
        (["search", "--probabilities", "0.5,2"], "--probabilities must be a number in"),
        (["search", "--check", "-1"], "--check must be a number in"),
        (["search", "--method", "guess"], "--method must be one of greedy, exhaustive"),
        (
            ["search", "--method", "exhaustive", "--scorer", "density"],
            "exhaustive needs the scorer retrain",
        ),
        (["search", "--seed", "-1"], "--seed must be a whole number"),
        (["search", "--model", "wrn-17-4"], r"must be 6n \+ 4"),
        (["search", "--lr", "-1"], "--lr must be a number in"),
        (["search", "--device", "abacus"], "device must be auto, cpu"),
        (["search", "--weights", "missing.safetensors"], "--weights must be an existing file"),
        (["search", "--out", "file"], r"--out must be a folder that can be made \(Not a directory\)"),
        (["search", "--out", "file/below"], r"--out must be a folder that can be made \(Not a directory\)"),
        (["search", "--out", "."], "must be an empty folder or that of the same run, got compared in it"),
        (["search", "--out", "compared"], r"compared holds another run \(a compare, not a search\)"),
        (["compare", "nonne"], "did you mean none"),
        (["compare", "compared"], "compared: a folder must be that of a run with a policy"),
        (["compare", "--train-on", "test"], "--train-on must be one of train, train\\+val"),
        (["compare", "--out", "file"], "--out must be a folder that can be made"),
        (["train", "--policy", "missing.json"], "no such file"),
        (["train", "--out", "file"], "--out must be a folder that can be made"),
        (["train", "--metric", "acuracy"], "did you mean accuracy"),
    ],
)
def test_options_are_checked_before_the_data_is_read(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(options, "data_set", lambda **_: pytest.fail("the data was read"))
    (tmp_path / "file").write_text("")
    (tmp_path / "compared").mkdir()
    (tmp_path / "compared" / "spec.json").write_text('{"version": 1, "kind": "compare"}')
    command, *rest = arguments
    with pytest.raises(AugtreeError, match=message):
        invoke(command, "digits", *rest)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["compared", "file", "spec.json"]


def test_runs_are_listed_where_there_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("runs").stdout == "No runs in runs.\n"
    with pytest.raises(AugtreeError, match="folder must be an existing folder, got 'nope'"):
        invoke("runs", "nope")


def test_a_policy_by_itself_is_compared_with_none(folder, tmp_path):
    done = invoke("compare", folder, "randaugment", *QUICK, "--seeds", 1, "--out", tmp_path / "c", "--json")
    assert [row["policy"] for row in last(done)["rows"]] == ["none", "randaugment"]


def test_the_budget_is_checked_before_a_run_goes_on(tmp_path):
    with pytest.raises(AugtreeError, match="budget must be a time"):
        invoke("resume", tmp_path / "nowhere", "--budget", "soon")


def test_a_run_s_folder_is_a_policy_too(folder, tmp_path):
    tree = at.Tree().with_node(1, at.spaces.images()["Invert", 0.2], p=0.5)
    (tmp_path / "run").mkdir()
    tree.save(tmp_path / "run" / "tree.json")
    done = invoke(
        "compare", folder, "none", tmp_path / "run", *QUICK, "--seeds", 1, "--out", tmp_path / "c", "--json"
    )
    assert [row["policy"] for row in last(done)["rows"]] == ["none", "run"]
