"""`augtree export`: a policy as code, or a finished model as a file, for use without augtree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Overwrite, app, check_new_file, finish, put, say
from augtree.errors import ArgumentError, one_of
from augtree.exports import export as export_policy
from augtree.exports import export_model
from augtree.exports.models import MODEL_TARGETS, loading_example
from augtree.exports.policies import TARGETS
from augtree.policies.presets import NAMED


@app.command()
def export(
    policy: Annotated[
        str, typer.Argument(help=f"A policy file, the folder of a run, or a name: {', '.join(NAMED)}.")
    ],
    to: Annotated[
        str | None,
        typer.Option(help=f"For a policy: {', '.join(TARGETS)}. For a model: {', '.join(MODEL_TARGETS)}."),
    ] = None,
    model: Annotated[
        bool, typer.Option("--model", help="Export the finished model of a run, not its policy.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file (default: a policy is printed, a model is model.pt2 or the like).")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a policy as code, or a finished model as a file, that works without augtree."""
    if to is None:
        raise ArgumentError("--to", f"must be given: {', '.join(MODEL_TARGETS if model else TARGETS)}")
    check_target(to, model)
    if out is None and model:
        out = Path(f"model{MODEL_TARGETS[to][0]}")
    if out is not None:
        check_new_file(out, overwrite)
    result = model_file(policy, to, out, overwrite) if model else policy_source(policy, to, out, as_json)
    finish({"policy": policy, "to": to, **result}, as_json)


def check_target(to: str, model: bool) -> None:
    """Raise for an unknown target, or for one of policies where a model is exported, and the other way round."""
    if to in (TARGETS if model else MODEL_TARGETS):
        names = ", ".join(TARGETS if model else MODEL_TARGETS)
        raise ArgumentError("--to", f"must be given {'without' if model else 'with'} --model for {names}", to)
    one_of("--to", to, MODEL_TARGETS if model else TARGETS)


def model_file(run: str, to: str, out: Path | None, overwrite: bool) -> dict[str, Any]:
    """Write the model, and say how it is loaded."""
    path = export_model(run, to, out, overwrite=overwrite)
    say(f"The model: {path}. To load it:\n\n{loading_example(path, to)}")
    return {"model": str(path)}


def policy_source(policy: str, to: str, out: Path | None, as_json: bool) -> dict[str, Any]:
    """Write or print the module."""
    source = export_policy(policy, to, out, overwrite=True)
    if out is not None:
        say(f"The policy as a module: {out}")
        return {"module": str(out)}
    if not as_json:
        put(source.rstrip("\n"), sys.stdout)
    return {"source": source}
