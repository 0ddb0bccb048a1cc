"""`augtree train`, and how commands end that are stopped."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
import typer

import augtree as at
from augtree.cli.app import stoppable
from augtree.errors import AugtreeError
from augtree.runs import faults
from support.commands import QUICK, invoke, last

DIGITS = ["digits", "--labels", 60, "--val", 40]
TRAIN = ["train", *DIGITS, *QUICK, "--policy", "trivialaugment"]


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


def test_a_training_is_logged(tmp_path):
    pytest.importorskip("tensorboard")
    for number, place in enumerate(("log", "file")):
        (tmp_path / "file").write_text("")
        done = invoke(*TRAIN, "--out", tmp_path / str(number), "--log", f"tensorboard:{tmp_path / place}")
        assert done.exit_code == 0
        failed = [line for line in done.output.splitlines() if "watches the run no more" in line]
        assert len(failed) == number
    assert [path.name.startswith("events.out") for path in (tmp_path / "log").iterdir()] == [True]


@pytest.mark.parametrize("value", ["tensorboard", "tensorboard:", "mlflow:runs", "logs"])
def test_an_unknown_log_is_refused(value, tmp_path):
    with pytest.raises(AugtreeError, match="--log must be tensorboard:DIR, got"):
        invoke(*TRAIN, "--out", tmp_path / "run", "--log", value)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def sigterm():
    """Signals that no command has handled fail the test, and do not end it."""
    unhandled = []
    before = signal.signal(signal.SIGTERM, lambda *_: unhandled.append(1))
    yield
    signal.signal(signal.SIGTERM, before)
    assert unhandled == []


def stop(monkeypatch, fault):
    """Let commands in this process be stopped at a named point."""
    monkeypatch.setattr(faults, "passed", type(faults.passed)())
    monkeypatch.setenv("AUGTREE_FAULT", fault)


def test_a_training_that_is_terminated_says_how_to_go_on_and_ends_with_the_same_bytes(tmp_path):
    part, whole = tmp_path / "part", tmp_path / "whole"
    done = subprocess.run(
        [sys.executable, "-m", "augtree", *map(str, TRAIN), "--out", str(part)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "AUGTREE_FAULT": "unit.recorded:2:SIGTERM"},
    )
    assert done.returncode == 143, done.stderr
    assert f"Stopped. Kept in {part}: 2 finished parts of the work; only the part under way is lost." in done.stdout
    assert f"Go on with: augtree resume {part}" in done.stdout
    assert "Traceback" not in done.stderr
    assert f"{part}: train on " in invoke("runs", tmp_path).stdout
    resumed = invoke("resume", part, "--json")
    trained = invoke(*TRAIN, "--out", whole, "--json")
    assert last(resumed) == {**last(trained), "out": str(part)}
    for name in ("model.safetensors", "policy.json", "training.json"):
        assert (part / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("command", ["train", "search", "compare", "evaluate", "forest"])
def test_every_command_that_is_stopped_says_what_is_kept(tmp_path, monkeypatch, sigterm, command):
    kind, code = ("SIGINT", 130) if command in ("train", "compare") else ("SIGTERM", 143)
    stop(monkeypatch, f"unit.recorded:1:{kind}")
    done = invoke(command, *DIGITS, *QUICK, "--out", tmp_path)
    assert done.exit_code == code, done.output
    assert f"Stopped. Kept in {tmp_path}: 1 finished part of the work; " in done.output
    assert f"Go on with: augtree resume {tmp_path}" in done.output


def test_a_resumed_run_can_be_stopped_too(tmp_path, monkeypatch, sigterm):
    for kept in (1, 2):
        stop(monkeypatch, "unit.recorded:1:SIGTERM")
        command = TRAIN if kept == 1 else ["resume"]
        done = invoke(*command, *(["--out"] if kept == 1 else []), tmp_path)
        assert done.exit_code == 143
        assert f"Kept in {tmp_path}: {kept} finished part" in done.output


def test_a_command_that_is_stopped_before_its_run_began_says_so(tmp_path, capsys):
    with pytest.raises(typer.Exit) as caught, stoppable(tmp_path / "run"):
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert "Stopped before the run began, nothing is kept" in capsys.readouterr().out


def test_workers_end_with_their_command(tmp_path, sigterm):
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    worker.start()
    with pytest.raises(typer.Exit) as caught, stoppable(tmp_path):
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.exit_code == 143
    worker.join(10)
    assert worker.exitcode == -signal.SIGTERM


def test_the_handler_of_before_is_back_afterwards(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with stoppable(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_training_is_replaced_only_with_overwrite(tmp_path):
    first = last(invoke(*TRAIN, "--out", tmp_path, "--json"))
    assert last(invoke(*TRAIN, "--out", tmp_path, "--json")) == first
    with pytest.raises(AugtreeError, match=r"differs in .*/seed\): choose another --out \(--overwrite replaces"):
        invoke(*TRAIN, "--seed", 1, "--out", tmp_path)
    second = last(invoke(*TRAIN, "--seed", 1, "--out", tmp_path, "--overwrite", "--json"))
    assert second["metrics"] != first["metrics"]
    assert json.loads((tmp_path / "training.json").read_text())["metrics"] == second["metrics"]


@pytest.mark.parametrize("command", ["train", "search", "compare", "evaluate", "forest", "demo"])
def test_no_command_works_in_a_folder_with_another_run_or_with_foreign_files(tmp_path, command):
    run, model, mine = tmp_path / "run", tmp_path / "model", tmp_path / "mine"
    for folder, name, text in (
        (run, "spec.json", '{"version": 1, "kind": "fit"}'),
        (model, "model.safetensors", "a model"),
        (mine, "forest.json", "mine"),
    ):
        folder.mkdir()
        (folder / name).write_text(text)
        data = [] if command == "demo" else DIGITS
        with pytest.raises(
            AugtreeError, match="holds another run|must be an empty folder|must be a new folder or that of"
        ):
            invoke(command, *data, "--out", folder)
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_text() == text


def test_the_policy_of_a_run_is_trained_with_unless_another_is_named(tmp_path):
    run = ["search", *DIGITS, *QUICK, "--depth", 1, "--budget", 1, "--out", tmp_path / "run"]
    assert invoke(*run).exit_code == 0
    done = invoke("train", tmp_path / "run", "--out", tmp_path / "own")
    assert f"Policy: {tmp_path / 'run'}." in done.stdout
    assert at.load(tmp_path / "own" / "policy.json") == at.load(tmp_path / "run" / "tree.json")
    assert "Policy: none." in invoke("train", tmp_path / "run", "--policy", "none", "--out", tmp_path / "none").stdout


def test_steps_and_epochs_exclude_each_other():
    with pytest.raises(AugtreeError, match="--epochs must be left out where --steps is given"):
        invoke("train", "digits", "--steps", 4, "--epochs", 2)
