"""The SQLite file of a run beside others who use it, and what its errors mean."""

import sqlite3
import threading
from contextlib import closing

import pytest

from augtree.errors import RunError
from augtree.runs import database
from augtree.runs.database import Database
from augtree.runs.store import Run
from support.damage import edit

SPEC = {"version": 1, "kind": "test", "seed": 0}
ROWS = 2 * database.PIECE + 50


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


@pytest.fixture
def folder(tmp_path):
    """The folder of a run whose rows take three pieces."""
    Run.begin(tmp_path, SPEC).close()
    with closing(Database(tmp_path / "run.sqlite", write=True)) as store:
        for number in range(ROWS):
            store.write("units", (str(number), "{}", None, 0, 0, 0.0))
    return tmp_path


# ---- beside others


def test_a_reader_that_checks_a_store_does_not_stop_its_writer(folder, monkeypatch):
    hash_of, hashed = database.hash_of, []
    with closing(sqlite3.connect(folder / "run.sqlite", timeout=0)) as writer:

        def written_meanwhile(row):
            hashed.append(row[0])
            with writer:
                writer.execute("UPDATE facts SET value = value")
            return hash_of(row)

        monkeypatch.setattr(database, "hash_of", written_meanwhile)
        Run.open(folder, write=False).close()
    assert hashed == [*map(str, range(ROWS)), "spec"]


@pytest.mark.parametrize("number", [0, database.PIECE - 1, database.PIECE, ROWS - 1])
def test_rows_of_every_piece_are_checked(folder, number):
    edit(folder, f"UPDATE units SET value = '1' WHERE key = '{number}'")
    with pytest.raises(RunError, match=f"the unit '{number}' is not what was recorded"):
        Run.open(folder, write=False)


def test_a_writer_waits_longer_than_any_reader_takes(tmp_path):
    with Run.begin(tmp_path, SPEC) as run, Run.open(tmp_path, write=False) as reader:
        waits = [next(one.store.read("PRAGMA busy_timeout"))[0] for one in (run, reader)]
    assert waits == [300_000, 10_000]


# ---- what errors mean


def test_wrong_use_is_no_damage(tmp_path):
    run = Run.begin(tmp_path, SPEC)
    caught = []

    def elsewhere():
        try:
            run.record_fact("a", 1)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [type(error) for error in caught] == [sqlite3.ProgrammingError]
    run.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        run.fact("status")


def test_only_damage_is_called_damage(folder):
    path = folder / "run.sqlite"
    with closing(Database(path, write=True)) as store:
        with pytest.raises(RunError) as caught:
            store.write("facts", ("spec", "1"))  # there already
        again = f"what is finished is kept: try again, `augtree resume {folder}`"
        assert str(caught.value) == f"{path} could not be used (UNIQUE constraint failed: facts.key); {again}"
        for code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            error = sqlite3.DatabaseError("torn")
            error.sqlite_errorcode = code
            assert "must be a store that can be read (torn): put a copy of it back" in str(store.explain(error))


def test_text_that_is_no_unicode_is_damage(folder):
    edit(folder, "UPDATE units SET value = CAST(x'ff' AS TEXT) WHERE key = '3'")
    with pytest.raises(RunError, match=r"must be a store that can be read \(Could not decode to UTF-8"):
        Run.open(folder)


# ---- what a lost store leaves


def test_the_journal_of_a_lost_store_is_not_applied_to_a_new_one(folder):
    path, journal = folder / "run.sqlite", folder / "run.sqlite-journal"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("UPDATE units SET value = '{\"x\": 1}'")
        left = journal.read_bytes()
    path.unlink()
    journal.write_bytes(left)
    with Run.open(folder) as run:
        assert run.cost()[3] == 0
        run.unit("a", lambda: ({}, None))
    with Run.open(folder) as run:
        assert [unit.key for unit in run.units()] == ["a"]
    assert not journal.exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [("losses", "text"), ("losses", b"123"), ("seconds", "soon"), ("value", 3), ("forward", "1e999")],
)
def test_a_row_of_other_kinds_of_values_is_damage_whatever_its_hash(tmp_path, column, value):
    run = Run.begin(tmp_path, {"version": 1})
    run.unit("a", lambda: ({"loss": 1.0}, None))
    run.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as store, store:
        store.execute(f"UPDATE units SET {column} = ?", (value,))
        row = store.execute(f"SELECT {database.COLUMNS['units']} FROM units").fetchone()
        store.execute("UPDATE units SET sha256 = ?", (database.hash_of(row),))
    with pytest.raises(RunError, match="unit 'a' (has other kinds of values|is not what was recorded)"):  # noqa: SIM117
        with Run.open(tmp_path, write=False) as run:
            run.find("a")
