"""`reliability.py fuzz`: policy files, index.csv and runs spoilt by Hypothesis: only errors of ours, no hang."""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from PIL import Image

import augtree as at
from augtree.errors import AugtreeError
from augtree.policies.codec import to_json
from augtree.runs.database import COLUMNS, hash_of
from augtree.runs.listing import list_runs
from augtree.runs.spec import restore
from augtree.runs.store import Run
from measure import machine, write
from reliability_memory import memory
from reliability_runs import DIGITS, KINDS, contents, quick_disk

SECONDS = 10
"""No spoilt file may take longer."""
LONGEST_MESSAGE = 9000
MOST_MB = 100
"""Memory may grow by this much over all of them."""
PARTS = [(at.transforms.Flip(), 0.5), (at.transforms.OneOf([at.transforms.Invert(0.2)]), 1.0)]
TREE = at.Tree().with_node(1, at.transforms.Rotate(0.6), 0.7).with_node(2, at.transforms.Chain(PARTS), 0.3)
POLICIES = [
    to_json(TREE),
    to_json(at.Forest({"photo": (TREE, 0.4), "a/b~c": (at.Tree(), 0.6)})),
    to_json(at.transforms.RandomCrop((0.1, 1.0))),
    to_json(at.transforms.TrivialAugment()),
]
INDEX = [
    ["path", "label", "group", "split", "site"],
    ["a/1.png", "cat", "day", "train", "x"],
    ["a/2.png", "dog", "night", "train", '"quoted, cell"'],
    ["a/3.png", "cat;dog", "day", "val", ""],
    ["b/4.png", "dog", "night", "test", "é"],
]
TEXTS = ("", "train", "Tree", "name", "nan", "1e999", "../1.png", "/etc/passwd", "C:\\1.png", "\x00", "\ud800",
         "__class__", "Chain", "a/1.png", "cat;dog", ";", "😀", "a" * 3000)  # fmt: skip
ODD_BYTES = (b"\xff\xfe", b'"', b"\x00", b"\n", b"[" * 9999)
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, 10**30, -0.0, 0.5, 1e308, 1e-320, float("nan"), float("inf"))

# ---- what is spoilt, and how

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.integers(), st.floats(), st.text()
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values within a value of JSON."""
    yield before
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*before, key))


@st.composite
def spoilt_values(draw: Any, document: Any) -> Any:
    """A value of JSON in which some are replaced, removed, moved or nested."""
    whole = [copy.deepcopy(document)]
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(list(places(whole))[1:]))
        owner: Any = whole
        for key in above:
            owner = owner[key]
        kind = draw(st.sampled_from(("replace", "remove", "nest", "move", "rename")))
        if kind == "remove" and len(above):
            del owner[last]
        elif kind == "nest":
            depth = draw(st.sampled_from((1, 3, 70)))
            for _ in range(depth):
                owner[last] = {"transform": owner[last]} if depth == 3 else [owner[last]]
        elif kind == "move":
            owner[last] = copy.deepcopy(draw(st.sampled_from([at_place(whole, place) for place in places(whole)])))
        elif kind == "rename" and isinstance(owner, dict):
            owner[draw(st.sampled_from(TEXTS) | st.text())] = owner.pop(last)
        else:
            owner[last] = draw(values)
        if not whole:
            break
    return whole[0] if whole else None


def at_place(value: Any, place: tuple[Any, ...]) -> Any:
    """The value at a place."""
    for key in place:
        value = value[key]
    return value


@st.composite
def spoilt_bytes(draw: Any, contents_: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of which some are replaced, removed or inserted; mostly none."""
    content = bytearray(draw(contents_))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        begin = draw(st.integers(0, len(content)))
        end = begin + draw(st.sampled_from((0, 0, 1, 2, 40)))
        content[begin:end] = draw(
            st.binary(max_size=8) | st.sampled_from((b"\xff\xfe", b'"', b"\x00", b"\n", b"[" * 9999))
        )
    return bytes(content)


def as_json(value: Any) -> bytes:
    """JSON, with NaN and lone surrogates where there are some."""
    try:
        return json.dumps(value).encode()
    except (RecursionError, ValueError):
        return b"[]"


