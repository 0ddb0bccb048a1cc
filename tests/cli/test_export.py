"""`augtree export`: policies as code, models as files."""

import pytest

import augtree as at
from augtree.errors import ArgumentError, RunError
from support.blobs import blobs, task
from support.by_hand import by_hand
from support.commands import invoke, last
from support.exported import noise, run


def test_a_policy_is_printed_or_written(tmp_path):
    by_hand().save(tmp_path / "tree.json")
    printed = invoke("export", tmp_path / "tree.json", "--to", "python")
    assert printed.exit_code == 0
    pictures = noise(5, 3, 8, 8)
    done = run(printed.stdout)["Policy"]()(pictures, seed=1)
    assert done.equal(by_hand()(pictures, seed=1))
    out = tmp_path / "policy.py"
    assert last(invoke("export", tmp_path, "--to", "python", "--out", out, "--json"))["module"] == str(out)
    assert out.read_text() == printed.stdout == last(invoke("export", tmp_path, "--to", "python", "--json"))["source"]
    with pytest.raises(ArgumentError, match=r"--out must be a new file \(--overwrite replaces"):
        invoke("export", tmp_path, "--to", "python", "--out", out)
    assert invoke("export", tmp_path, "--to", "torchvision", "--out", out, "--overwrite").exit_code == 0
    assert "torchvision" in out.read_text()


def test_a_model_is_written_and_its_loading_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at.train(blobs(), task(model="cnn", steps=2), "randaugment", out="run")
    done = invoke("export", "run", "--model", "--to", "safetensors")
    assert done.exit_code == 0
    assert "safetensors.torch.load_file('model.safetensors')" in done.stdout
    assert (tmp_path / "model.safetensors").is_file()
    with pytest.raises(ArgumentError, match=r"--out must be a new file \(--overwrite"):
        invoke("export", "run", "--model", "--to", "safetensors")
    again = last(invoke("export", "run", "--model", "--to", "safetensors", "--overwrite", "--json"))
    assert again == {"policy": "run", "to": "safetensors", "model": "model.safetensors"}


def test_targets_are_those_of_the_thing(tmp_path):
    for arguments, message in (
        (("randaugment",), "--to must be given: python, torchvision, albumentations"),
        (("randaugment", "--to", "onnx"), "--to must be given with --model for safetensors, torch-export, onnx"),
        (("run", "--model", "--to", "python"), "--to must be given without --model for python"),
        (("randaugment", "--to", "pyton"), "--to must be one of python, torchvision, albumentations"),
        (("run", "--model", "--to", "onx"), r"--to must be one of .*did you mean onnx"),
        (("run", "--model"), "--to must be given: safetensors, torch-export, onnx"),
    ):
        with pytest.raises(ArgumentError, match=message):
            invoke("export", *arguments)
    with pytest.raises(RunError, match="must be the folder of a run with a finished model"):
        invoke("export", tmp_path, "--model", "--to", "onnx", "--out", tmp_path / "m.onnx")
