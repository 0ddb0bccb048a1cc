"""A run's folder.

    spec.json        what the run is about, written once
    run.sqlite       every finished unit of work, with its result and its cost
    checkpoints/     trained states, as safetensors
    .rows/           of a comparison: what is finished of rows that are not
    lock.sqlite      locked while a process works here

A run is a program whose costly parts are *units*: each has a key and returns a small value. A finished unit is read
from the store instead of done again; so resuming means running the same program again, and the end is the same to
the byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.errors import OtherRunError, OutOfMemoryError, RunError, TransformError, lacks_memory, printable, shown
from augtree.files import check_folder, make_folder, remove_torn_files
from augtree.runs import faults
from augtree.runs.database import COLUMNS, Database, lost_work, resume, write_file, writing

VERSION = 1
ROWS = ".rows"
"""In the folder of a comparison: what is finished of rows that take several trainings, a folder each."""


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

    def __init__(self, folder: Path | None, spec: Mapping[str, Any], store: Database, lock: Any) -> None:
        self.folder, self.spec, self.store, self.lock = folder, spec, store, lock
        self.meter: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Forward and backward passes so far; whoever trains models sets it."""
        self.new_facts: Callable[[], Mapping[str, Any]] = dict
        """Facts that the work of a unit has brought, which are recorded with it; whoever trains models sets it."""
        self.notes: list[str] = []
        self.fresh = 0
        """Units done by this process."""

    # ---- beginning and end

    @staticmethod
    def begin(folder: str | Path | None, spec: Mapping[str, Any]) -> Run:
        """Begin a run, or go on with the same one; a folder that holds another run is refused.

        Of a run in a folder that cannot be written, only what is finished can be read.
        """
        text = to_json("the specification", spec, indent=1, sort_keys=True) + "\n"
        if folder is None:
            return Run(None, spec, Database(None, write=True), None)
        path = Path(folder)
        if (path / "spec.json").is_file() and not writable(path):
            check_same_run(path, text)
            return open_store(path, None)
        make_run_folder(path)
        lock = acquire_lock(path)
        try:
            if (path / "spec.json").exists():
                check_same_run(path, text)
            else:
                write_file(path / "spec.json", text.encode())
                faults.point("run.created")
            return open_store(path, lock)
        except BaseException:
            lock.close()
            raise

    @staticmethod
    def open(folder: str | Path, *, write: bool = True, thorough: bool = True) -> Run:
        """Open an existing run; only one process at a time may write. A listing need not be `thorough`."""
        path = Path(folder)
        read_spec(path)
        lock = acquire_lock(path) if write else None
        try:
            return open_store(path, lock, thorough=thorough)
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

    @property
    def read_only(self) -> bool:
        """Whether nothing of the run can change."""
        return self.folder is not None and self.lock is None

    # ---- units

    def unit(self, key: str, work: Callable[[], tuple[dict[str, Any], NDArray[np.float64] | None]]) -> Unit:
        """The result of a piece of work, read from the store if it is finished and done now otherwise."""
        finished = self.find(key)
        if finished is not None:
            return finished
        if self.read_only:
            rule = "must be a folder that can be written, because the run is not finished"
            raise RunError(f"{self.folder} {rule} ({key} is missing): change that, or resume a copy of it")
        begin, before = time.perf_counter(), self.meter()
        try:
            value, losses = work()
        except TransformError as error:
            raise TransformError(f"{error} (while {key} was computed): {self.after_failure}") from error
        except Exception as error:
            if not lacks_memory(error):
                raise
            what = str(error) if isinstance(error, OutOfMemoryError) else f"out of memory: {printable(str(error))}"
            raise OutOfMemoryError(f"{what} (while {key} was computed){self.after_lack_of_memory}") from error
        seconds, after = round(time.perf_counter() - begin, 4), self.meter()
        text = to_json(f"the value of {key}", value)
        row = (key, text, pack(losses), int(after[0] - before[0]), int(after[1] - before[1]), seconds)
        faults.point("unit.computed")
        facts = [(name, to_json(name, fact)) for name, fact in self.new_facts().items()]
        self.store.write("units", row, facts=facts)
        self.fresh += 1
        faults.point("unit.recorded")
        return self.unpack(row)  # as a resumed run will read it

    @property
    def after_failure(self) -> str:
        """What can be done after a transform has failed."""
        mend = "correct it" if self.folder is None else f"correct it and resume {self.folder}"
        return f"{mend}, or leave it out and begin a new run; nothing of this step was kept"

    @property
    def after_lack_of_memory(self) -> str:
        """What can be done after memory ran out."""
        return f"; what is finished is kept: free memory, then {resume(self.folder)}" if self.folder else ""

    def find(self, key: str) -> Unit | None:
        """A finished unit, or None."""
        query = f"SELECT {COLUMNS['units']} FROM units WHERE key = ?"  # noqa: S608
        return next((self.unpack(row) for row in self.store.read(query, (key,))), None)

    def units(self, prefix: str = "") -> Iterator[Unit]:
        """All finished units whose key begins with a prefix, in the order of their work."""
        columns = COLUMNS["units"]
        query = f"SELECT {columns} FROM units WHERE substr(key, 1, ?) = ? ORDER BY number"  # noqa: S608
        for row in self.store.read(query, (len(prefix), prefix)):
            yield self.unpack(row)

    def cost(self, *excluded: str) -> tuple[int, int, float, int]:
        """Forward passes, backward passes, seconds and number of units so far, without those of excluded prefixes."""
        query = "SELECT total(forward), total(backward), total(seconds), count(*) FROM units WHERE true"
        query += " AND substr(key, 1, ?) <> ?" * len(excluded)
        given = [value for prefix in excluded for value in (len(prefix), prefix)]
        forward, backward, seconds, units = next(self.store.read(query, given))
        return int(forward), int(backward), float(seconds), int(units)

    # ---- facts about the run as a whole

    def record_fact(self, key: str, value: Any) -> None:
        """Record a fact; it replaces an earlier one with the same key."""
        if not self.read_only:
            self.store.write("facts", (key, to_json(key, value)), "INSERT OR REPLACE")

    def fact(self, key: str, default: Any = None) -> Any:
        """A recorded fact."""
        found = self.store.read("SELECT value FROM facts WHERE key = ?", (key,))
        return next((self.parsed(f"the fact {key!r}", value) for (value,) in found), default)

    # ---- what is read

    def unpack(self, row: tuple[Any, ...]) -> Unit:
        """A row of the store as a unit."""
        key, value, losses, forward, backward, seconds = row
        found = self.parsed(f"the unit {shown(key)}", value)
        if not isinstance(found, dict) or len(losses or b"") % 8:
            raise self.store.damaged(f"the unit {shown(key)} has other kinds of values")
        array = None if losses is None else np.frombuffer(losses, "<f8").astype(np.float64)
        return Unit(key, found, array, forward, backward, seconds)

    def parsed(self, what: str, text: str) -> Any:
        """A recorded value."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.store.damaged(f"{what} is no JSON") from error

    # ---- results

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """Write result files, by name, in this order."""
        if self.folder is not None and not self.read_only:
            for name, content in files.items():
                write_file(self.folder / name, content)
                faults.point("result.written")


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder."""
    return os.access(folder, os.W_OK | os.X_OK)


