"""The options that say where a run's parts are done."""

import json
import pickle
from types import SimpleNamespace

import pytest

from augtree.cli.where import WHERE, executor_options
from augtree.comparison import resume
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
    for given, problem in {
        ("--on", "ray"): "--on must be left out for a run of the kind train, got 'ray'",
        ("--workers", 4): "--workers must be left out for a run of the kind train, got 4",
        ("--budget", 3): "--budget must be left out for a run of the kind train, got '3'",
    }.items():
        with pytest.raises(ArgumentError) as caught:
            invoke("resume", tmp_path, *given)
        assert str(caught.value) == problem
    with pytest.raises(ArgumentError, match="^executor must be left out for a run of the kind train"):
        resume(tmp_path, executor="serial")
    assert invoke("resume", tmp_path, "--workers", 1).exit_code == 0


@pytest.mark.parametrize("scorer", ["density", "retrain"])
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("--workers", 2), "--workers must be 1 with the scorer {}, which scores candidates in turn, got 2"),
        (("--on", "ray"), "--on must be serial with the scorer {}, which scores candidates in turn, got 'ray'"),
    ],
)
def test_scorers_without_workers_say_so_before_the_data_are_read(scorer, given, problem):
    with pytest.raises(ArgumentError) as caught:
        invoke("search", "no_such_data", "--scorer", scorer, *given)
    assert str(caught.value) == problem.format(scorer)


def test_such_a_search_is_not_resumed_with_workers_either(tmp_path):
    quick = ["--scorer", "density", "--depth", 1, "--check", 0, "--budget", 0.5]
    assert invoke("search", *DIGITS, *quick, "--on", "serial", "--out", tmp_path).exit_code == 0
    with pytest.raises(ArgumentError, match="^--workers must be 1 with the scorer density"):
        invoke("resume", tmp_path, "--workers", 2)


@pytest.mark.parametrize("command", ["search", "compare"])
def test_an_error_in_the_middle_of_a_run_names_the_option(command, tmp_path, monkeypatch):
    monkeypatch.setattr("augtree.runs.executors.ray.need_ray", lambda: SimpleNamespace(cloudpickle=pickle))
    with pytest.raises(ArgumentError, match="^--gpus-per-task must be 0 where this process trains on the CPU"):
        invoke(command, *DIGITS, "--out", tmp_path, "--on", "ray", "--gpus-per-task", 1)


def test_other_errors_stay_as_they_are():
    for field, name in {"address": "--address", "seeds": "seeds"}.items():
        with pytest.raises(ArgumentError) as caught, executor_options():
            raise ArgumentError(field, "must be another")
        assert str(caught.value) == f"{name} must be another"
