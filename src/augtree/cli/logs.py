"""The option that logs a run, and the console beside the logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from augtree.errors import ArgumentError
from augtree.loggers import Logger, TensorBoard

LOGGERS: Mapping[str, Callable[[str], Logger]] = {"tensorboard": TensorBoard}
"""The loggers of the command line; each takes a place."""


def loggers_of(texts: Sequence[str] | None) -> list[Logger]:
    """The loggers for texts like tensorboard:DIR."""
    return [logger_of(text) for text in texts or ()]


def logger_of(text: str) -> Logger:
    """The logger for a text like tensorboard:DIR."""
    kind, _, place = text.partition(":")
    if kind not in LOGGERS or not place:
        raise ArgumentError("--log", f"must be {', '.join(f'{name}:DIR' for name in LOGGERS)}", text)
    return LOGGERS[kind](place)


Log = Annotated[
    list[str] | None,
    typer.Option("--log", help="Log the run as well: tensorboard:DIR (repeatable).", callback=loggers_of),
]
"""The option --log; its value is a list of loggers."""
