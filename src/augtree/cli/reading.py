"""Reads a data set for a command: downloads it on request, and shows the progress of decoding."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from augtree.cli.app import say
from augtree.cli.values import assignments
from augtree.data import load
from augtree.data.load import FOR_FOLDERS, fetch_set, options_of, reader_by_name, root_of
from augtree.progress import counting

OPTION = "--data-option"


def read(
    source: str, root: Path | None, *, download: bool = False, reader_options: Sequence[str] = (), **options: Any
) -> Any:
    """Read a data set; `reader_options` are options of its reader as NAME=VALUE."""
    reader, _ = reader_by_name(source, root_of(root))
    chosen = parse_reader_options(source, reader, reader_options)
    if download:
        fetch_set(source, root_of(root), chosen, tell=say)
    with counting("pictures decoded", say) as progress:
        if "progress" in options_of(reader):
            options["progress"] = progress
        return load(source, root, **options, **chosen)


def parse_reader_options(source: str, reader: Callable[..., Any], texts: Sequence[str]) -> dict[str, Any]:
    """Options of a reader from texts NAME=VALUE, with the types of the reader's parameters."""
    taken = {"progress", "cache", *FOR_FOLDERS}
    hints = typing.get_type_hints(getattr(reader, "func", reader))  # of a partial
    known = {name: hints[name] for name in options_of(reader) if name not in taken}
    return assignments(OPTION, texts, known, f" for {source}")
