"""What a trunk finds out, and the events that report its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from augtree.errors import printable
from augtree.runs.events import Event, Progress
from augtree.search.factorial import Effect
from augtree.search.play import factor_in_words

LONGEST_NAME = 100
"""Longer names of policies are cut where they are printed."""


@dataclass(frozen=True)
class Finding:
    """The evidence of one look on one factor."""

    look: int
    at: float
    """The length of the trunk at the look, in trainings."""
    factor: str
    effect: Effect
    """In all groups together."""
    groups: Mapping[str, Effect]
    """In each group, shrunk towards all."""
    removed_in: tuple[str, ...]
    """The groups in which it left play."""
    seen: Mapping[str, Effect]
    """The evidence of this look alone in each group; the other fields hold that of all looks so far."""

    def row(self) -> dict[str, Any]:
        """As a value for a file."""
        groups = {name: {"harm": e.harm, "se": e.se} for name, e in self.groups.items()}
        about = {
            "look": self.look,
            "at": self.at,
            "factor": self.factor,
            "harm": self.effect.harm,
            "se": self.effect.se,
        }
        return {**about, "groups": groups, "left": list(self.removed_in)}


@dataclass(frozen=True)
class TrunkTrained(Event):
    """The trunk has made this many steps."""

    steps: int

    def describe(self) -> Sequence[str]:
        return []

    def progress(self) -> Progress:
        return Progress("the trunk: training on the mixture", done=self.steps)


@dataclass(frozen=True)
class CooledDown(Event):
    """A cool-down is done."""

    candidate: str
    loss: float
    steps: int
    look: int | None
    """The look that it belongs to; None for the last cool-downs."""

    def describe(self) -> Sequence[str]:
        if self.look is not None:
            return []
        long = len(self.candidate) > LONGEST_NAME
        name = f"{self.candidate[: LONGEST_NAME - 1]}…" if long else self.candidate
        return [f"Cool-down on {name}: validation loss {self.loss:.4f}."]

    def progress(self) -> Progress:
        return Progress(
            "the cool-downs" if self.look is None else f"look {self.look + 1}: test trainings", added=self.steps
        )


@dataclass(frozen=True)
class FactorTested(Event):
    """A look has tested a factor."""

    finding: Finding
    grouped: bool
    """Whether the search knows groups."""

    def describe(self) -> Sequence[str]:
        finding = self.finding
        place = f"Look after {finding.at:.2f} trainings: {describe(finding)}"
        if not finding.removed_in:
            return [f"{place}; stays in play."]
        everywhere = not self.grouped or set(finding.removed_in) == set(finding.groups)
        where = "" if everywhere else f" in {printable(', '.join(finding.removed_in))}"
        return [f"{place}; leaves play{where}."]


def describe(finding: Finding) -> str:
    """A finding in words."""
    verb = "raises" if finding.effect.harm > 0 else "lowers"
    return f"{factor_in_words(finding.factor)}: {verb} the validation loss by {finding.effect.size}"
