"""What a person sees while a search or a comparison runs."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from augtree.cli.app import say

SILENCE = 15
"""Where there is no bar, a line after so many seconds."""
LONG = 100
"""Longer names of policies are cut."""


class Progress:
    """A bar on a terminal, and a line for everything that is decided."""

    def __init__(self) -> None:
        self.begin = self.told = time.perf_counter()
        self.done = self.total = self.behind = self.beside = self.weighted = 0
        self.bar: Any = None
        self.first = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, what: str, **about: Any) -> None:
        """Be told of something."""
        getattr(self, f"on_{what}", lambda **_: None)(**about)

    def on_plan(self, **about: Any) -> None:
        """What will be done."""
        scorings, trainings, steps = (about.get(what, 0) for what in ("scorings", "trainings", "steps"))
        for note in about.get("notes", ()):
            say(note)
        if "about" in about:
            say(f"Model: {about['about']}.")
        if "search" in about:
            say(f"Budget: {about['search']}; {about['plan']}.")
            say(f"In play: {about['play']}.")
        if scorings:
            say(f"At most {scorings:,} scorings: {about['candidates']} candidates, up to {about['nodes']} nodes.")
        if trainings:
            say(f"{trainings} trainings.")
        if about.get("training"):
            say(f"The {about['training']}: {steps} steps.")
        self.start(scorings or trainings or steps)

    def on_note(self, text: str) -> None:
        """Something that should be known."""
        say(text)

    def on_group(self, group: str, number: int, of: int, data: Any) -> None:
        """The search of a group's tree begins."""
        say(f"\nGroup {group} ({number} of {of}): {data}")

    def on_grown(self, group: str, result: Any, number: int, of: int) -> None:
        """A worker has grown a group's tree."""
        tree = result.tree if len(result.tree) else "empty"
        say(f"Group {group} ({number} of {of} done): {tree}, {result.cost.training_equivalents:.1f} trainings.")

    def on_trained_on(self, steps: int) -> None:
        """The trunk has so many steps."""
        self.behind = steps
        self.show("the trunk, on the mixture of what is in play")

    def on_cooled(self, key: str, steps: int, candidate: str, loss: float, **about: Any) -> None:
        """A cool-down is done."""
        self.beside += steps
        last = key.startswith("cool/")
        self.show("the last cool-downs" if last else f"look {about['look'] + 1}")
        if last:
            text = candidate if len(candidate) <= LONG else f"{candidate[: LONG - 1]}…"
            say(f"Cool-down on {text}: validation loss {loss:.4f}.")

    def on_finding(self, finding: Any, grouped: bool) -> None:
        """What a look says of one factor."""
        from augtree.search.trunk import words_of

        if not finding.left:
            say(f"After {finding.at:.2f} trainings: {words_of(finding)}; stays.")
            return
        where = f" in {', '.join(finding.left)}" if grouped and set(finding.left) != set(finding.groups) else ""
        say(f"After {finding.at:.2f} trainings: {words_of(finding)}; out of play{where}.")

    def show(self, text: str) -> None:
        """How far a search has come."""
        self.done = self.behind + self.beside + self.weighted
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done, description=text)
        elif time.perf_counter() - self.told > SILENCE:
            self.told = time.perf_counter()
            left = (self.told - self.begin) / max(1, self.done) * max(0, self.total - self.done)
            say(f"{text}: {self.done} of about {self.total} steps, about {left:.0f} s left.")

    def on_plain(self) -> None:
        """A model without augmentation is trained."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], description="training without augmentation and weights")

    def start(self, total: int) -> None:
        """Show a bar where somebody looks; a former one is done."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        self.begin, self.done, self.first, self.total = time.perf_counter(), 0, True, total
        self.behind = self.beside = self.weighted = 0
        if sys.stderr.isatty() and total:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.bar.add_task("", total=total)
            self.bar.start()

    def step(self, text: str) -> None:
        """One more is done."""
        self.done += 1
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done, description=text)
        elif time.perf_counter() - self.told > SILENCE:
            self.told = time.perf_counter()
            left = (self.told - self.begin) / self.done * max(0, self.total - self.done)
            say(f"{self.done} of at most {self.total} done, about {left:.0f} s left at most.")

    def on_scored(self, **about: Any) -> None:
        """A candidate has its score."""
        self.step(f"node {about['node']}: {about['candidate']}")

    def on_node(self, node: int, found: Any, growth: Any, spent: Any = None) -> None:
        """A node is decided."""
        if found.why and found.improves:
            say(f"Node {node}: {found.why}.")
        elif found.improves:
            gain = f"{found.gain:.4f} ± {found.gain_se:.4f}"
            say(f"Node {node}: {found.transform} p={found.p:g}, the validation loss falls by {gain}.")
        else:
            say(f"Node {node}: empty. {found.why}.")
        if spent is not None and self.first and growth.open:
            self.first = False
            each = (time.perf_counter() - self.begin) / max(1, self.done)
            left = max(0.0, each * (self.total - self.done))
            say(f"The first node took {spent.seconds:.0f} s; the rest takes at most about {left:.0f} s.")

    def on_step(self, done: int) -> None:
        """A training has made so many steps."""
        if self.behind:
            self.weighted = done
            self.show("the last part of the trunk, in which the weights are learned")
            return
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done)
        elif time.perf_counter() - self.told > SILENCE:
            self.told = time.perf_counter()
            say(f"{done} of {self.total} steps.")

    def on_pair(self, groups: tuple[str, str]) -> None:
        """A model is trained on two groups alone."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], description=f"training on {' and '.join(groups)}")

    def on_free(self, name: str) -> None:
        """The tree is held against the free policies."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], description=f"training with {name}")

    def on_trained(self, policy: str, seed: int, **found: Any) -> None:
        """A training of a comparison is done."""
        self.step(f"{policy}, seed {seed}")
        if "failed" in found:
            say(f"{policy}, seed {seed}: failed: {found['failed']}")
            return
        figures = ", ".join(f"{name} {value:.4f}" for name, value in found.items() if value is not None)
        say(f"{policy}, seed {seed}: {figures}")
