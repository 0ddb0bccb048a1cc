"""Power cuts within the process, and a disk that nobody waits for."""

from __future__ import annotations

import os
import sqlite3

import pytest

from augtree.runs import faults


class CutError(BaseException):
    """A power cut: nothing catches it."""


@pytest.fixture
def cut(monkeypatch):
    """`cut(n)` ends a run at the n-th point that it passes (of one name, if given); returns those passed."""

    def at(count, name=None):
        passed = []

        def point(this):
            if name in (None, this):
                passed.append(this)
                if len(passed) == count:
                    raise CutError(this)

        monkeypatch.setattr(faults, "point", point)
        return passed

    at.Error = CutError
    return at


@pytest.fixture
def quick_disk(monkeypatch):
    """No test waits for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(sqlite3, "connect", quickly(sqlite3.connect))


def quickly(connect):
    """SQLite without waiting for the disk: what a process has written survives it, and these tests cut no power."""

    def connected(place, **options):
        connection = connect(place, **options)
        if not str(place).endswith("lock.sqlite"):
            connection.execute("PRAGMA synchronous = OFF")
        return connection

    return connected
