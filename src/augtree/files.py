"""Writing files so that they are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from augtree.errors import ArgumentError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file's content in one step; what was there stays if anything goes wrong."""
    temporary = path.with_name(f".{path.name[:64]}.{secrets.token_hex(6)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ArgumentError("path", f"must be a file that can be written ({error.strerror})", str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
