"""The parts of a row of several trainings: each is kept when it is done, so that a stopped row goes on there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from augtree.errors import RunError
from augtree.runs.events import WATCH, Event, Working
from augtree.runs.store import ROWS, VERSION, Run
from augtree.tasks.trainer import Trainer

Value = TypeVar("Value")


class Parts:
    """What is finished of a row: in memory, or in a folder, which is made when the first part is done.

    Parameters
    ----------
    trainer
        What the row trains with; its passes include those of parts that were done before.
    folder
        Where the parts are kept; None: in memory.
    about
        What the row is, for the specification in the folder.
    label
        What the progress calls the row.

    Examples
    --------
    >>> import augtree as at
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> with Parts.begun(task.prepare(at.data.load("digits", train=60, val=60))) as parts:
    ...     parts.value("one", lambda: {"found": 1}), parts.value("one", lambda: {"found": 2})
    ({'found': 1}, {'found': 1})

    """

    def __init__(
        self, trainer: Trainer, folder: Path | None = None, about: Mapping[str, Any] | None = None, label: str = ""
    ) -> None:
        self.trainer, self.folder, self.label = trainer, folder, label
        self.spec = {"version": VERSION, "kind": "row", **(about or {})}
        self.outer = WATCH.get()
        self.opened: Run | None = None
        self.stack = ExitStack()

    @classmethod
    @contextmanager
    def begun(cls, *given: Any, **named: Any) -> Iterator[Parts]:
        """Parts whose folder is closed at the end."""
        parts = cls(*given, **named)
        with parts.stack:
            yield parts

    @property
    def run(self) -> Run:
        """The store of the parts."""
        if self.opened is None:
            try:
                self.opened = Run.begin(self.folder, self.spec)
            except RunError:  # a worker of a comparison that was killed may still be at work there
                self.folder = None
                self.opened = Run.begin(None, self.spec)
            self.stack.enter_context(self.opened)
            self.opened.meter = lambda: (self.trainer.passes.forward, self.trainer.passes.backward)
        return self.opened

    def value(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The value of a part, which is done now if it has not been; its passes count either way."""
        self.tell(key)
        finished = self.run.find(key)
        if finished is not None:
            self.trainer.passes.forward += finished.forward
            self.trainer.passes.backward += finished.backward
            return finished.value
        return self.run.unit(key, lambda: (work(), None)).value

    def search(self, key: str, work: Callable[..., Value], *given: Any, **options: Any) -> Value:
        """The result of a search with a folder of its own; its passes count."""
        self.tell(key)
        out = None if self.run.folder is None else self.run.folder / "searches" / key
        result: Any = work(*given, **options, out=out, watch=self.watch)
        self.trainer.passes.forward += result.passes.forward
        self.trainer.passes.backward += result.passes.backward
        return result  # type: ignore[no-any-return]

    def again(self, train: Callable[[], Value]) -> Value:
        """What is trained once more because it was not kept; it is not counted twice."""
        before = replace(self.trainer.passes)
        value = train()
        self.trainer.passes.forward, self.trainer.passes.backward = before.forward, before.backward
        return value

    def tell(self, text: str) -> None:
        """Report which part begins."""
        self.outer(Working(f"{self.label}: {text}" if self.label else text))

    def watch(self, event: Event) -> None:
        """Report what a search of the row is at."""
        change = event.progress()
        if change is not None and change.text:
            self.tell(change.text)


def folder_of(comparison: Run, row: str, seed: int) -> Path | None:
    """Where the parts of a row are kept: by its place among the rows, since its name may be any text."""
    place = list(comparison.spec["order"]).index(row)
    return None if comparison.folder is None else comparison.folder / ROWS / f"{place}-{seed}"


def forget(folder: Path | None) -> None:
    """Remove the parts of a finished row."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
