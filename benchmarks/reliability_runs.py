"""Tiny runs of every kind, in processes that can be killed, and what must be the same in their folders."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from mmap import mmap
from pathlib import Path
from typing import Any

import torch

import augtree as at
from augtree.data import Dataset
from augtree.runs.store import Run, Unit
from augtree.search import Cooldown, Density
from augtree.tasks import Classification, Contrastive
from augtree.transforms import Flip, Posterize, Space

torch.set_num_threads(1)  # a fork beside other threads might hang
DIGITS = at.data.load("digits", train=60, val=60)
GROUPED = at.data.group(DIGITS, lambda picture: "dark" if picture.float().mean() < 78 else "bright")
MODEL: dict[str, Any] = {"model": "cnn", "options": {"width": 2}, "steps": 10, "batch_size": 16, "device": "cpu"}
TASK, ENCODER = Classification(**MODEL), Contrastive(**MODEL)
SPACE, FEW = Space([Posterize(0.2)], basics=[Flip()]), [Posterize(0.2), Flip()]
TREE = at.Tree().with_node(1, Posterize(0.2), 0.5)
DENSITY: dict[str, Any] = {"scorer": Density(train=0.5, sure=0), "probabilities": (0.5, 1.0), "depth": 2}
POLICIES = {"none": None, "ta": "trivialaugment", "ra": "randaugment"}
SHORT: dict[str, Any] = {
    "scorer": Cooldown(looks=(0.3, 0.6), look=0.2, shortest=4, cool=0.3, renew=4, last=3),
    "budget": 8,
}
KINDS: dict[str, tuple[Dataset, Callable[[Path], object]]] = {
    "search": (DIGITS, lambda out: at.search_tree(DIGITS, TASK, SPACE, depth=2, out=out, **SHORT)),
    "density": (DIGITS, lambda out: at.search_tree(DIGITS, TASK, FEW, check=0.5, out=out, **DENSITY)),
    "forest": (GROUPED, lambda out: at.search_forest(GROUPED, TASK, SPACE, alpha=2, out=out, **SHORT)),
    "forest, paper": (
        GROUPED,
        lambda out: at.search_forest(GROUPED, TASK, FEW, method="paper", alpha=2, out=out, **DENSITY),
    ),
    "weights": (
        GROUPED,
        lambda out: at.fit_forest(GROUPED, TASK, {"dark": at.Tree(), "bright": TREE}, alpha=2, out=out),
    ),
    "compare": (GROUPED, lambda out: at.compare(GROUPED, TASK, POLICIES, seeds=2, out=out)),
    "evaluate": (DIGITS, lambda out: at.evaluate(DIGITS, ENCODER, {"none": None, "mine": TREE}, seeds=2, out=out)),
    "train": (DIGITS, lambda out: at.train(DIGITS, TASK, TREE, out=out)),
}
"""The data of each kind of run, and the run."""
NOT_COMPARED = ("run.sqlite", "lock.sqlite")


class Meter(mmap):
    """The units that a process has begun, and when the last one was begun; it survives that process."""

    def __new__(cls) -> Meter:
        return super().__new__(cls, -1, 16)

    def begin(self) -> None:
        """Note that a unit begins."""
        self[:] = struct.pack("qd", self.units + 1, time.monotonic())

    @property
    def units(self) -> int:
        """How many units were begun."""
        return int(struct.unpack("qd", self[:])[0])

    @property
    def last(self) -> float:
        """When the last of them was begun."""
        return float(struct.unpack("qd", self[:])[1])


def begin(work: Callable[[], object], fault: str = "", meter: Meter | None = None) -> int:
    """Do some work in a process of its own: its id."""
    pid = os.fork()
    if pid:
        return pid
    os.environ["AUGTREE_FAULT"] = fault
    quick_disk()
    if meter is not None:
        metered(meter)
    try:
        sys.stdout = sys.stderr = io.StringIO()
        work()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def killed(pid: int) -> bool:
    """Wait for a process: whether it was killed; an error in it is one here."""
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise RuntimeError(f"a run that was resumed ended with status {status}, see above")
    return False


def quick_disk() -> None:
    """Do not wait for the disk: what a process has written survives it, and no power is cut here."""
    connect = sqlite3.connect

    def connected(place: str, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(place, **options)
        if not str(place).endswith("lock.sqlite"):
            connection.execute("PRAGMA synchronous = OFF")
        return connection

    setattr(sqlite3, "connect", connected)  # noqa: B010 - for mypy
    setattr(os, "fsync", lambda _: None)  # noqa: B010


def metered(meter: Meter) -> None:
    """Count the units that are begun."""
    compute = Run.unit

    def unit(run: Run, key: str, work: Callable[[], Any]) -> Unit:
        def counted() -> Any:
            meter.begin()
            return work()

        return compute(run, key, counted)

    setattr(Run, "unit", unit)  # noqa: B010


def recorded(out: Path) -> int:
    """The finished units in a folder and in those below it."""
    count = 0
    for path in out.rglob("run.sqlite"):
        store = sqlite3.connect(path)
        try:
            count += int(store.execute("SELECT count(*) FROM units").fetchone()[0])
        except sqlite3.OperationalError:  # killed before it had tables
            continue
        finally:
            store.close()
    return count


# ---- what must be the same


def contents(out: Path) -> dict[str, bytes]:
    """The files of a finished run; tables and reports without the seconds that it took."""
    paths = [path for path in out.rglob("*") if path.is_file() and path.name not in NOT_COMPARED]
    return {str(path.relative_to(out)): timeless(path) for path in paths if path.parent.name != "checkpoints"}


def timeless(path: Path) -> bytes:
    """The content of a file without times."""
    content = path.read_bytes()
    if path.suffix == ".json":
        return json.dumps(without_seconds(json.loads(content)), sort_keys=True).encode()
    if path.suffix == ".csv":
        rows = list(csv.DictReader(content.decode().splitlines()))
        return json.dumps([without_seconds(row) for row in rows]).encode()
    return content


def without_seconds(value: Any) -> Any:
    """A value of JSON without its times."""
    if isinstance(value, Mapping):
        return {key: without_seconds(each) for key, each in value.items() if "seconds" not in key}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


def different_bytes(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> int:
    """In how many bytes two folders differ; all of a file that only one of them has."""
    total = 0
    for name in {*one, *other}:
        a, b = one.get(name, b""), other.get(name, b"")
        total += sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))
    return total


def fingerprint(out: Path) -> str:
    """One hash of all the files."""
    state = sha256()
    for name, content in sorted(contents(out).items()):
        state.update(f"{name} {len(content)} ".encode() + content)
    return state.hexdigest()
