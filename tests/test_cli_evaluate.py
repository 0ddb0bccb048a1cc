import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import augtree as at
from augtree.cli import app
from augtree.cli.evaluate import rows_of
from augtree.errors import ArgumentError

QUICK = ["--task", "contrastive", "--model", "cnn", "--steps", 2, "--batch-size", 16, "--dim", 8, "--device", "cpu"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def last(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures of two classes in two groups."""
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("mine")
    lines = ["path,label,group"]
    for i in range(80):
        grey = rng.integers(0, 100, (10, 10, 3)) + 120 * (i % 2)
        Image.fromarray(grey.astype(np.uint8)).save(place / f"{i}.png")
        lines.append(f"{i}.png,{'ab'[i % 2]},{'xy'[i // 2 % 2]}")
    (place / "index.csv").write_text("\n".join(lines) + "\n")
    return place


def test_search_compare_and_evaluate(folder, tmp_path):
    quick = ["--scorer", "density", "--set", "train=0.5"]
    run = tmp_path / "run"
    last(invoke("search", folder, *QUICK, *quick, "--space", "simclr", "--depth", 1, "--out", run, "--json"))
    spec = json.loads((run / "spec.json").read_text())["task"]
    assert (spec["task"], spec["dim"], spec["judge"], spec["batch_size"]) == ("contrastive", 8, "knn", 16)
    found = last(invoke("compare", run, "--seeds", 1, "--out", tmp_path / "compare", "--json"))
    assert {line["policy"] for line in found["lines"]} == {"none", "simclr", "run/tree"}
    done = invoke("evaluate", folder, "simclr", run, *QUICK, "--protocol", "linear", "--seeds", 1,
                  "--out", tmp_path / "e", "--json")  # fmt: skip
    found = last(done)
    assert [line["row"] for line in found["lines"]] == ["random encoder", "simclr", "run"]
    assert found["seen"] == 64  # the run's training and validation samples
    assert "simclr: Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)" in done.stdout
    whole = (tmp_path / "e" / "evaluation.csv").read_bytes()
    (tmp_path / "e" / "evaluation.csv").unlink()
    assert "random encoder" in invoke("resume", tmp_path / "e").stdout
    assert (tmp_path / "e" / "evaluation.csv").read_bytes() == whole
    found = last(invoke("evaluate", run, "--protocol", "linear", "--seeds", 1, "--out", tmp_path / "f", "--json"))
    assert [line["row"] for line in found["lines"]] == ["random encoder", "none", "simclr", "run"]


def test_a_forest(folder, tmp_path):
    quick = ["--scorer", "density", "--set", "train=0.5", "--depth", 1, "--space", "simclr", "--check", 0]
    last(invoke("forest", folder, *QUICK, *quick, "--alpha", 1, "--out", tmp_path / "f", "--json"))
    assert set(at.load(tmp_path / "f" / "forest.json").groups) == {"x", "y"}


def test_a_protocol_s_own_settings_stay_unless_others_are_asked_for(tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr("augtree.comparison.evaluate", lambda data, task, *_, **more: seen.update(task=task) or 1 / 0)
    graphs = [ring(6 + i % 4) for i in range(40)]
    monkeypatch.setattr(
        "augtree.cli.options.read", lambda *_, **__: at.data.from_arrays(graphs, np.arange(40) % 2, split=None)
    )
    with pytest.raises(ZeroDivisionError):
        invoke("evaluate", "mine", "--epochs", 3, "--device", "cpu")
    assert (seen["task"].epochs, seen["task"].lr, seen["task"].options["hidden"]) == (3, 0.01, 32)


def ring(n):
    from torch_geometric.data import Data

    there = torch.arange(n)
    return Data(x=torch.ones(n, 1), edge_index=torch.stack([there, (there + 1) % n]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "digits", "--protocol", "mine"], "protocol must be one of graphcl"),
        (["evaluate", "digits", "--seen", "some"], "--seen must be auto, none, train\\+val or the folder"),
        (["evaluate", "digits", "--task", "classification"], "--task must be contrastive"),
        (["evaluate", "digits", "--label-smoothing", "0.1"], "--label-smoothing must be left out for --task contra"),
        (["search", "digits", "--temperature", "0.1"], "--temperature must be left out for --task classification"),
        (["search", "digits", "--task", "guessing"], "--task must be one of classification, contrastive"),
        (["search", "digits", "--task", "contrastive", "--judge", "eye"], "judge must be one of knn"),
    ],
)
def test_bad_arguments_get_one_clear_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=message):
        invoke(*arguments)
    assert not list(tmp_path.iterdir())


def test_whose_labels_were_seen(folder):
    data = at.data.load(folder)
    assert rows_of("auto", data) is None
    assert rows_of("none", data) == []
    assert len(rows_of("train+val", data)) == 64
