"""Shows a run in a terminal or a notebook: a line for every decision, and a bar with the time left."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from augtree.errors import ArgumentError, printable
from augtree.loggers import Logger
from augtree.runs.events import WATCH, Count, Event, Note, Planned, Watch, Watchers
from augtree.tables import duration

SILENCE = 15
"""Where there is no bar, a line after this many seconds."""
SPEED_PERIOD = 600
"""The seconds over which the bar's speed is averaged; single trainings may take minutes."""


def in_terminal() -> bool:
    """Whether somebody sees the standard error output at once."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def shown(watch: Watchers) -> Iterator[Watch]:
    """All watchers as one; in a terminal or a notebook also a console, unless there is a watcher beside loggers."""
    given: list[Watch] = [] if watch is None else list(watch) if isinstance(watch, Sequence) else [watch]
    if not all(callable(each) for each in given):
        raise ArgumentError("watch", "must be a function of an event, a logger, or a list of them", watch)
    loggers = [each for each in given if isinstance(each, Logger)]
    with ExitStack() as stack:
        if len(loggers) == len(given) and (in_terminal() or in_notebook()):
            given.append(stack.enter_context(Console()))
        together = Together(given)
        for logger in loggers:
            stack.callback(together.attempt, logger, logger.flush)
        before = WATCH.set(together)
        stack.callback(WATCH.reset, before)
        yield together


class Together:
    """Calls several watchers. One that raises is not called again, so that it cannot end a run."""

    def __init__(self, watchers: Iterable[Watch]) -> None:
        self.watchers = list(watchers)

    def __call__(self, event: Event) -> None:
        for each in list(self.watchers):
            self.attempt(each, partial(each, event))

    def attempt(self, watcher: Watch, work: Callable[[], object]) -> None:
        """Let a watcher work; where that fails, say so, and do without it from now on."""
        if watcher not in self.watchers:
            return
        try:
            work()
        except Exception as error:
            self.watchers.remove(watcher)
            reason = f"{type(error).__name__}: {error}"
            message = f"{watcher!r} watches the run no more, since it failed ({reason}); the run goes on."
            consoles = [each for each in self.watchers if isinstance(each, Console)]
            for console in consoles:
                console(Note(message))
            if not consoles:
                warnings.warn(printable(message), RuntimeWarning, stacklevel=3)


def print_aside(text: str) -> None:
    """Print beside the output of a program: in a notebook standard errors look like failures."""
    print(printable(text, keep="\n"), file=sys.stdout if in_notebook() else sys.stderr)


class Console:
    """Watches a run: prints what its events say, and draws a bar where rich is installed and can draw one."""

    def __init__(self, say: Callable[[str], None] = print_aside) -> None:
        self.say = say
        self.begin = self.last_line = time.perf_counter()
        self.total, self.unit, self.text = 0, "done", ""
        self.first: int | None = None
        """What was done at the first advance: a resumed run has that from its store, in no time."""
        self.count = Count()
        self.bar: Any = None
        self.shown_notes: set[str] = set()

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __call__(self, event: Event) -> None:
        done, change = self.count(event), event.progress()
        if change is not None:
            counts = change.done is not None or change.added > 0
            self.advance(done, self.text if change.text is None else change.text, counts=counts)
        for line in event.describe():
            self.say(line)
        if isinstance(event, Note):
            self.shown_notes.add(event.text)
        if isinstance(event, Planned):
            self.shown_notes.update(event.notes)
            self.start(event.scorings or event.trainings or event.steps, "steps" if event.steps else "done")

    def show_notes(self, notes: Iterable[str]) -> None:
        """Print the notes that have not been printed yet."""
        for note in notes:
            if note not in self.shown_notes:
                self.shown_notes.add(note)
                self.say(note)

    def start(self, total: int, unit: str = "done") -> None:
        """Start to count to a total, with a new bar."""
        self.stop()
        self.total, self.unit, self.text, self.first = total, unit, "", None
        if total:
            self.bar = new_bar(total)

    def stop(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def advance(self, done: int, text: str, *, counts: bool = True) -> None:
        """Show the progress: by the bar, or by a line after a while."""
        self.text = text
        if counts and self.first is None:
            self.first, self.begin = done, time.perf_counter()
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done, description=text)
        elif counts and time.perf_counter() - self.last_line > SILENCE:
            self.last_line = time.perf_counter()
            before = f"{text}: " if text else ""
            self.say(f"{before}{done:,} of about {self.total:,} {self.unit}{self.time_left(done)}.")

    def time_left(self, done: int) -> str:
        """The time left in words, at the speed since the first advance; nothing while that is unknown."""
        new = done - (self.first or 0)
        if new <= 0:
            return ""
        left = (time.perf_counter() - self.begin) / new * max(0, self.total - done)
        return f", about {duration(left)} left"


def new_bar(total: int) -> Any:
    """A bar that has begun to show; None where there is nothing to draw it on, or with."""
    if not (in_terminal() or in_notebook()) or find_spec("rich") is None:
        return None
    if in_notebook() and find_spec("ipywidgets") is None:  # rich would warn instead of drawing
        return None
    from rich import progress
    from rich.console import Console as Terminal

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("elapsed,"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
    )
    lines_above = sys.stdout is not None and sys.stdout.isatty()  # into a file, they go by themselves
    bar = progress.Progress(
        *columns,
        console=Terminal(stderr=True),
        transient=True,
        redirect_stdout=lines_above or in_notebook(),
        speed_estimate_period=SPEED_PERIOD,
    )
    bar.add_task("", total=total)
    bar.start()
    return bar


@contextmanager
def counting(things: str, say: Callable[[str], None] = print_aside) -> Iterator[Callable[..., None]]:
    """A function that shows progress; it takes the number done, the total, and perhaps a remark."""
    with Console(say) as console:

        def report(done: int, total: int, remark: str = "") -> None:
            if total != console.total:
                console.start(total)
            console.advance(done, f"{things}{remark}")

        yield report
