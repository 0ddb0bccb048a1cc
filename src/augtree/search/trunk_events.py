"""What a trunk finds out, and the events that report its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from augtree.errors import printable
from augtree.runs.events import Event, Progress, figure_name
from augtree.search.factorial import Effect
from augtree.search.play import factor_in_words
from augtree.search.symmetries import Symmetry

SMALLEST_GAP = 0.005
"""Smaller gaps of losses and errors of shares are not shown."""
LONGEST_NAME = 100
"""Longer names of policies are cut where they are printed."""


@dataclass(frozen=True)
class Finding:
    """The evidence of one look, or of one test of flips and turns, on one factor."""

    look: int
    at: float
    """The length of the trunk, in trainings."""
    factor: str
    effect: Effect
    """In all groups together; in a test, how far the loss on flipped or turned samples exceeds what it may."""
    groups: Mapping[str, Effect]
    """In each group, shrunk towards all."""
    removed_in: tuple[str, ...]
    """The groups in which it left play or, in a test, did not come into play."""
    seen: Mapping[str, Effect]
    """The evidence of this look alone in each group; the other fields hold that of all looks so far."""
    kept: Mapping[str, float] | None = None
    """In a test, the share of its information that the model keeps in each group; empty where it knows too little."""
    kept_se: Mapping[str, float] | None = None
    """The standard error of this share in each group."""
    gap: float | None = None
    """In a test of overfitting, by which share the loss on training samples is below that on validation samples."""

    @property
    def predicted(self) -> bool:
        """Whether this is of a test by predictions, and not of a look."""
        return self.kept is not None or self.gap is not None

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
        shares = {"kept": self.kept, "kept_se": self.kept_se}
        tests = {**{name: None if each is None else dict(each) for name, each in shares.items()}, "gap": self.gap}
        tested = {name: value for name, value in tests.items() if value is not None}
        return {**about, "groups": groups, "left": list(self.removed_in), **tested}


@dataclass(frozen=True)
class TrunkTrained(Event):
    """The trunk has made this many steps."""

    steps: int
    loss: float | None = None
    """The loss of the last batch, where it was read."""

    def describe(self) -> Sequence[str]:
        return []

    def logged(self) -> Mapping[str, float]:
        return {} if self.loss is None else {"training/loss": self.loss}

    def progress(self) -> Progress:
        return Progress("the trunk: training on the mixture", done=self.steps)


@dataclass(frozen=True)
class CooledDown(Event):
    """A cool-down is done."""

    candidate: str
    loss: float
    steps: int
    look: int | None
    """The look that it belongs to."""
    test: int | None = None
    """The test of flips and turns that it belongs to; both are None for the last cool-downs."""

    def describe(self) -> Sequence[str]:
        if self.look is not None or self.test is not None:
            return []
        return [f"Cool-down on {shortened(self.candidate)}: validation loss {self.loss:.4f}."]

    def logged(self) -> Mapping[str, float]:
        if self.test is not None:
            return {}
        kind = "cool-downs" if self.look is None else f"look-{self.look + 1}"
        return {figure_name(kind, self.candidate): self.loss}

    def progress(self) -> Progress:
        if self.test is not None:
            return Progress("the test of flips and turns", added=self.steps)
        what = "the cool-downs" if self.look is None else f"look {self.look + 1}: test trainings"
        return Progress(what, added=self.steps)


@dataclass(frozen=True)
class FactorTested(Event):
    """A look or a test has judged a factor."""

    finding: Finding
    grouped: bool
    """Whether the search knows groups."""

    def describe(self) -> Sequence[str]:
        finding = self.finding
        if finding.gap is not None:
            return [describe_overfitting(finding)]
        if finding.kept is not None:
            return [describe_test(finding, grouped=self.grouped)]
        place = f"Look after {finding.at:.2f} trainings: {describe(finding)}"
        if not finding.removed_in:
            return [f"{place}; stays in play."]
        everywhere = not self.grouped or set(finding.removed_in) == set(finding.groups)
        where = "" if everywhere else f" in {printable(', '.join(finding.removed_in))}"
        return [f"{place}; leaves play{where}."]

    def logged(self) -> Mapping[str, float]:
        finding = self.finding
        if finding.gap is not None:
            return {"findings/overfitting": finding.gap}
        name, groups = finding.factor, finding.groups if self.grouped else {}
        if finding.kept is not None:
            return {figure_name("findings", name, "kept", group): share for group, share in finding.kept.items()}
        harms = {"": finding.effect, **groups}
        return {figure_name("findings", name, "harm", group): effect.harm for group, effect in harms.items()}


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """A name that is cut where it is too long.

    >>> shortened("RandAugment", 5), shortened("Flip", 5)
    ('Rand…', 'Flip')
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def finding_of_symmetry(
    number: int, at: float, factor: str, found: Symmetry | None, groups: tuple[str, ...]
) -> Finding:
    """The finding of a test of a flip or turn; None where the model knew too little."""
    if found is None:
        return Finding(number, at, factor, Effect(0.0, 0.0), {}, groups, {}, kept={}, kept_se={})
    left = tuple(group for group in groups if group not in found.borne_by)
    return Finding(number, at, factor, found.common, found.groups, left, {}, kept=found.kept, kept_se=found.kept_se)


def describe_overfitting(finding: Finding) -> str:
    """What a test of overfitting said, in words."""
    outcome = "half of the samples are left alone from here on" if finding.removed_in else "every sample is augmented"
    return (
        f"Test after {finding.at:.2f} trainings: the loss on training samples is {gap_in_words(finding.gap or 0.0)}"
        f" that on validation samples; {outcome}."
    )


def gap_in_words(gap: float) -> str:
    """How a training loss stands to a validation loss.

    >>> gap_in_words(0.25), gap_in_words(-4.0)
    ('25 % below', 'not below')
    """
    return f"{100 * gap:.0f} % below" if gap >= SMALLEST_GAP else "not below"


def describe_test(finding: Finding, *, grouped: bool) -> str:
    """What a test said of a flip or turn, in words."""
    place = f"Test after {finding.at:.2f} trainings: {factor_in_words(finding.factor)}"
    if not finding.kept:
        return f"{place}: the model knows too little to tell; out of play."
    outcome = "out of play" if finding.removed_in else "in play"
    errors = finding.kept_se or {}
    shares = {group: kept_in_words(share, errors.get(group, 0.0)) for group, share in finding.kept.items()}
    if not grouped:
        (kept,) = shares.values()
        return f"{place}: predictions keep {kept} of their information; {outcome}."
    listed = ", ".join(f"{share} in {printable(group)}" for group, share in shares.items())
    if finding.removed_in and set(finding.removed_in) != set(finding.groups):
        outcome = f"out of play in {printable(', '.join(finding.removed_in))}"
    return f"{place}: predictions keep {listed} of their information; {outcome}."


def kept_in_words(share: float, error: float) -> str:
    """A share with its standard error.

    >>> kept_in_words(0.896, 0.04), kept_in_words(0.1, 0.0)
    ('89.6 ± 4.0 %', '10 %')
    """
    return f"{100 * share:.1f} ± {100 * error:.1f} %" if error >= SMALLEST_GAP else f"{100 * share:.0f} %"


def describe(finding: Finding) -> str:
    """A finding in words."""
    verb = "raises" if finding.effect.harm > 0 else "lowers"
    return f"{factor_in_words(finding.factor)}: {verb} the validation loss by {finding.effect.size}"
