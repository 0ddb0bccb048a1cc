"""The SQLite file of a run: its tables, a hash beside every row, and what went wrong in one line.

SQLite finds a damaged structure, but not a changed value. So every row carries the SHA-256 of its content, and all
rows are checked when the file is opened.
"""

from __future__ import annotations

import errno
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from augtree.errors import RunError
from augtree.files import write_atomically

TABLES = {
    "units": """CREATE TABLE units (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL, losses BLOB,
  forward INTEGER NOT NULL, backward INTEGER NOT NULL, seconds REAL NOT NULL)""",
    "facts": "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
}
"""The tables as the first runs have them."""
HASH = "sha256 TEXT NOT NULL DEFAULT ''"
HASHED_TABLES = {name: f"{text[:-1]}, {HASH})" for name, text in TABLES.items()}
COLUMNS = {"units": "key, value, losses, forward, backward, seconds", "facts": "key, value"}
"""What is hashed."""
KINDS = {"units": (str, str, bytes | None, int, int, int | float), "facts": (str, str)}
"""The types of these columns, which SQLite itself does not hold to."""

WRITER_TIMEOUT = 300
"""The seconds for which a writer waits for readers: a long run must not end because somebody looks at it."""
READER_TIMEOUT = 10
PIECE = 100
"""The rows that are read at a time when a file is checked; between pieces nothing is locked."""

Row = tuple[Any, ...]


