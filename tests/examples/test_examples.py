"""Every example runs and does what it says: in this process, or in another where its package brings its own warnings.

`make test-integrations` installs all the packages, and there a missing one is a failure.
"""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPLETE = "AUGTREE_INTEGRATIONS" in os.environ
ACCURACY = r"test accuracy (0\.[89]\d*|1\.0+)$"
LIGHT = {
    "contrastive": r"searched +\| 0\.[6-9]",
    "dataset_transform": r"^(6|7|8)\d\d of 1078 pictures were changed$",
    "forest_groups": r"augmented \[2, 1, 8, 8\]$",
    "own_loss": r"^accuracy 0\.\d+ with the loss of focal, gamma 1\.5$",
    "own_model": ACCURACY,
    "own_transform": r"predictions for such samples keep",
    "pyg_loop": ACCURACY,
    "resume": r"^the same policy and model: True$",
    "search_folder": r"^accuracy on validation data 0\.[89]",
    "search_graphs": r"accuracy 1\.0000 on the validation data",
    "semisupervised": r"with unlabelled pictures: test accuracy 0\.[6-9]",
    "tensorboard_log": r"'events\.out\.tfevents",
    "training_loop": ACCURACY,
}
"""What each prints."""
NEEDS = {"tensorboard_log": "tensorboard"}
HEAVY = {
    "huggingface_trainer": ("transformers datasets accelerate", ACCURACY),
    "lightning_loop": ("lightning", ACCURACY),
    "mlflow_log": ("mlflow", r"^1\d metrics, \d\d parameters; accuracy 0\.\d+$"),
    "timm_loop": ("timm torchvision", ACCURACY),
    "wandb_log": ("wandb", r"accuracy 0\.\d+, \d\d options$"),
}
"""The packages that each needs, and what it prints."""
LAUNCH = """
import runpy, sys
sys.path.insert(0, sys.argv[2])
from torchvision_beside_cpu_torch import prepare
prepare()
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def need(packages):
    missing = [name for name in packages.split() if find_spec(name) is None]
    assert not (missing and COMPLETE), missing
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: make test-integrations")


def test_every_example_is_run_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*LIGHT, *HEAVY}
    assert {*re.findall(r"\((\w+)\.py\)", (EXAMPLES / "README.md").read_text())} == names


@pytest.mark.parametrize("name", LIGHT)
def test_an_example_runs(name, tmp_path, monkeypatch, capfd):
    need(NEEDS.get(name, ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert re.search(LIGHT[name], capfd.readouterr().out, flags=re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", HEAVY)
def test_an_example_with_another_framework_runs(name, tmp_path):
    packages, expected = HEAVY[name]
    need(packages)
    command = [sys.executable, "-c", LAUNCH, EXAMPLES / f"{name}.py", EXAMPLES.parent / "benchmarks"]
    surroundings = {"WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=surroundings, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout, flags=re.MULTILINE), done.stdout
    assert "watches the run no more" not in done.stderr


def test_the_lines_in_the_documentation_are_those_of_the_examples():
    text = (EXAMPLES.parent / "docs" / "loops.md").read_text()
    parts = re.findall(r"\(\.\./examples/(\w+)\.py\)[^`]*?```py\n(.*?)```", text, flags=re.DOTALL)
    assert {name for name, _ in parts} >= {"lightning_loop", "timm_loop", "huggingface_trainer"}
    for name, code in parts:
        lines = {line.split("  #")[0].strip() for line in (EXAMPLES / f"{name}.py").read_text().splitlines()}
        for line in code.splitlines():
            assert line.split("  #")[0].strip() in lines | {"", "..."}, f"{name}: {line}"
