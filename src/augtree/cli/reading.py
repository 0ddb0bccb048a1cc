"""Reads a data set for a command: fetches it if asked, and shows how far the decoding is."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from augtree.cli.app import say
from augtree.cli.console import counting
from augtree.cli.values import assignments
from augtree.data import load
from augtree.data.load import FOR_FOLDERS, fetch_set, options_of, reader_of, root_of

OPTION = "--data-option"


def read(source: str, root: Path | None, *, download: bool = False, own: Sequence[str] = (), **options: Any) -> Any:
    """A data set; `own` are options of its reader as NAME=VALUE."""
    reader, _ = reader_of(source, root_of(root))
    chosen = own_options(source, reader, own)
    if download:
        fetch_set(source, root_of(root), chosen, tell=say)
    with counting("pictures decoded") as progress:
        if "progress" in options_of(reader):
            options["progress"] = progress
        return load(source, root, **options, **chosen)


def own_options(source: str, reader: Callable[..., Any], given: Sequence[str]) -> dict[str, Any]:
    """Options of a reader from NAME=VALUE, each of the type that the reader asks for."""
    taken = {"progress", "cache", *FOR_FOLDERS}
    hints = typing.get_type_hints(getattr(reader, "func", reader))  # of a partial
    known = {name: hints[name] for name in options_of(reader) if name not in taken}
    return assignments(OPTION, given, known, f" for {source}")
