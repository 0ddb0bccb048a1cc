"""Reads a data set for a command: fetches it if asked, and tells how far the decoding is."""

from __future__ import annotations

import sys
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from augtree.cli.app import say
from augtree.cli.progress import SILENCE
from augtree.errors import ArgumentError, nearest

SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
OPTION = "--data-option"


def read(source: str, root: Path | None, *, download: bool = False, own: Sequence[str] = (), **options: Any) -> Any:
    """A data set; `own` are options of its reader as NAME=VALUE."""
    from augtree.data import load
    from augtree.data.load import fetch_set, options_of, reader_of, root_of

    reader = reader_of(source, root_of(root))
    chosen = own_options(source, reader, own)
    if download:
        fetch_set(source, root_of(root), chosen, tell=say)
    with decoding() as progress:
        if "progress" in options_of(reader):
            options["progress"] = progress
        return load(source, root, **options, **chosen)


def own_options(source: str, reader: Callable[..., Any], given: Sequence[str]) -> dict[str, Any]:
    """Options of a reader from NAME=VALUE, each of the kind that the reader asks for."""
    from augtree.data.load import FOR_FOLDERS, options_of

    taken = {"progress", "cache", *FOR_FOLDERS}
    known = [name for name in options_of(reader) if name not in taken]
    hints, chosen = typing.get_type_hints(reader), {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in known or not value:
            has = f"one of {', '.join(known)}" if known else "no name, for it has none"
            raise ArgumentError(OPTION, f"must be NAME=VALUE with {has} for {source}{nearest(name, known)}", text)
        chosen[name] = value_of(name, value, hints[name])
    return chosen


def value_of(name: str, text: str, hint: Any) -> Any:
    """A text as what an option is: a truth, a whole number, or a text."""
    kinds = typing.get_args(hint) or (hint,)
    if bool in kinds:
        if text.lower() not in SAID:
            raise ArgumentError(f"{OPTION} {name}", f"must be one of {', '.join(SAID)}", text)
        return SAID[text.lower()]
    if int in kinds:
        try:
            return int(text)
        except ValueError:
            raise ArgumentError(f"{OPTION} {name}", "must be a whole number", text) from None
    return text


@contextmanager
def decoding() -> Iterator[Callable[[int, int], None]]:
    """What is told of the decoding of pictures: a bar on a terminal, elsewhere a line now and then."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("decoding pictures", total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)
        return
    told = time.perf_counter()

    def tell(done: int, of: int) -> None:
        nonlocal told
        if time.perf_counter() - told > SILENCE:
            told = time.perf_counter()
            say(f"{done:,} of {of:,} pictures are decoded.")

    yield tell
