import json
import shlex
from types import SimpleNamespace

import pytest

import augtree as at
from augtree.report import command
from augtree.report.gather import gather
from support.commands import invoke
from support.reports import space, task


def begun(monkeypatch, tmp_path, *words):
    """The specification with which a command begins a run, which is stopped then."""
    kept = []

    def stop(out, spec, *_):
        kept.append(json.loads(json.dumps(spec)))
        raise KeyboardInterrupt

    for module in ("search.search", "forests.search"):
        monkeypatch.setattr(f"augtree.{module}.begin_run", stop)
    invoke(*words)
    return kept[0]


def specification(folder):
    spec = json.loads((folder / "spec.json").read_text())
    del spec["begins"]
    return spec


@pytest.mark.parametrize(
    "words",
    [
        ["search", "digits", "--train", "60", "--val", "60", "--budget", "1", "--set", "looks=0.4,0.6"],
        ["search", "digits", "--val", "60", "--space", "images", "--task", "contrastive", "--no-deterministic"],
        ["forest", "digits", "--train", "60", "--val", "60", "--alpha", "3", "--target", "worst", "--plain"],
    ],
)  # fmt: skip
def test_the_command_makes_the_same_run(words, tmp_path, monkeypatch):
    quick = ["--model", "cnn", "--steps", "4", "--batch-size", "16", "--seed", "3"]
    first = begun(monkeypatch, tmp_path, *words, *quick, "--out", tmp_path / "a")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(first))
    said = command.again(gather(folder))
    assert not said.note
    again = shlex.split(said.command)
    assert again[0] == "augtree"
    monkeypatch.chdir(tmp_path)
    assert begun(monkeypatch, tmp_path, *again[1:]) == first
    assert len(again) < 30  # what is the default is not said


def test_what_no_option_can_say_is_made_from_the_specification(made, tmp_path, monkeypatch):
    found = command.again(gather(made("search")))  # its space has no name
    assert found.command == f"mkdir again && cp {made('search')}/spec.json again/ && augtree resume again"
    assert found.note == "It is made from its specification, since its space has no name."
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "spec.json").write_bytes((made("train") / "spec.json").read_bytes())
    at.resume(tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (
        made("train") / "model.safetensors"
    ).read_bytes()


def test_data_in_arrays_and_own_models_must_be_given_again(made):
    assert "data=..." in command.again(gather(made("fit"))).command
    spec = {**gather(made("search")).spec}
    spec["task"] = {**spec["task"], "model": {"function": "net"}}
    record = SimpleNamespace(spec=spec, folder=made("search"), facts={}, kind="search")
    assert "task=..." in command.again(record).command


def test_a_budget_that_is_no_part_of_the_specification_is_said(tmp_path):
    data = at.data.load("digits", train=60, val=60)
    how = {"scorer": "density", "probabilities": (1.0,), "budget": 3, "depth": 1, "check": 0}
    at.search_tree(data, task(steps=4), list(space())[1:], **how, out=tmp_path / "a")
    assert command.again(gather(tmp_path / "a")).command.endswith("augtree resume again --budget 3.0")
