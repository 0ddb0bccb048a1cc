"""The events of a run, passed to the `watch` function of the caller.

Each kind of work defines further events beside the code that reports them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from augtree.data import Dataset
from augtree.policies import Forest
from augtree.transforms.base import Policy

LONGEST_PART = 100
"""Longer parts of a figure's name are cut."""


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

    def logged(self) -> Mapping[str, float]:
        """The figures for a log, by name; see `figure_name`."""
        return {}

    def policies(self) -> Mapping[str, Policy]:
        """The policies that a log shows at work: one for each group, or one under an empty name."""
        return {}

    def heading(self) -> str | None:
        """What the figures of all later events are about, before their names; None where that goes on."""
        return None


Watch = Callable[[Event], None]
Watchers = Watch | Sequence[Watch] | None
"""The argument `watch` of a run."""


def silent(_: Event) -> None:
    """Ignore an event."""


class Count:
    """Counts what a run has done in all, in the unit of its plan: steps, trainings or scorings."""

    def __init__(self) -> None:
        self.parts: dict[type[Event], int] = {}

    def __call__(self, event: Event) -> int:
        """What is done after this event."""
        change = event.progress()
        if isinstance(event, Planned):
            self.parts.clear()
        elif change is not None:
            done = self.parts.get(type(event), 0) if change.done is None else change.done
            self.parts[type(event)] = done + change.added
        return sum(self.parts.values())


def figure_name(*parts: str) -> str:
    """The name of a figure in a log, of the characters that TensorBoard, MLflow and Weights & Biases all accept.

    >>> figure_name("cool-downs", "Rotate(0.6)"), figure_name("weights", "../a b"), figure_name("harm", "")
    ('cool-downs/Rotate_0.6', 'weights/a_b', 'harm')
    """
    return "/".join(re.sub(r"[^\w.-]+", "_", part)[:LONGEST_PART].strip("._") or "_" for part in parts if part)


@dataclass(frozen=True)
class Began(Event):
    """A run begins, or goes on."""

    spec: Mapping[str, Any]
    """What it is about, as spec.json has it."""
    data: Dataset = field(repr=False)

    def describe(self) -> Sequence[str]:
        return []

    def heading(self) -> str | None:
        return None if self.spec["kind"] == "search" else ""  # a search may be that of a group


@dataclass(frozen=True)
class Finished(Event):
    """A run is finished."""

    text: str
    """Its verdict or table; nothing is printed, since the caller has the result."""
    results: Mapping[str, float] = field(default_factory=dict)
    """Its figures."""
    policy: Policy | None = None
    """What it found or trained with."""

    def describe(self) -> Sequence[str]:
        return []

    def logged(self) -> Mapping[str, float]:
        return {f"result/{name}": value for name, value in self.results.items()}

    def policies(self) -> Mapping[str, Policy]:
        return {} if self.policy is None else policies_by_group(self.policy)


def policies_by_group(policy: Policy) -> Mapping[str, Policy]:
    """The tree of each group of a forest; any other policy under an empty name."""
    if isinstance(policy, Forest):
        return {group: member.tree for group, member in policy.groups.items()}
    return {"": policy}


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
    loss: float | None = None
    """The loss of the last batch, where it was read."""

    def describe(self) -> Sequence[str]:
        return []

    def logged(self) -> Mapping[str, float]:
        return {} if self.loss is None else {"training/loss": self.loss}

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

    def logged(self) -> Mapping[str, float]:
        numbers = {key: value for key, value in self.figures.items() if isinstance(value, int | float)}
        return {figure_name("comparison", key, self.policy): value for key, value in numbers.items()}
