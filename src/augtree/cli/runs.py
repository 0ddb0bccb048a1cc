"""`augtree runs`: the runs in a folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from augtree.cli.app import Json, app, finish, say
from augtree.errors import ArgumentError
from augtree.runs.listing import list_runs
from augtree.tables import counted

DEFAULT = Path("runs")


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = DEFAULT,
    as_json: Json = False,
) -> None:
    """List the runs in a folder: what they are, whether they are done, what they have cost."""
    if folder != DEFAULT and not folder.is_dir():
        raise ArgumentError("folder", "must be an existing folder", str(folder))
    found = list(list_runs(folder))
    if not found:
        say(f"No runs in {folder}.")
    for run in found:
        say(f"{run.run}: {run.kind} on {run.data}, {run.status}, {counted(run.units, 'unit')}, {run.seconds:.0f} s")
    finish({"runs": [asdict(run) for run in found]}, as_json)