def check_same_run(folder: Path, text: str) -> None:
    """Raise for the folder of a run with another specification."""
    different = differences(read_spec(folder), json.loads(text))
    if different:
        where = ", ".join(different)
        raise OtherRunError(f"{folder} holds another run (it differs in {where}): choose another --out")


def make_run_folder(folder: Path) -> None:
    """Make a run's folder; an existing one must be empty or a run's, however early that was killed."""
    make_folder(folder)
    check_run_folder(folder)


def check_run_folder(folder: Path | None, kind: str | None = None) -> None:
    """Raise where no run (of a kind) can be; nothing is created. None is a folder that is yet to be named."""
    if folder is None:
        return
    if (folder / "spec.json").is_file():
        there = read_spec(folder).get("kind")
        if kind not in (None, there):
            raise OtherRunError(f"{folder} holds another run (a {there}, not a {kind}): choose another --out")
        return
    check_folder(folder)
    inside = folder.iterdir() if folder.is_dir() else ()
    foreign = [path.name for path in inside if not path.name.startswith(BEGINNINGS)]
    if foreign:
        raise RunError(f"{folder} must be an empty folder or that of the same run, got {min(foreign)} in it")


BEGINNINGS = ("lock.sqlite", ".spec.json.")
"""What a run's folder holds before it has a spec.json."""


def open_store(folder: Path, lock: Any, *, thorough: bool = True) -> Run:
    """A run in its folder; without a lock, nothing is created."""
    path = folder / "run.sqlite"
    notes = []
    with writing(path):
        there = path.is_file() and path.stat().st_size > 0
        if lock is not None:
            (folder / "checkpoints").mkdir(exist_ok=True)
            remove_torn_files(folder, folder / "checkpoints")
            notes = [] if there else list(lost_work(folder))
    spec = read_spec(folder)
    store = Database(path if there or lock is not None else None, write=lock is not None, thorough=thorough)
    run = Run(folder, spec, store, lock)
    run.notes = notes
    try:
        check_spec(run)
    except BaseException:
        store.close()
        raise
    return run


def check_spec(run: Run) -> None:
    """Raise where spec.json has changed since the run began; but the data may have moved: it has a fingerprint."""
    data = run.spec.get("data")
    place_free = {**data, "source": None} if isinstance(data, dict) else data
    text = json.dumps({**run.spec, "data": place_free}, sort_keys=True)
    found, before = hashlib.sha256(text.encode()).hexdigest(), run.fact("spec")
    if before is None and run.lock is not None:
        run.record_fact("spec", found)
    elif before not in (None, found):
        rule = "must be as it was when the run began, but it has been changed"
        raise RunError(f"{run.folder}/spec.json {rule}: put it back, or choose another --out")


def acquire_lock(folder: Path) -> sqlite3.Connection:
    """A lock that is released when its process ends, however it ends."""
    lock = None
    try:
        lock = sqlite3.connect(folder / "lock.sqlite", timeout=0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        if lock is not None:
            lock.close()
        if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
            raise RunError(f"{folder} is in use by another process: one run has one writer") from error
        rule = f"{folder / 'lock.sqlite'} must be a file that can be locked ({error})"
        raise RunError(f"{rule}: see to space and permissions in {folder}") from error
    return lock


def to_json(what: str, value: Any, **form: Any) -> str:
    """A value as JSON, which has no NaN."""
    try:
        return json.dumps(value, allow_nan=False, **form)
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} must be finite numbers, texts, and lists and mappings of these ({error})") from error


def checked_spec(folder: Path) -> Mapping[str, Any]:
    """The specification of a run, which must be as it was when the run began; damage to the store is found, too."""
    with Run.open(folder, write=False) as run:
        return run.spec


def read_spec(folder: Path) -> dict[str, Any]:
    """The specification of a run."""
    path = folder / "spec.json"
    with writing(path):
        if not path.is_file():
            why = "it has no spec.json" if folder.is_dir() else "there is no such folder"
            raise RunError(f"{folder} must be the folder of a run, but {why}")
        content = path.read_bytes()
    try:
        spec: dict[str, Any] = json.loads(content)
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
