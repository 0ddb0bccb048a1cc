"""The options that say where a run's parts are done: in this process, in others, on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from augtree.cli.options import OptionGroup, parameters_of
from augtree.errors import ArgumentError, one_of
from augtree.runs.executors import EXECUTORS

PANEL = "Where it runs (the result is the same)"


def option(text: str) -> Any:
    """An option in this group of the help page."""
    return typer.Option(help=text, rich_help_panel=PANEL)


On = Annotated[
    str | None, option("serial, processes (of this machine) or ray (default: serial; processes with --workers).")
]
Address = Annotated[
    str | None,
    option("The Ray cluster: HOST:PORT, auto (this machine's), or local, one of its own (default: local)."),
]
GpusPerTask = Annotated[float | None, option("The part of a GPU that each Ray worker has (default: 0).")]
Workers = Annotated[
    int | None,
    option("How many side by side: cool-downs, searches of groups (paper), trainings of a comparison, classifiers."),
]


def where(
    on: On = None, address: Address = None, gpus_per_task: GpusPerTask = None, workers: Workers = None
) -> dict[str, Any]:
    """The arguments `workers` and `executor` of a run."""
    if one_of("on", on or "serial", EXECUTORS) != "ray":
        for name, value in (("address", address), ("gpus_per_task", gpus_per_task)):
            if value is not None:
                raise ArgumentError(name, "must be left out without --on ray", value)
    if on is None:
        return {"workers": 1 if workers is None else workers}
    if on == "serial":
        if workers not in (None, 1):
            raise ArgumentError("workers", "must be left out with --on serial", workers)
        return {"executor": EXECUTORS[on]()}
    given = {"workers": workers, "address": address, "gpus_per_task": gpus_per_task}
    return {"executor": EXECUTORS[on](**{name: value for name, value in given.items() if value is not None})}


WHERE = OptionGroup("where", parameters_of(where), where)
OPTION_NAMES = {
    "executor": "--on",
    "workers": "--workers",
    "address": "--address",
    "gpus_per_task": "--gpus-per-task",
    "budget": "--budget",
}
"""The options by what an ArgumentError of a run calls them."""


@contextmanager
def executor_options() -> Iterator[None]:
    """Within this context, an ArgumentError about one of these arguments names the option and its value."""
    try:
        yield
    except ArgumentError as error:
        if error.field not in OPTION_NAMES:
            raise
        names = {kind: name for name, kind in EXECUTORS.items()}
        rule, *value = error.args[1:]
        raise ArgumentError(OPTION_NAMES[error.field], rule, *(names.get(type(v), v) for v in value)) from error
