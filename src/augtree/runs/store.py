"""A run's folder.

    spec.json        what was asked for, written once
    run.sqlite       every unit of work that is done, with its result and its cost
    checkpoints/     models on the way, as safetensors
    lock.sqlite      held while somebody works here

A run is a program whose costly parts are *units*: each has a name and gives a small value. A unit that is done is
read from the store, not done again; so to resume is to run the same program anew, and the end is the same
to the byte.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.errors import OtherRunError, RunError, need
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
    """A piece of work that is done."""

    key: str
    value: dict[str, Any]
    losses: NDArray[np.float64] | None
    forward: int
    backward: int
    seconds: float


class Meter:
    """What the current unit has cost so far; whoever runs models counts here."""

    def __init__(self) -> None:
        self.read: Callable[[], tuple[int, int]] = lambda: (0, 0)


class Run:
    """One run; without a folder it is kept in memory alone."""

    def __init__(self, folder: Path | None, spec: Mapping[str, Any], store: sqlite3.Connection, lock: Any) -> None:
        self.folder, self.spec, self.store, self.lock = folder, spec, store, lock
        self.meter = Meter()
        self.fresh = 0
        """Units done by this process."""

    # ---- beginning and end

    @staticmethod
    def begin(folder: str | Path | None, spec: Mapping[str, Any]) -> Run:
        """A new run; a folder that holds the same run is gone on with, one that holds another is refused."""
        text = encoded("the specification", spec, indent=1, sort_keys=True) + "\n"
        if folder is None:
            return Run(None, spec, connected(":memory:"), None)
        place = Path(folder)
        made(place)
        lock = locked(place)
        try:
            if (place / "spec.json").exists():
                different = differences(read_spec(place), json.loads(text))
                if different:
                    where = ", ".join(different)
                    raise OtherRunError(f"{place} holds another run (it differs in {where}): choose another --out")
            else:
                write_atomically(place / "spec.json", text.encode())
                faults.point("run.created")
            return opened(place, lock)
        except BaseException:
            lock.close()
            raise

    @staticmethod
    def open(folder: str | Path, *, write: bool = True) -> Run:
        """A run that is there; only one process at a time may write."""
        place = Path(folder)
        read_spec(place)
        lock = locked(place) if write else None
        try:
            return opened(place, lock)
        except BaseException:
            if lock is not None:
                lock.close()
            raise

    def close(self) -> None:
        """Let others work here."""
        self.store.close()
        if self.lock is not None:
            self.lock.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- units

    def unit(self, key: str, work: Callable[[], tuple[dict[str, Any], NDArray[np.float64] | None]]) -> Unit:
        """The result of a piece of work, which is done unless it has been."""
        known = self.find(key)
        if known is not None:
            return known
        begin, before = time.perf_counter(), self.meter.read()
        value, losses = work()
        seconds, after = round(time.perf_counter() - begin, 4), self.meter.read()
        text = encoded(f"the value of {key}", value)
        row = (key, text, packed(losses), int(after[0] - before[0]), int(after[1] - before[1]), seconds)
        faults.point("unit.computed")
        with self.store:
            self.store.execute(f"INSERT INTO units ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608
        self.fresh += 1
        faults.point("unit.recorded")
        return unpacked(row)  # as it will be read again, so that a resumed run goes on with the very same

    def find(self, key: str) -> Unit | None:
        """A unit that is done."""
        row = self.store.execute(f"SELECT {COLUMNS} FROM units WHERE key = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else unpacked(row)

    def units(self, prefix: str = "") -> Iterator[Unit]:
        """All units that are done, in their order."""
        query = f"SELECT {COLUMNS} FROM units WHERE substr(key, 1, ?) = ? ORDER BY number"  # noqa: S608
        for row in self.store.execute(query, (len(prefix), prefix)):
            yield unpacked(row)

    def cost(self, *without: str) -> tuple[int, int, float, int]:
        """Forward passes, backward passes, seconds and the number of units so far; some may be left out by prefix."""
        query = "SELECT total(forward), total(backward), total(seconds), count(*) FROM units WHERE true"
        query += " AND substr(key, 1, ?) <> ?" * len(without)
        given = [value for prefix in without for value in (len(prefix), prefix)]
        forward, backward, seconds, units = self.store.execute(query, given).fetchone()
        return int(forward), int(backward), float(seconds), int(units)

    # ---- facts: what is true of the run as a whole

    def tell(self, key: str, value: Any) -> None:
        """Write a fact down."""
        with self.store:
            self.store.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, encoded(key, value)))

    def fact(self, key: str, default: Any = None) -> Any:
        """A fact."""
        row = self.store.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    # ---- checkpoints

    def keep(self, name: str, tensors: Mapping[str, torch.Tensor], step: int) -> str:
        """Write a checkpoint; returns its hash."""
        if self.folder is None:
            return ""
        plain = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        content: bytes = need("safetensors.torch", "cli").save(plain, {"step": str(step)})
        write_atomically(self.folder / "checkpoints" / f"{name}.safetensors", content)
        faults.point("checkpoint.written")
        return hashlib.sha256(content).hexdigest()

    def kept(self, name: str, sha256: str) -> dict[str, torch.Tensor] | None:
        """A checkpoint, if it is there and whole."""
        if self.folder is None:
            return None
        path = self.folder / "checkpoints" / f"{name}.safetensors"
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != sha256:
            return None
        found: dict[str, torch.Tensor] = need("safetensors.torch", "cli").load(content)
        return found

    def drop(self, name: str) -> None:
        """Remove a checkpoint that nobody needs any more."""
        if self.folder is not None:
            (self.folder / "checkpoints" / f"{name}.safetensors").unlink(missing_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write a result file."""
        if self.folder is not None:
            write_atomically(self.folder / name, content)
            faults.point("result.written")


