"""The command itself, and what all its parts share."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import augtree

app = typer.Typer(
    name="augtree",
    help="Learns data augmentation: grow trees, compare them, apply them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON, for scripts.")]


def tell_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        say(f"augtree {augtree.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learns data augmentation: grow trees, compare them, apply them."""


def say(text: str) -> None:
    """Print for people."""
    print(text)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print for scripts."""
    if as_json:
        print(json.dumps(result))
