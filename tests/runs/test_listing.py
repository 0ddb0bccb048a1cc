import json
import sqlite3

import pytest

from augtree.runs.listing import RunSummary, list_runs
from augtree.runs.store import Run

SPEC = {"version": 1, "kind": "search", "data": {"name": "digits"}}


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


def test_a_run_in_a_few_words(tmp_path):
    with Run.begin(tmp_path / "a", SPEC) as run:
        readings = iter([(0, 0), (30, 10), (30, 10), (35, 10)])
        run.meter = lambda: next(readings)
        run.unit("trunk/1", lambda: ({}, None))
        run.unit("look/0/0", lambda: ({}, None))
        run.record_fact("status", "done")
        (found,) = list_runs(tmp_path)  # while somebody works there
        seconds = run.cost()[2]
    assert found == RunSummary(str(tmp_path / "a"), "search", "digits", "done", 2, seconds, 35, 10)


@pytest.mark.parametrize(
    ("fact", "status"),
    [("begun", "not done"), ("done", "done"), ("spent", "ended by its budget"), (None, "not done"), ("torn", "?")],
)
def test_how_far_a_run_is(tmp_path, fact, status):
    with Run.begin(tmp_path, SPEC) as run:
        if fact is not None:
            run.record_fact("status", fact)
    assert [run.status for run in list_runs(tmp_path)] == [status]


def test_runs_are_found_at_any_depth_in_the_order_of_their_folders(tmp_path):
    for place in ("b", "a/deeper/still", "c"):
        Run.begin(tmp_path / place, SPEC).close()
    places = [str(tmp_path / place) for place in ("a/deeper/still", "b", "c")]
    assert [run.run for run in list_runs(tmp_path)] == places


def test_a_folder_without_runs(tmp_path):
    assert list(list_runs(tmp_path)) == []
    assert list(list_runs(tmp_path / "nowhere")) == []


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("{", "must be JSON"),
        ("[1]", "must be of version 1"),
        ('{"version": 9}', "must be of version 1, got 9"),
        ('{"version": 1}', "must be the specification of a run"),
        ('{"version": 1, "kind": "search", "data": "digits"}', "must be the specification of a run"),
    ],
)
def test_what_cannot_be_read_says_why_and_hides_no_other(tmp_path, text, status):
    Run.begin(tmp_path / "good", SPEC).close()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "spec.json").write_text(text)
    bad, good = list_runs(tmp_path)
    assert (bad.kind, bad.data, bad.units) == ("?", "?", 0)
    assert status in bad.status
    assert str(tmp_path / "bad" / "spec.json") in bad.status
    assert (good.kind, good.data) == ("search", "digits")


def test_a_listing_does_not_check_the_structure_of_every_store(tmp_path, monkeypatch):
    Run.begin(tmp_path, SPEC).close()
    connect, statements = sqlite3.connect, []

    def traced(place, **options):
        connection = connect(place, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    assert [run.status for run in list_runs(tmp_path)] == ["not done"]
    assert statements
    assert not any("integrity_check" in statement for statement in statements)
    Run.open(tmp_path, write=False).close()
    assert any("integrity_check" in statement for statement in statements)


def test_a_broken_store_says_so(tmp_path):
    Run.begin(tmp_path, SPEC).close()
    (tmp_path / "run.sqlite").write_bytes(b"nothing of the kind" * 999)
    (found,) = list_runs(tmp_path)
    assert "must be a store that can be read" in found.status
    assert json.loads((tmp_path / "spec.json").read_text()) == SPEC
