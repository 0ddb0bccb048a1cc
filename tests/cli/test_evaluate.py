import json

import numpy as np
import pytest
import torch
from PIL import Image

import augtree as at
from augtree.errors import ArgumentError
from support.commands import invoke, last

QUICK = ["--task", "contrastive", "--model", "cnn", "--steps", 2, "--batch-size", 16, "--dim", 8, "--device", "cpu"]


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
    assert found["seen"] == 0  # the run has seen no test sample
    assert "simclr: Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)" in done.stderr
    whole = (tmp_path / "e" / "evaluation.csv").read_bytes()
    (tmp_path / "e" / "evaluation.csv").unlink()
    assert "random encoder" in invoke("resume", tmp_path / "e").stdout
    assert (tmp_path / "e" / "evaluation.csv").read_bytes() == whole
    found = last(invoke("evaluate", run, "--protocol", "linear", "--seeds", 1, "--out", tmp_path / "f", "--json"))
    assert [line["row"] for line in found["lines"]] == ["random encoder", "none", "simclr", "run"]


def test_methods_by_name(folder, tmp_path, quick_disk):
    names = ["none", "lisa", "Scale"]
    found = last(invoke("compare", folder, *names, *QUICK, "--seeds", 1, "--out", tmp_path / "c", "--json"))
    assert [line["policy"] for line in found["lines"]] == names
    how = [*QUICK, "--protocol", "linear", "--seeds", 1]
    found = last(invoke("evaluate", folder, *names, *how, "--out", tmp_path / "e", "--json"))
    assert [line["row"] for line in found["lines"]] == ["random encoder", *names]
    assert "lisa: trained with the labels of the training samples, unlike other rows." in found["notes"]
    assert found["seen"] == 0  # test samples alone are judged
    with pytest.raises(ArgumentError, match="policies/longer must be a policy, .*: controls are for compare"):
        invoke("evaluate", folder, "longer", *how, "--out", tmp_path / "f")


def test_a_forest(folder, tmp_path):
    quick = ["--method", "paper", "--set", "train=0.5", "--depth", 1, "--space", "simclr"]
    last(invoke("forest", folder, *QUICK, *quick, "--alpha", 1, "--out", tmp_path / "f", "--json"))
    assert set(at.load(tmp_path / "f" / "forest.json").groups) == {"x", "y"}


@pytest.mark.parametrize("groups", [[], ["--groups", "column:camera"]])
def test_a_forest_of_groups_that_were_merged_since_few_have_labels(groups, tmp_path):
    """With all labels no group is too small, and none would be merged."""
    rng, place = np.random.default_rng(0), tmp_path / "mine"
    place.mkdir()
    lines = ["path,label,group,camera,split"]
    for i in range(120):
        grey = rng.integers(0, 100, (10, 10, 3)) + 30 * (i % 2) + 20 * (i // 2 % 3)
        Image.fromarray(grey.astype(np.uint8)).save(place / f"{i}.png")
        lines.append(f"{i}.png,{'ab'[i % 2]},{'xyz'[i // 2 % 3]},{'uvw'[i // 2 % 3]},{split_of(i // 6)}")
    (place / "index.csv").write_text("\n".join(lines) + "\n")
    run = tmp_path / "run"
    quick = ["--method", "paper", "--set", "train=0.5", "--depth", 1, "--space", "simclr"]
    few = ["--labels", 5, "--merge", "nearest", *groups]
    last(invoke("forest", place, *few, *QUICK, *quick, "--alpha", 1, "--out", run, "--json"))
    assert {len(name) for name in at.load(run / "forest.json").groups} == {1, 3}  # one group alone, and two merged
    ask = ["--protocol", "tree-paper", "--seeds", 1, "--json"]
    found = last(invoke("evaluate", run, *ask, "--out", tmp_path / "e"))
    assert found["lines"][-1]["row"] == "run"
    assert not any("failed" in row for row in found["rows"])
    content = (tmp_path / "e" / "evaluation.json").read_bytes()
    (tmp_path / "e" / "evaluation.json").unlink()
    last(invoke("resume", tmp_path / "e", "--json"))
    assert (tmp_path / "e" / "evaluation.json").read_bytes() == content


def split_of(i):
    return "train" if i < 11 else "val" if i < 15 else "test"


def a_run(place, data, **more):
    """The folder of a search with labels, as far as others read it."""
    place.mkdir()
    task = at.tasks.Contrastive(model="cnn", steps=2, batch_size=16, dim=8, device="cpu", **more)
    about = {"name": data.name, "source": dict(data.source), "fingerprint": data.fingerprint}
    spec = {"version": 1, "kind": "search", "data": about, "task": task.spec()}
    (place / "spec.json").write_text(json.dumps(spec))
    at.save(at.Tree().with_node(1, at.transforms.Cutout(0.4), p=0.5), place / "tree.json")
    return place


def test_a_run_with_few_labels_is_evaluated_on_those_it_has_not_seen(folder, tmp_path):
    data = at.data.load(folder, labels=16)
    run, count = a_run(tmp_path / "run", data), 16 + data.counts["val"]
    done = invoke("evaluate", run, "--protocol", "tree-paper", "--seeds", 1, "--out", tmp_path / "e", "--json")
    found = last(done)
    assert found["seen"] == count
    assert {row["fitted"] + row["tested"] for row in found["rows"]} == {80 - count}
    told = f"{80 - count} of 80 samples are in folds, {count} whose labels a search has seen are in none"
    assert told in found["notes"][-1]
    found = last(invoke("evaluate", run, "--seeds", 1, "--out", tmp_path / "linear", "--json"))
    assert (found["protocol"], found["rows"][0]["fitted"]) == ("linear", 16)  # without folds, its labels are all


def test_no_known_labels_are_noted_and_a_stopped_evaluation_goes_on(folder, tmp_path):
    run = a_run(tmp_path / "a", at.data.load(folder, labels=8))
    done = invoke("evaluate", folder, run, *QUICK, "--protocol", "tree-paper", "--known-labels", "none",
                  "--seeds", 1, "--out", tmp_path / "e", "--json")  # fmt: skip
    found = last(done)
    assert [note.startswith(f"{run} were made with labels") for note in found["notes"]].count(True) == 1
    content = (tmp_path / "e" / "evaluation.json").read_bytes()
    (tmp_path / "e" / "evaluation.json").unlink()
    last(invoke("resume", tmp_path / "e", "--workers", 2, "--json"))
    assert (tmp_path / "e" / "evaluation.json").read_bytes() == content


def test_a_protocol_s_own_settings_stay_unless_others_are_asked_for(tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        "augtree.cli.evaluate.evaluate_policies", lambda data, task, *_, **more: seen.update(task=task) or 1 / 0
    )
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
        (["evaluate", "digits", "--protocol", "graphcl"], "protocol must be one of linear, svm for images"),
        (["evaluate", "digits", "--protocol", "graphcl", "--samples", "train"], "--samples must be all with the fol"),
        (
            ["evaluate", "digits", "--known-labels", "some"],
            "--known-labels must be auto, none, train\\+val or the folder",
        ),
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


def test_a_run_that_is_not_contrastive_says_how_its_policy_is_evaluated(folder, tmp_path):
    quick = ["--model", "cnn", "--steps", 2, "--batch-size", 16, "--policy", "none"]
    assert invoke("train", folder, *quick, "--out", tmp_path / "t").exit_code == 0
    with pytest.raises(ArgumentError, match="data must be a data set, or a contrastive run: .*evaluate DATA"):
        invoke("evaluate", tmp_path / "t")
