"""`augtree train`: one model with a policy, to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, Seed, app, finish, new_folder, say, stoppable
from augtree.cli.logs import Log
from augtree.cli.options import with_options
from augtree.comparison import Trained
from augtree.comparison import train as train_model
from augtree.comparison.train import check_training_folder
from augtree.policies.presets import find
from augtree.progress import Console
from augtree.runs.store import read_spec

WITH_POLICY = ("search", "forest", "fit", "train")
"""The kinds of runs that end with a policy."""


def check_train(policy: str | None, out: Path | None, overwrite: bool) -> None:
    """Raise for options that no training can have."""
    if policy is not None:
        find(policy)
    check_training_folder(out, overwrite=overwrite)


@app.command()
@with_options(check=check_train)
def train(
    data: Any,
    task: Any,
    policy: Annotated[
        str | None, typer.Option(help="A policy file, a run or a name (default: none; for a run, its own policy).")
    ] = None,
    out: Out = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew where --out holds another training, which is deleted.")
    ] = False,
    seed: Seed = 0,
    log: Log = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train one model with a policy and keep it."""
    folder = out or new_folder("train")
    policy = policy or policy_of_run(run)
    say(f"Policy: {policy}.")
    with stoppable(folder), Console(say) as console:
        result = train_model(
            data, task, policy, seed=seed, out=folder, overwrite=overwrite, watch=[console, *(log or ())]
        )
    print_trained(result, folder)
    finish({"out": str(folder), "metrics": result.metrics}, as_json)


def policy_of_run(run: Path | None) -> str:
    """The policy of the run whose data is trained on, or none."""
    return "none" if run is None or read_spec(run)["kind"] not in WITH_POLICY else str(run)


def print_trained(result: Trained, folder: Path) -> None:
    """Print the metrics and the names of the files."""
    for split, figures in result.metrics.items():
        say(f"{split}: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    say(f"The model: {folder}/model.safetensors; its training options: {folder}/training.json")
