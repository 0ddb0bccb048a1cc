"""The command itself, and what all its subcommands share."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import augtree

app = typer.Typer(
    name="augtree",
    help="Learn data augmentation: search policies, compare them, apply them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON, for scripts.")]
Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]


def print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        say(f"augtree {augtree.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn data augmentation: search policies, compare them, apply them."""


def say(text: str) -> None:
    """Print a line of text."""
    print(text)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print the result as JSON, where that is wanted."""
    if as_json:
        print(json.dumps(result))


@contextmanager
def stoppable(folder: Path, command: str = "") -> Iterator[None]:
    """On Ctrl-C, print the command that resumes the run."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped; nothing is lost. Resume with: {command or f'augtree resume {folder}'}")
        raise typer.Exit(INTERRUPTED) from None


def new_folder(kind: str) -> Path:
    """A folder for a run that does not exist yet."""
    name = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, count = Path("runs") / name, 1
    while folder.exists():
        count += 1
        folder = Path("runs") / f"{name}-{count}"
    return folder
