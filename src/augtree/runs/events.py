"""The events of a run, passed to the `watch` function of the caller.

Each kind of work defines further events beside the code that reports them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple


class Progress(NamedTuple):
    """What an event changes on a progress bar."""

    text: str | None = None
    """The current work; None where it goes on."""
    done: int | None = None
    """What events of this kind have done in all."""
    added: int = 0
    """What this event adds to that."""


@dataclass(frozen=True)
class Event(ABC):
    """The base class of all events."""

    @abstractmethod
    def describe(self) -> Sequence[str]:
        """The event in words, a line each."""

    def progress(self) -> Progress | None:
        """What changes on the progress bar."""
        return None


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

    def describe(self) -> Sequence[str]:
        return [*self.lines, *self.notes]


@dataclass(frozen=True)
class Note(Event):
    """Something that the user should know."""

    text: str

    def describe(self) -> Sequence[str]:
        return [self.text]


WATCH: ContextVar[Watch] = ContextVar("watch", default=silent)
"""Who watches what runs now; `augtree.progress.shown` sets it."""


def tell(text: str) -> None:
    """Send a note from where no watcher is at hand."""
    WATCH.get()(Note(text))


@dataclass(frozen=True)
class Stepped(Event):
    """A training has made this many steps in all."""

    done: int

    def describe(self) -> Sequence[str]:
        return []

    def progress(self) -> Progress:
        return Progress(done=self.done)


@dataclass(frozen=True)
class Working(Event):
    """A piece of work begins that has no steps of its own to report."""

    text: str

    def describe(self) -> Sequence[str]:
        return []

    def progress(self) -> Progress:
        return Progress(self.text)


@dataclass(frozen=True)
class RowTrained(Event):
    """A row of a comparison is trained with one seed: its figures, or why it failed."""

    policy: str
    seed: int
    figures: Mapping[str, float | str | None]
    """What a method tells beside the metric may be text, as a tree is."""
    failed: str = ""

    @property
    def name(self) -> str:
        """The row and the seed."""
        return f"{self.policy}, seed {self.seed}"

    def describe(self) -> Sequence[str]:
        given = {key: value for key, value in self.figures.items() if value is not None}
        texts = {key: value if isinstance(value, str) else f"{value:.4f}" for key, value in given.items()}
        figures = ", ".join(f"{key} {text}" for key, text in texts.items())
        return [f"{self.name}: failed: {self.failed}" if self.failed else f"{self.name}: {figures}"]

    def progress(self) -> Progress:
        return Progress(self.name, added=1)
