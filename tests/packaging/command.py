"""Run by the interpreter of a fresh environment with the wheel and its extra `cli`: a search, then a training."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

AUGTREE = Path(sys.executable).with_name("augtree")


def run(*arguments: str, folder: str) -> str:
    """What the command prints."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [AUGTREE, *arguments], cwd=folder, env=surroundings, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        small = ["--train", "100", "--val", "100", "--model", "cnn", "--steps", "40"]
        found = json.loads(run("search", "digits", *small, "--out", "run", "--json", folder=folder))
        trained = json.loads(run("train", "run", "--out", "trained", "--json", folder=folder))
        assert Path(folder, "run", "tree.json").exists()
        print(f"verdict: {found['verdict'][:60]}...; test accuracy {trained['metrics']['test']['accuracy']:.3f}")
