"""Losses that become NaN at a chosen call, and a search for NaN in all files of a folder."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

NAN_IN_TEXT = re.compile(r"(?<![A-Za-z])(nan|-?inf(inity)?)(?![A-Za-z])", re.IGNORECASE)


@pytest.fixture
def spoil(monkeypatch):
    """`spoil(owner, name, n)` makes what a method returns NaN in its n-th call; `spoil.calls` counts them."""

    def at(owner, name, number, spoilt=lambda found: found * float("nan")):
        at.calls = 0
        method = getattr(owner, name)

        def spoiling(*arguments, **options):
            found = method(*arguments, **options)
            at.calls += 1
            return spoilt(found) if at.calls == number else found

        monkeypatch.setattr(owner, name, spoiling)

    return at


def not_finite_in(folder: Path) -> list[str]:
    """The files below a folder in which there is a number that is not finite."""
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and has_nan(path)]


def has_nan(path: Path) -> bool:
    """Whether a file has a number that is not finite."""
    if path.suffix == ".safetensors":
        return any(tensor.is_floating_point() and not tensor.isfinite().all() for tensor in load_file(path).values())
    if path.name == "run.sqlite":
        with closing(sqlite3.connect(path)) as store:
            rows = store.execute("SELECT value, losses FROM units").fetchall()
        blobs = [np.frombuffer(losses, "<f8") for _, losses in rows if losses is not None]
        return not all(np.isfinite(blob).all() for blob in blobs) or any(not is_plain(value) for value, _ in rows)
    if path.suffix == ".json":
        return not is_plain(path.read_text())
    return path.suffix in (".csv", ".svg") and bool(NAN_IN_TEXT.search(path.read_text()))


def is_plain(text: str) -> bool:
    """Whether JSON has finite numbers alone."""
    constants: list[str] = []
    json.loads(text, parse_constant=constants.append)
    return not constants
