"""`augtree train`: one model with a policy, to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, Seed, app, finish, new_folder, say
from augtree.cli.console import Console
from augtree.cli.options import with_options
from augtree.comparison import train as train_model
from augtree.files import check_folder
from augtree.policies.presets import find


def check_train(policy: str, out: Path | None) -> None:
    """Raise for options that no training can have."""
    find(policy)
    if out is not None:
        check_folder(out)


@app.command()
@with_options(check=check_train)
def train(
    data: Any,
    task: Any,
    policy: Annotated[str, typer.Option(help="A policy file or name.")] = "none",
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train one model with a policy and keep it."""
    folder = out or new_folder("train")
    with Console() as watch:
        result = train_model(data, task, policy, seed=seed, out=folder, watch=watch)
    for split, figures in result.metrics.items():
        say(f"{split}: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    say(f"The model: {folder}/model.safetensors; its training options: {folder}/training.json")
    finish({"out": str(folder), "metrics": result.metrics}, as_json)
