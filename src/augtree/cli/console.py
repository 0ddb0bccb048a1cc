"""Shows the progress of a run: a bar on a terminal, and a line for every decision."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import singledispatch
from types import TracebackType
from typing import Any

from augtree.cli.app import say
from augtree.forests.group_trees import GroupFinished, GroupStarted
from augtree.runs.events import Event, Note, Planned, RowTrained, Stepped, Working
from augtree.search.grow import NodeBuilt
from augtree.search.scorers.base import Scored
from augtree.search.trunk import CooledDown, FactorTested, TrunkTrained, describe

SILENCE = 15
"""Where there is no bar, a line after this many seconds."""
LONGEST_NAME = 100
"""Longer names of policies are cut."""


class Console:
    """Watches a run: calls `show` with every event."""

    def __init__(self) -> None:
        self.begin = self.last_line = time.perf_counter()
        self.done = self.total = 0
        self.trunk_steps = self.cooldown_steps = self.weighted_steps = 0
        self.bar: Any = None
        self.first_node = True
        self.shown_notes: set[str] = set()

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __call__(self, event: Event) -> None:
        show(event, self)

    def start(self, total: int) -> None:
        """Start to count to a total, with a new bar."""
        self.stop()
        self.begin, self.done, self.total, self.first_node = time.perf_counter(), 0, total, True
        self.trunk_steps = self.cooldown_steps = self.weighted_steps = 0
        if sys.stderr.isatty() and total:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, console=Terminal(stderr=True), transient=True)
            self.bar.add_task("", total=total)
            self.bar.start()

    def show_notes(self, notes: Iterable[str]) -> None:
        """Print the notes that have not been printed yet."""
        for note in notes:
            if note not in self.shown_notes:
                self.shown_notes.add(note)
                say(note)

    def stop(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def advance(self, done: int, text: str, unit: str = "done") -> None:
        """Show the progress: by the bar, or by a line after a while."""
        self.done = done
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done, description=text)
        elif time.perf_counter() - self.last_line > SILENCE:
            self.last_line = time.perf_counter()
            left = (self.last_line - self.begin) / max(1, done) * max(0, self.total - done)
            say(f"{f'{text}: ' if text else ''}{done:,} of about {self.total:,} {unit}, about {left:.0f} s left.")

    def advance_steps(self, text: str) -> None:
        """Show the progress of a search, in training steps."""
        self.advance(self.trunk_steps + self.cooldown_steps + self.weighted_steps, text, "steps")


@singledispatch
def show(event: Event, _: Console) -> None:
    """Show an event."""
    warnings.warn(f"the command line does not show {type(event).__name__}", stacklevel=2)


@show.register
def show_plan(event: Planned, console: Console) -> None:
    """The notes and the plan, and a new bar."""
    for line in (*event.notes, *event.lines):
        say(line)
    console.shown_notes.update(event.notes)
    console.start(event.scorings or event.trainings or event.steps)


@show.register
def show_note(event: Note, console: Console) -> None:
    """One line."""
    say(event.text)
    console.shown_notes.add(event.text)


@show.register
def show_work(event: Working, console: Console) -> None:
    """The current work, on the bar."""
    if console.bar is not None:
        console.bar.update(console.bar.task_ids[0], description=event.text)


@show.register
def show_steps(event: Stepped, console: Console) -> None:
    """A training by itself, or the last part of a forest's trunk."""
    if console.trunk_steps:
        console.weighted_steps = event.done
        console.advance_steps("the last part of the trunk, in which the weights are learned")
    else:
        console.advance(event.done, "", "steps")


@show.register
def show_trained(event: RowTrained, console: Console) -> None:
    """A row of a comparison."""
    name = f"{event.policy}, seed {event.seed}"
    console.advance(console.done + 1, name)
    figures = ", ".join(f"{key} {value:.4f}" for key, value in event.figures.items() if value is not None)
    say(f"{name}: failed: {event.failed}" if event.failed else f"{name}: {figures}")


@show.register
def show_group(event: GroupStarted, _: Console) -> None:
    """A heading."""
    say(f"\nGroup {event.group} ({event.number} of {event.of}): {event.data}")


@show.register
def show_group_tree(event: GroupFinished, _: Console) -> None:
    """A group's tree."""
    say(f"Group {event.group} ({event.number} of {event.of} done): {event.tree}, {event.trainings:.1f} trainings.")


@show.register
def show_trunk(event: TrunkTrained, console: Console) -> None:
    """The progress of the trunk."""
    console.trunk_steps = event.steps
    console.advance_steps("the trunk, on the mixture of what is in play")


@show.register
def show_cooldown(event: CooledDown, console: Console) -> None:
    """A cool-down; those at the end have a line."""
    console.cooldown_steps += event.steps
    console.advance_steps("the last cool-downs" if event.look is None else f"look {event.look + 1}")
    if event.look is None:
        name = event.candidate
        name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        say(f"Cool-down on {name}: validation loss {event.loss:.4f}.")


@show.register
def show_finding(event: FactorTested, _: Console) -> None:
    """The finding of a look on one factor."""
    finding = event.finding
    place = f"After {finding.at:.2f} trainings: {describe(finding)}"
    if not finding.removed_in:
        say(f"{place}; stays in play.")
        return
    everywhere = not event.grouped or set(finding.removed_in) == set(finding.groups)
    where = "" if everywhere else f" in {', '.join(finding.removed_in)}"
    say(f"{place}; leaves play{where}.")


@show.register
def show_score(event: Scored, console: Console) -> None:
    """A scored candidate."""
    console.advance(console.done + 1, f"node {event.node}: {event.candidate}")


@show.register
def show_node(event: NodeBuilt, console: Console) -> None:
    """A node, and after the first one an estimate of the remaining time."""
    built = event.built
    if not built.improves:
        say(f"Node {event.node}: empty. {built.why}.")
    elif built.why:
        say(f"Node {event.node}: {built.why}.")
    else:
        gain = f"{built.gain:.4f} ± {built.gain_se:.4f}"
        say(f"Node {event.node}: {built.transform} p={built.p:g}, the validation loss falls by {gain}.")
    if event.seconds is not None and console.first_node and event.growth.open:
        console.first_node = False
        each = (time.perf_counter() - console.begin) / max(1, console.done)
        left = max(0.0, each * (console.total - console.done))
        say(f"The first node took {event.seconds:.0f} s; the rest takes at most about {left:.0f} s.")


@contextmanager
def counting(things: str) -> Iterator[Callable[..., None]]:
    """A function that shows progress; it takes the number done, the total, and perhaps a remark."""
    with Console() as console:

        def report(done: int, total: int, remark: str = "") -> None:
            if total != console.total:
                console.start(total)
            console.advance(done, f"{things}{remark}", "done")

        yield report
