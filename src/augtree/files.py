"""Writing files so that they are there as a whole or not at all; and folders for them."""

from __future__ import annotations

import errno
import os
import re
import secrets
from pathlib import Path

from augtree.errors import ArgumentError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file's content in one step; what was there stays if anything goes wrong.

    A link is followed, and a file that is there keeps its mode. Anything else that is there is no place for a file.
    """
    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise ArgumentError("path", "must not be something other than a file", str(path))
        temporary = place.with_name(f".{place.name[:64]}.{secrets.token_hex(6)}")
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if place.exists():
                temporary.chmod(place.stat().st_mode & 0o7777)
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        reason = getattr(error, "strerror", None) or error
        rule = f"must be a file that can be written ({reason}), got {str(path)!r}"  # the whole path, however long
        raise ArgumentError("path", rule) from error


def remove_torn_files(*folders: Path) -> None:
    """Remove what processes that were killed have left of files that they were writing."""
    for folder in folders:
        for path in folder.iterdir():
            if TORN_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)


TORN_FILE = re.compile(r"\..+\.[0-9a-f]{12}")
"""The name that a file has until it is whole."""


def check_folder(place: Path) -> None:
    """Raise for what can be no folder; nothing is made."""
    try:
        there = next(path for path in (place, *place.absolute().parents) if path.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        raise no_folder(place, error) from error


def make_folder(place: Path) -> None:
    """Make a folder, unless it is there."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise no_folder(place, error) from error


def no_folder(place: Path, error: Exception) -> ArgumentError:
    """The error for a folder that cannot be made."""
    reason = getattr(error, "strerror", None) or error
    return ArgumentError("--out", f"must be a folder that can be made ({reason}), got {str(place)!r}")
