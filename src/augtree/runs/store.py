"""A run's folder.

    spec.json        what the run is about, written once
    run.sqlite       every finished unit of work, with its result and its cost
    checkpoints/     trained states, as safetensors
    lock.sqlite      locked while a process works here

A run is a program whose costly parts are *units*: each has a key and returns a small value. A finished unit is read
from the store instead of done again; so resuming means running the same program again, and the end is the same to
the byte.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.errors import OtherRunError, RunError
from augtree.files import check_folder, make_folder, write_atomically
from augtree.runs import faults

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS units (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL, losses BLOB,
  forward INTEGER NOT NULL, backward INTEGER NOT NULL, seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class Unit(NamedTuple):
    """A finished piece of work."""

    key: str
    value: dict[str, Any]
    losses: NDArray[np.float64] | None
    forward: int
    backward: int
    seconds: float


class Run:
    """One run; without a folder it is kept in memory alone."""

    def __init__(self, folder: Path | None, spec: Mapping[str, Any], store: sqlite3.Connection, lock: Any) -> None:
        self.folder, self.spec, self.store, self.lock = folder, spec, store, lock
        self.meter: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Forward and backward passes so far; whoever trains models sets it."""
        self.notes: list[str] = []
        self.fresh = 0
        """Units done by this process."""

    # ---- beginning and end

    @staticmethod
    def begin(folder: str | Path | None, spec: Mapping[str, Any]) -> Run:
        """Begin a run, or go on with the same one; a folder that holds another run is refused."""
        text = to_json("the specification", spec, indent=1, sort_keys=True) + "\n"
        if folder is None:
            return Run(None, spec, connect(":memory:"), None)
        path = Path(folder)
        make_run_folder(path)
        lock = acquire_lock(path)
        try:
            if (path / "spec.json").exists():
                different = differences(read_spec(path), json.loads(text))
                if different:
                    where = ", ".join(different)
                    raise OtherRunError(f"{path} holds another run (it differs in {where}): choose another --out")
            else:
                write_atomically(path / "spec.json", text.encode())
                faults.point("run.created")
            return open_store(path, lock)
        except BaseException:
            lock.close()
            raise

    @staticmethod
    def open(folder: str | Path, *, write: bool = True) -> Run:
        """Open an existing run; only one process at a time may write."""
        path = Path(folder)
        read_spec(path)
        lock = acquire_lock(path) if write else None
        try:
            return open_store(path, lock)
        except BaseException:
            if lock is not None:
                lock.close()
            raise

    def close(self) -> None:
        """Close the store and release the lock."""
        self.store.close()
        if self.lock is not None:
            self.lock.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- units

    def unit(self, key: str, work: Callable[[], tuple[dict[str, Any], NDArray[np.float64] | None]]) -> Unit:
        """The result of a piece of work, read from the store if it is finished and done now otherwise."""
        finished = self.find(key)
        if finished is not None:
            return finished
        begin, before = time.perf_counter(), self.meter()
        value, losses = work()
        seconds, after = round(time.perf_counter() - begin, 4), self.meter()
        text = to_json(f"the value of {key}", value)
        row = (key, text, pack(losses), int(after[0] - before[0]), int(after[1] - before[1]), seconds)
        faults.point("unit.computed")
        with self.store:
            self.store.execute(f"INSERT INTO units ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608
        self.fresh += 1
        faults.point("unit.recorded")
        return unpack(row)  # as a resumed run will read it

    def find(self, key: str) -> Unit | None:
        """A finished unit, or None."""
        row = self.store.execute(f"SELECT {COLUMNS} FROM units WHERE key = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else unpack(row)

    def units(self, prefix: str = "") -> Iterator[Unit]:
        """All finished units whose key begins with a prefix, in the order of their work."""
        query = f"SELECT {COLUMNS} FROM units WHERE substr(key, 1, ?) = ? ORDER BY number"  # noqa: S608
        for row in self.store.execute(query, (len(prefix), prefix)):
            yield unpack(row)

    def cost(self, *excluded: str) -> tuple[int, int, float, int]:
        """Forward passes, backward passes, seconds and number of units so far, without those of excluded prefixes."""
        query = "SELECT total(forward), total(backward), total(seconds), count(*) FROM units WHERE true"
        query += " AND substr(key, 1, ?) <> ?" * len(excluded)
        given = [value for prefix in excluded for value in (len(prefix), prefix)]
        forward, backward, seconds, units = self.store.execute(query, given).fetchone()
        return int(forward), int(backward), float(seconds), int(units)

    # ---- facts about the run as a whole

    def record_fact(self, key: str, value: Any) -> None:
        """Record a fact; it replaces an earlier one with the same key."""
        with self.store:
            self.store.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, to_json(key, value)))

    def fact(self, key: str, default: Any = None) -> Any:
        """A recorded fact."""
        row = self.store.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    # ---- results

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """Write result files, by name, in this order."""
        if self.folder is not None:
            for name, content in files.items():
                write_atomically(self.folder / name, content)
                faults.point("result.written")