class Database:
    """The open file of a run; in memory where there is no path. Every error of SQLite becomes a `RunError`.

    The structure of the file is only checked if it is `thorough`; the hashes of its rows are always checked.
    """

    def __init__(self, path: Path | None, *, write: bool, thorough: bool = True) -> None:
        self.path = path
        if write and path is not None and not path.exists():
            with writing(path):
                path.with_name(f"{path.name}-journal").unlink(missing_ok=True)  # else it is applied to the new file
                write_atomically(path, empty_store())  # so that an empty file is always damage, and no early kill
        with self.explained():
            timeout = WRITER_TIMEOUT if write else READER_TIMEOUT
            self.connection = sqlite3.connect(":memory:" if path is None else str(path), timeout=timeout)
            try:
                self.prepare(write=write or path is None, thorough=thorough)
            except BaseException:
                self.connection.close()
                raise

    def prepare(self, *, write: bool, thorough: bool = True) -> None:
        """Check the file for damage; make what is missing."""
        found = dict(self.connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        for name, text in found.items():
            if text not in (TABLES.get(name), HASHED_TABLES.get(name)):
                raise self.damaged(f"unknown table {name}")
        if found and len(found) < len(TABLES):
            raise self.damaged(f"it has no table but {', '.join(found)}")
        problem = self.connection.execute("PRAGMA integrity_check(1)").fetchone()[0] if thorough else "ok"
        if problem != "ok":
            raise self.damaged(problem)
        for name, text in found.items():
            if text == HASHED_TABLES[name]:
                self.check_rows(name)
        if write and found != HASHED_TABLES:
            with self.connection:
                self.connection.execute("BEGIN IMMEDIATE")
                for name in TABLES:
                    self.make_table(name, found.get(name))

    def make_table(self, name: str, found: str | None) -> None:
        """A table with hashes; one of an earlier version gets them now."""
        if found is None:
            self.connection.execute(HASHED_TABLES[name])
        elif found == TABLES[name]:
            self.connection.execute(f"ALTER TABLE {name} ADD COLUMN {HASH}")
            for row in self.connection.execute(f"SELECT {COLUMNS[name]} FROM {name}").fetchall():  # noqa: S608
                query = f"UPDATE {name} SET sha256 = ? WHERE key = ?"  # noqa: S608
                self.connection.execute(query, (hash_of(row), row[0]))

    def check_rows(self, name: str) -> None:
        """Raise where a row is not what was written."""
        query = f"SELECT rowid, sha256, {COLUMNS[name]} FROM {name} WHERE rowid > ? ORDER BY rowid LIMIT {PIECE}"  # noqa: S608
        last = -(2**63)
        while piece := self.connection.execute(query, (last,)).fetchall():
            for number, found, *row in piece:
                if number <= last:
                    raise self.damaged(f"the rows of {name} are out of order")
                right = all(isinstance(cell, kind) for cell, kind in zip(row, KINDS[name], strict=True))
                if not right or found != hash_of(row):
                    raise self.damaged(f"the {name[:-1]} {row[0]!r} is not what was recorded")
                last = number

    def read(self, query: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a query."""
        with self.explained():
            for row in self.connection.execute(query, values):  # noqa: UP028 - `yield from` would close the cursor late
                yield row

    def write(self, table: str, row: Row, verb: str = "INSERT", facts: Sequence[Row] = ()) -> None:
        """Write a row, with its hash, in a transaction of its own; perhaps with facts, which replace earlier ones."""
        rows = [(table, row, verb), *(("facts", fact, "INSERT OR REPLACE") for fact in facts)]
        with self.explained(), self.connection:
            for place, values, how in rows:
                marks = ", ".join("?" * (len(values) + 1))
                query = f"{how} INTO {place} ({COLUMNS[place]}, sha256) VALUES ({marks})"
                self.connection.execute(query, (*values, hash_of(values)))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of SQLite as errors of the run; wrong use of it (closed, another thread) remains what it is."""
        try:
            yield
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise
        except sqlite3.Error as error:
            raise self.explain(error) from error
        except UnicodeDecodeError as error:
            raise self.damaged(str(error)) from error

    def explain(self, error: sqlite3.Error) -> RunError:
        """What an error of SQLite means for the run, and what can be done."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if self.path is None:
            return RunError(f"the store of a run in memory failed ({error})")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return RunError(f"{self.path} is locked by another process: try again when that is done")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).startswith(UNDECODABLE):
            return self.damaged(str(error))
        if code in ERRNOS:
            return write_failure(self.path, ERRNOS[code], str(error))
        again = resume(self.path.parent)
        return RunError(f"{self.path} could not be used ({error}); what is finished is kept: try again, {again}")

    def damaged(self, reason: str) -> RunError:
        """The error for a file that cannot be trusted."""
        rule = f"{self.path} must be a store that can be read ({reason})"
        if self.path is None:
            return RunError(rule)
        return RunError(f"{rule}: put a copy of it back, or remove it and begin again: {resume(self.path.parent)}")


def empty_store() -> bytes:
    """The content of a store without rows."""
    with closing(sqlite3.connect(":memory:")) as memory, memory:
        for text in HASHED_TABLES.values():
            memory.execute(text)
        memory.commit()
        return memory.serialize()


ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
"""What the codes of SQLite are to the operating system."""
UNDECODABLE = "Could not decode to UTF-8"
"""How Python's own error for damaged text begins; it has no code."""


def hash_of(row: Sequence[Any]) -> str:
    """The SHA-256 of a row's content, types included."""
    plain = [[type(value).__name__, value.hex() if isinstance(value, bytes) else value] for value in row]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def write_failure(path: Path, code: int | None, reason: str) -> RunError:
    """The error for a file of a run that could not be written (or read, by a failing disk), and what can be done.

    A checkpoint lies one folder deeper than the other files of a run.
    """
    folder = path.parent.parent if path.parent.name == "checkpoints" else path.parent
    again = resume(folder) if (folder / "spec.json").exists() else "begin again"
    if code in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"no space left in {folder} (for {path.name}); free some, then {again}")
    rule = "be on a disk that works" if code == errno.EIO else "be readable and writable"
    return RunError(f"{path} must {rule} ({reason}); what is finished is kept: mend this, then {again}")


def resume(folder: Path) -> str:
    """The command that continues a run."""
    return f"`augtree resume {folder}`"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Errors of the operating system, in reading or writing a file of a run, as errors of the run."""
    try:
        yield
    except OSError as error:
        raise write_failure(path, error.errno, error.strerror or str(error)) from error
    except ValueError as error:  # as `write_atomically` wraps it
        cause = error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise write_failure(path, cause.errno, cause.strerror or str(cause)) from error


def write_file(path: Path, content: bytes) -> None:
    """Write a file of a run, in one step; what was there stays if anything goes wrong."""
    with writing(path):
        write_atomically(path, content)


def lost_work(folder: Path) -> Iterator[str]:
    """A note, where a run had begun but its store is empty or gone."""
    store = folder / "run.sqlite"
    results = [path for path in folder.iterdir() if not path.name.startswith(BARE)]
    if store.exists() or results or any((folder / "checkpoints").iterdir()):
        state = "is empty" if store.exists() else "is missing"
        yield f"{store} {state} although the run had begun: all is done from the start."


BARE = ("spec.json", "lock.sqlite", "checkpoints")
"""How the names begin of what a run's folder holds before anything is done."""
