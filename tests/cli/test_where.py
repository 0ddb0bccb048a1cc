"""The options that say where a run's parts are done."""

import json

import pytest

from augtree.cli.where import WHERE
from augtree.errors import ArgumentError
from augtree.runs.executors import Processes, Ray, Serial
from support.commands import invoke, last

DIGITS = ["digits", "--train", 60, "--val", 60, "--model", "cnn", "--steps", 2, "--batch-size", 16]


def where(**given):
    return WHERE.value(dict.fromkeys(("on", "address", "gpus_per_task", "workers")) | given)


def test_options_become_an_executor():
    assert where() == {"workers": 1}
    assert where(workers=2) == {"workers": 2}
    assert where(on="serial") == where(on="serial", workers=1) == {"executor": Serial()}
    assert where(on="processes", workers=3) == {"executor": Processes(3)}
    assert where(on="ray") == {"executor": Ray()}
    assert where(on="ray", address="auto", gpus_per_task=0.5, workers=4) == {
        "executor": Ray(workers=4, address="auto", gpus_per_task=0.5)
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"on": "slurm"}, "--on must be one of serial, processes, ray"),
        ({"address": "auto"}, "--address must be left out without --on ray"),
        ({"on": "processes", "gpus_per_task": 0.5}, "--gpus-per-task must be left out without --on ray"),
        ({"on": "serial", "workers": 2}, "--workers must be left out with --on serial"),
        ({"on": "ray", "address": "head"}, "--address must be auto, local or HOST:PORT"),
        ({"on": "processes", "workers": 0}, "--workers must be a whole number"),
    ],
)
def test_rules_name_the_option(given, problem):
    with pytest.raises(ArgumentError, match=problem):
        where(**given)


def test_a_comparison_runs_elsewhere_and_is_resumed_anywhere(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(Processes, "pool", lambda self, work: begun.append(self) or Serial().pool(work))
    monkeypatch.setattr(Processes, "remote", False)
    whole = invoke("compare", *DIGITS, "--seeds", 1, "--out", tmp_path / "one", "--json")
    other = invoke("compare", *DIGITS, "--seeds", 1, "--workers", 2, "--out", tmp_path / "two", "--json")
    assert begun == [Processes(2)]
    assert {**last(other), "out": ""} == {**last(whole), "out": ""}
    again = invoke("resume", tmp_path / "two", "--on", "processes", "--workers", 3, "--json")
    assert begun[1:] == [Processes(3)]
    assert last(again) == last(other)
    assert json.loads((tmp_path / "one" / "spec.json").read_text()) == json.loads(
        (tmp_path / "two" / "spec.json").read_text()
    )


def test_a_training_has_no_parts_that_run_elsewhere(tmp_path):
    assert invoke("train", *DIGITS, "--out", tmp_path).exit_code == 0
    with pytest.raises(ArgumentError, match="executor must be left out for a run of the kind train"):
        invoke("resume", tmp_path, "--on", "ray")