def as_csv(rows: Any) -> bytes:
    """Lines of cells, whatever they are."""
    lines = rows if isinstance(rows, list) else [rows]
    cells = [line if isinstance(line, list) else [line] for line in lines]
    return "\n".join(",".join(str(cell) for cell in line) for line in cells).encode("utf-8", "surrogatepass")


policies = spoilt_bytes(st.sampled_from(POLICIES).flatmap(lambda text: spoilt_values(json.loads(text))).map(as_json))
tables = spoilt_bytes(spoilt_values(INDEX).map(as_csv))


# ---- the readers


def read_policy(place: Path, content: bytes) -> None:
    """A policy that is read can be written and is then the same."""
    path = place / "policy.json"
    path.write_bytes(content)
    policy = at.load(path)
    at.save(policy, place / "again.json")
    if at.load(place / "again.json") != policy:
        raise AssertionError("another policy after it was written")


def pictures(place: Path) -> Path:
    """A folder of small pictures, without a table."""
    folder = place / "pictures"
    for name in ("a/1.png", "a/2.png", "a/3.png", "b/4.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(folder / name)
    return folder


def read_table(place: Path, content: bytes) -> None:
    """A folder whose table is read has pictures."""
    folder = place / "pictures"
    (folder / "index.csv").write_bytes(content)
    data = at.data.load(folder, cache=place / "cache")
    if not 0 < len(data) <= 4:
        raise AssertionError(f"{len(data)} of 4 pictures")


class FinishedRun:
    """A finished search: its rows, and copies of its folder with others."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place, place / "run"
        KINDS["search"][1](self.folder)
        self.spec, self.after = json.loads((self.folder / "spec.json").read_text()), contents(self.folder)
        with closing(sqlite3.connect(self.folder / "run.sqlite")) as store:
            self.rows = {
                table: [list(row) for row in store.execute(f"SELECT {columns} FROM {table}")]
                for table, columns in COLUMNS.items()
            }

    def spoilt(self) -> st.SearchStrategy[tuple[str, Any]]:
        """Changed rows, with or without the hash that belongs to them, or a changed specification with its hash."""
        number = st.integers(0, 10**6)
        row = st.tuples(st.sampled_from(list(self.rows)), number, number, self.cells())
        return st.one_of(
            st.tuples(st.sampled_from(("rows", "rows with hashes")), st.lists(row, min_size=1, max_size=3)),
            st.tuples(st.just("spec"), spoilt_values(self.spec)),
        )

    def cells(self) -> st.SearchStrategy[Any]:
        """What may stand in a cell: other JSON, text, numbers, bytes."""
        value_of_a_unit = st.sampled_from([json.loads(row[1]) for row in self.rows["units"]])
        texts = value_of_a_unit.flatmap(spoilt_values).map(lambda value: as_json(value).decode())
        return st.one_of(
            texts, st.sampled_from(TEXTS[:-5]), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary()
        )

    def write(self, kind: str, change: Any) -> Path:
        """A copy of the run with a change."""
        folder = self.place / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        with closing(sqlite3.connect(folder / "run.sqlite")) as store, store:
            if kind == "spec":
                (folder / "spec.json").write_bytes(as_json(change))
                set_spec_hash(store, folder)
                return folder
            for table, which, column, cell in change:
                found = self.rows[table][which % len(self.rows[table])]
                column %= len(found)
                row = [*found[:column], cell, *found[column + 1 :]]
                try:
                    change_row(store, table, found[0], row, hashed=kind == "rows with hashes")
                except (sqlite3.Error, UnicodeEncodeError, OverflowError):  # SQLite has no such row
                    continue
        return folder

    def read(self, place: Path, spoilt: tuple[str, Any]) -> None:  # noqa: ARG002 - as the other readers
        """A run that is read is listed; without a forged hash, its result is the same."""
        folder = self.write(*spoilt)
        list(list_runs(folder))
        with Run.open(folder) as run:
            units, status = list(run.units()), run.fact("status")
            del units, status
        if spoilt[0] == "rows":
            at.resume(folder)
            if contents(folder) != self.after:
                raise AssertionError("another result")
        else:
            restore(folder, data=None if spoilt[0] == "spec" else DIGITS)


def set_spec_hash(store: sqlite3.Connection, folder: Path) -> None:
    """Let spec.json have the hash that the store has of it."""
    with suppressed():
        spec = json.loads((folder / "spec.json").read_bytes())
        data = spec.get("data")
        free = {**spec, "data": {**data, "source": None} if isinstance(data, dict) else data}
        value = json.dumps(hashlib.sha256(json.dumps(free, sort_keys=True).encode()).hexdigest())
        change_row(store, "facts", "spec", ["spec", value], hashed=True)


@contextmanager
def suppressed() -> Iterator[None]:
    """Where there is no such thing, nothing is done."""
    try:
        yield
    except (ValueError, AttributeError, TypeError, RecursionError):
        return


def change_row(store: sqlite3.Connection, table: str, key: str, row: list[Any], *, hashed: bool) -> None:
    """Replace a row; with its hash, or with the one that was there."""
    names = COLUMNS[table].split(", ")
    assignments = ", ".join(f"{name} = ?" for name in names)
    values_ = list(row)
    if hashed:
        assignments, values_ = f"{assignments}, sha256 = ?", [*row, stored_hash(store, names, table, key, row)]
    store.execute(f"UPDATE {table} SET {assignments} WHERE key = ?", (*values_, key))


def stored_hash(store: sqlite3.Connection, names: list[str], table: str, key: str, row: list[Any]) -> str:
    """The hash of a row as SQLite gives it back, which has types of its own."""
    store.execute(f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in names)} WHERE key = ?", (*row, key))
    found = store.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE key = ?", (row[0],)).fetchone()
    return hash_of(row if found is None else found)


# ---- the count


def checked(reader: Callable[[Path, Any], None], place: Path, outcomes: Counter[str]) -> Callable[[Any], None]:
    """Read something spoilt: it is valid or refused by an error of ours, within some seconds."""

    def check(spoilt: Any) -> None:
        with limited(SECONDS):
            try:
                reader(place, spoilt)
            except AugtreeError as error:
                if len(str(error)) > LONGEST_MESSAGE:
                    raise AssertionError(f"{len(str(error))} characters in a message") from error
                outcomes["refused"] += 1
            else:
                outcomes["valid"] += 1

    return check


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes longer, with an error."""

    def end(*_: object) -> None:
        raise TimeoutError(f"it took longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def readers(place: Path) -> dict[str, tuple[Callable[[Path, Any], None], st.SearchStrategy[Any]]]:
    """Each reader, and what it gets."""
    pictures(place)
    run = FinishedRun(place)
    return {"policy": (read_policy, policies), "index.csv": (read_table, tables), "run": (run.read, run.spoilt())}


def fuzz(check: Callable[[Any], None], spoilt: st.SearchStrategy[Any], examples: int, number: int) -> None:
    """Check so many examples; the number chooses which."""
    quiet = settings(
        max_examples=examples, deadline=None, database=None, derandomize=False, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    seed(number)(quiet(given(spoilt)(check)))()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10, help="how long, in all; a third for each reader")
    parser.add_argument("--seed", type=int, default=0, help="which examples")


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Fuzz each reader for a third of the time."""
    quick_disk()
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        found = readers(Path(folder))
        for name, (reader, spoilt) in found.items():
            outcomes: Counter[str] = Counter()
            begin, number, before = time.perf_counter(), options.seed, memory()
            while time.perf_counter() - begin < 60 * options.minutes / len(found):
                fuzz(checked(reader, Path(folder), outcomes), spoilt, 200, number)
                number += 1
            grew = round(memory() - before, 1)
            rows[name] = {**outcomes, "seconds": round(time.perf_counter() - begin), "mb_grew": grew}
            print(name, rows[name], flush=True)
    result = {"machine": machine(1), "minutes": options.minutes, "seed": options.seed, "readers": rows}
    write("reliability-fuzz", result)
    return {**result, "holds": all(row["mb_grew"] < MOST_MB for row in rows.values())}
