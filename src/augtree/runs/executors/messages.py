"""Messages between a process and its own workers; nothing here is read from a file."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from augtree.errors import AugtreeError


def pack(message: Any) -> bytes:
    """A message as bytes. By itself, torch would send every tensor as an open file."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def unpack(content: bytes) -> Any:
    """The message again."""
    return pickle.loads(content)  # noqa: S301 - from our own process


def sendable_error(error: Exception) -> Exception:
    """An error as it can be sent; one that is not our own says where it was raised."""
    if not isinstance(error, AugtreeError):
        error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        unpack(pack(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
