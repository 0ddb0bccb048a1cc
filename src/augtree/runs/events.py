"""The events of a run, passed to the `watch` function of the caller.

Each kind of work defines further events beside the code that reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """The base class of all events."""


Watch = Callable[[Event], None]


def silent(_: Event) -> None:
    """Ignore an event."""


@dataclass(frozen=True)
class Planned(Event):
    """The plan; `steps` of training, `trainings` or `scorings` are the length of a progress bar."""

    notes: Sequence[str] = ()
    lines: Sequence[str] = ()
    """The plan in words, a sentence each."""
    steps: int = 0
    trainings: int = 0
    scorings: int = 0


@dataclass(frozen=True)
class Note(Event):
    """Something that the user should know."""

    text: str


@dataclass(frozen=True)
class Stepped(Event):
    """A training has made this many steps in all."""

    done: int


@dataclass(frozen=True)
class Working(Event):
    """A piece of work begins that has no steps of its own to report."""

    text: str


@dataclass(frozen=True)
class RowTrained(Event):
    """A row of a comparison is trained with one seed: its figures, or why it failed."""

    policy: str
    seed: int
    figures: Mapping[str, float | None]
    failed: str = ""