COLUMNS = "key, value, losses, forward, backward, seconds"


def made(place: Path) -> None:
    """Make a run's folder; one that is there must be empty or a run's, killed as early as may be."""
    make_folder(place)
    check_place(place)


def check_place(place: Path, kind: str | None = None) -> None:
    """Raise where there can be no run (of a kind); nothing is made."""
    check_folder(place)
    if (place / "spec.json").is_file():
        there = read_spec(place).get("kind")
        if kind not in (None, there):
            raise OtherRunError(f"{place} holds another run (a {there}, not a {kind}): choose another --out")
        return
    inside = place.iterdir() if place.is_dir() else ()
    strangers = [path.name for path in inside if not path.name.startswith(BEGINNINGS)]
    if strangers:
        raise RunError(f"{place} must be an empty folder or that of the same run, got {min(strangers)} in it")


BEGINNINGS = ("lock.sqlite", ".spec.json.")
"""What stands in a run's folder before its spec.json does."""


def opened(place: Path, lock: Any) -> Run:
    """A run in its folder; without a lock, nothing is made that is not there."""
    if lock is not None:
        (place / "checkpoints").mkdir(exist_ok=True)
    there = lock is not None or (place / "run.sqlite").is_file()
    try:
        return Run(place, read_spec(place), connected(str(place / "run.sqlite") if there else ":memory:"), lock)
    except sqlite3.DatabaseError as error:
        raise RunError(f"{place / 'run.sqlite'} must be a store that can be read ({error})") from error


def connected(place: str) -> sqlite3.Connection:
    """A store with its tables, whole."""
    store = sqlite3.connect(place, timeout=10)
    try:
        store.executescript(SCHEMA)
        found = store.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
    except BaseException:
        store.close()
        raise
    return store


def locked(folder: Path) -> sqlite3.Connection:
    """A lock that is let go when its process ends, however it ends."""
    lock = sqlite3.connect(folder / "lock.sqlite", timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorname == "SQLITE_BUSY":
            raise RunError(f"{folder} is in use by another process: one run has one writer") from error
        raise RunError(f"{folder / 'lock.sqlite'} must be a file that can be locked ({error})") from error
    return lock


def encoded(what: str, value: Any, **form: Any) -> str:
    """A value as JSON, which has no NaN."""
    try:
        return json.dumps(value, allow_nan=False, **form)
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} must be finite numbers, texts, and lists and mappings of these ({error})") from error


def read_spec(folder: Path) -> dict[str, Any]:
    """What a run was asked to do."""
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


def packed(losses: NDArray[np.float64] | None) -> bytes | None:
    """Losses as bytes."""
    return None if losses is None else losses.astype("<f8").tobytes()


def unpacked(row: tuple[Any, ...]) -> Unit:
    """A row as a unit."""
    key, value, losses, forward, backward, seconds = row
    array = None if losses is None else np.frombuffer(losses, "<f8").astype(np.float64)
    return Unit(key, json.loads(value), array, forward, backward, seconds)
