"""Writing files so that they are there as a whole or not at all."""

from __future__ import annotations

import os
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
        raise ArgumentError("path", f"must be a file that can be written ({reason})", str(path)) from error
