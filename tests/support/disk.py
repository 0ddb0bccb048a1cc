"""A disk that fails at the n-th write of a process, and at all that follow."""

from __future__ import annotations

import errno
import io
import os
import sqlite3
from pathlib import Path

import pytest

SQLITE_CODES = {
    errno.ENOSPC: (sqlite3.SQLITE_FULL, "database or disk is full"),
    errno.EIO: (sqlite3.SQLITE_IOERR, "disk I/O error"),
    errno.EACCES: (sqlite3.SQLITE_READONLY, "attempt to write a readonly database"),
}


class FailingDisk:
    """Counts the writes below a folder; with `fail(n, code)`, the n-th and all after it raise."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.writes, self.at, self.code = folder, 0, 0, 0

    def fail(self, at: int, code: int) -> None:
        """Fail from the n-th write on; 0: never."""
        self.writes, self.at, self.code = 0, at, code

    def fails(self) -> bool:
        """Count a write: whether it fails."""
        self.writes += 1
        return 0 < self.at <= self.writes

    def step(self, path: object) -> None:
        """A write by the operating system."""
        if Path(str(path)).is_relative_to(self.folder) and self.fails():
            raise OSError(self.code, os.strerror(self.code), str(path))

    def statement(self) -> None:
        """A write by SQLite."""
        if self.fails():
            code, text = SQLITE_CODES[self.code]
            error = sqlite3.OperationalError(text)
            error.sqlite_errorcode = code
            raise error


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A `FailingDisk` below the test's folder."""
    disk = FailingDisk(tmp_path)

    class File(io.FileIO):
        def write(self, content):
            disk.step(self.name)
            return super().write(content)

    def opened(path, mode="r", **options):
        if mode != "xb":
            return io.open(path, mode, **options)  # noqa: UP020 - `open` of Path is replaced
        disk.step(path)
        return File(path, mode)

    def before(name, function):
        def stepping(path, *arguments, **options):
            if name == "replace" or not path.exists():
                disk.step(path)
            return function(path, *arguments, **options)

        return stepping

    connect = sqlite3.connect

    class Store(sqlite3.Connection):
        def __init__(self, place, **options):
            super().__init__(place, **options)
            self.on_disk = place != ":memory:"
            if not str(place).endswith("lock.sqlite"):  # no test waits for the disk
                super().execute("PRAGMA synchronous = OFF")

        def execute(self, query, *values):
            if self.on_disk and not query.startswith(("SELECT", "PRAGMA", "BEGIN EXCLUSIVE")):
                disk.statement()
            return super().execute(query, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda place, **options: connect(place, factory=Store, **options))
    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "fsync", lambda _: disk.step(tmp_path))
    for name in ("replace", "mkdir"):
        monkeypatch.setattr(Path, name, before(name, getattr(Path, name)))
    return disk