COLUMNS = "key, value, losses, forward, backward, seconds"


def make_run_folder(folder: Path) -> None:
    """Make a run's folder; an existing one must be empty or a run's, however early that was killed."""
    make_folder(folder)
    check_run_folder(folder)


def check_run_folder(folder: Path | None, kind: str | None = None) -> None:
    """Raise where no run (of a kind) can be; nothing is created. None is a folder that is yet to be named."""
    if folder is None:
        return
    check_folder(folder)
    if (folder / "spec.json").is_file():
        there = read_spec(folder).get("kind")
        if kind not in (None, there):
            raise OtherRunError(f"{folder} holds another run (a {there}, not a {kind}): choose another --out")
        return
    inside = folder.iterdir() if folder.is_dir() else ()
    foreign = [path.name for path in inside if not path.name.startswith(BEGINNINGS)]
    if foreign:
        raise RunError(f"{folder} must be an empty folder or that of the same run, got {min(foreign)} in it")


BEGINNINGS = ("lock.sqlite", ".spec.json.")
"""What a run's folder holds before it has a spec.json."""


def open_store(folder: Path, lock: Any) -> Run:
    """A run in its folder; without a lock, nothing is created."""
    if lock is not None:
        (folder / "checkpoints").mkdir(exist_ok=True)
    there = lock is not None or (folder / "run.sqlite").is_file()
    try:
        return Run(folder, read_spec(folder), connect(str(folder / "run.sqlite") if there else ":memory:"), lock)
    except sqlite3.DatabaseError as error:
        raise RunError(f"{folder / 'run.sqlite'} must be a store that can be read ({error})") from error


def connect(path: str) -> sqlite3.Connection:
    """A store with its tables, checked for damage."""
    store = sqlite3.connect(path, timeout=10)
    try:
        store.executescript(SCHEMA)
        found = store.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
    except BaseException:
        store.close()
        raise
    return store


def acquire_lock(folder: Path) -> sqlite3.Connection:
    """A lock that is released when its process ends, however it ends."""
    lock = sqlite3.connect(folder / "lock.sqlite", timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorname == "SQLITE_BUSY":
            raise RunError(f"{folder} is in use by another process: one run has one writer") from error
        raise RunError(f"{folder / 'lock.sqlite'} must be a file that can be locked ({error})") from error
    return lock


def to_json(what: str, value: Any, **form: Any) -> str:
    """A value as JSON, which has no NaN."""
    try:
        return json.dumps(value, allow_nan=False, **form)
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} must be finite numbers, texts, and lists and mappings of these ({error})") from error


def read_spec(folder: Path) -> dict[str, Any]:
    """The specification of a run."""
    path = folder / "spec.json"
    if not path.is_file():
        raise RunError(f"{folder} must be the folder of a run, but it has no spec.json")
    try:
        spec: dict[str, Any] = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} must be JSON ({error})") from error
    version = spec.get("version") if isinstance(spec, dict) else None
    if version != VERSION:
        raise RunError(f"{path} must be of version {VERSION}, got {version!r}")
    return spec


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """The places in which two specifications differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [d for key in keys for d in differences(one.get(key), other.get(key), f"{place}/{key}")]
    return [] if one == other else [place or "/"]


def pack(losses: NDArray[np.float64] | None) -> bytes | None:
    """Losses as bytes."""
    return None if losses is None else losses.astype("<f8").tobytes()


def unpack(row: tuple[Any, ...]) -> Unit:
    """A row of the store as a unit."""
    key, value, losses, forward, backward, seconds = row
    array = None if losses is None else np.frombuffer(losses, "<f8").astype(np.float64)
    return Unit(key, json.loads(value), array, forward, backward, seconds)
