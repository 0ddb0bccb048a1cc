"""Writing an export: an existing file is kept unless it is to be replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from augtree.errors import ArgumentError
from augtree.files import write_atomically


def write_new(path: Path, content: Callable[[], bytes], *, overwrite: bool) -> None:
    """Write a file, whose content is made only if it may be written."""
    if path.exists() and not overwrite:
        raise ArgumentError("out", "must be a new file (overwrite=True replaces an existing one)", str(path))
    write_atomically(path, content())
