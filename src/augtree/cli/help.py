"""The short help page of a command with many options, and the complete one (--help-all)."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import typing
from collections.abc import Iterator
from typing import Annotated

import typer

from augtree.cli.app import say
from augtree.cli.fields import docs_of
from augtree.search.scorers import SCORERS

EVERYDAY = frozenset(
    [
        *("data", "size", "split_by", "train", "val", "groups", "download"),
        *("task_kind", "model", "steps", "epochs", "batch_size", "lr", "metric", "device"),
        *("method", "seed", "budget", "scorer_option", "alpha", "target", "on", "workers"),
    ]
)
"""The options of data, task, search and weights that the short help page shows."""


def in_brief(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter, which only the complete help page shows unless it is of everyday use."""
    if parameter.name in EVERYDAY:
        return parameter
    kind, info = typing.get_args(parameter.annotation)
    info = copy.copy(info)
    info.hidden = True
    return parameter.replace(annotation=Annotated[kind, info])


def print_all(context: typer.Context, wanted: bool) -> None:
    """Print the help page with all options, and those of the scorers; then stop."""
    if not wanted:
        return
    for option in context.command.params:
        option.hidden = False  # type: ignore[attr-defined]
    say(context.get_help())
    if any(option.name == "scorer_option" for option in context.command.params):
        for line in scorer_lines():
            say(line)
    raise typer.Exit


HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", callback=print_all, is_eager=True, help="Show every option and exit.")
    ],
)


def scorer_lines() -> Iterator[str]:
    """The options of --set, a line each."""
    for scorer, owner in SCORERS.items():
        yield f"\n --set, for --scorer {scorer}:"
        docs = docs_of(owner)
        for field in dataclasses.fields(owner):
            default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
            yield f"   {field.name}={default}  {docs[field.name]}"
