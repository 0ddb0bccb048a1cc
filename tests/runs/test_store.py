import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from augtree.errors import ArgumentError, RunError
from augtree.runs.store import Run, differences, read_spec

SPEC = {"version": 1, "kind": "test", "task": {"lr": 0.1, "steps": 3}, "seed": 0}


def never():
    raise AssertionError("this unit is done already")


def value(**content):
    return lambda: (content, None)


# ---- units


@pytest.mark.parametrize("kept", [False, True])
def test_a_unit_is_done_once(tmp_path, kept):
    with Run.begin(tmp_path / "a" if kept else None, SPEC) as run:
        first = run.unit("a", lambda: ({"x": 0.1 + 0.2, "list": (1, 2)}, np.array([0.1, 1e-300])))
        again = run.unit("a", never)
        assert run.fresh == 1
        assert run.find("a").value == first.value == again.value == {"x": 0.1 + 0.2, "list": [1, 2]}
        assert first.losses.tolist() == again.losses.tolist() == [0.1, 1e-300]
        assert first[3:] == again[3:]
        assert run.find("b") is None


def test_units_survive_reopening_in_their_order(tmp_path):
    with Run.begin(tmp_path, SPEC) as run:
        for key in ("b/1", "a", "b/2", "bc"):
            run.unit(key, lambda key=key: ({"key": key}, np.float32([0.1]) if key == "a" else None))
        run.record_fact("status", "begun")
        first = run.find("a")
    with Run.begin(tmp_path, SPEC) as run:
        assert [unit.key for unit in run.units()] == ["b/1", "a", "b/2", "bc"]
        assert [unit.key for unit in run.units("b/")] == ["b/1", "b/2"]
        assert run.unit("a", never).losses.tolist() == first.losses.tolist() == [float(np.float32(0.1))]
        assert run.find("a").losses.dtype == np.float64
        assert run.find("bc").losses is None
        assert run.fact("status") == "begun"
        assert run.fresh == 0


def test_a_unit_that_raises_is_not_recorded(tmp_path):
    def broken():
        raise KeyboardInterrupt

    with Run.begin(tmp_path, SPEC) as run:
        with pytest.raises(KeyboardInterrupt):
            run.unit("a", broken)
        assert run.find("a") is None
        assert run.unit("a", value(x=1)).value == {"x": 1}


@pytest.mark.parametrize("bad", [math.nan, math.inf, {1, 2}, np.float32(1)])
def test_a_value_that_is_no_json_is_refused(tmp_path, bad):
    with Run.begin(tmp_path, SPEC) as run:
        with pytest.raises(RunError, match="the value of a must be finite numbers, texts"):
            run.unit("a", value(x=bad))
        with pytest.raises(RunError, match="status must be finite numbers"):
            run.record_fact("status", bad)
        assert list(run.units()) == []
        assert run.cost() == (0, 0, 0.0, 0)
        assert run.fact("status", "none") == "none"


def test_costs_are_added_up(tmp_path):
    with Run.begin(tmp_path, SPEC) as run:
        counts = [0, 0]
        run.meter = lambda: (counts[0], counts[1])

        def work():
            counts[0] += 10
            counts[1] += 4
            time.sleep(0.01)
            return {}, None

        run.unit("a", work)
        counts[0] += 1000  # between units: nobody's
        found = run.unit("b", work)
        run.unit("b", never)
        assert (found.forward, found.backward) == (10, 4)
        assert 0.01 <= found.seconds < 5
        forward, backward, seconds, units = run.cost()
        assert (forward, backward, units) == (20, 8, 2)
        assert seconds == pytest.approx(sum(unit.seconds for unit in run.units()))


def test_facts_are_replaced():
    with Run.begin(None, SPEC) as run:
        assert run.fact("status") is None
        run.record_fact("status", "begun")
        run.record_fact("status", {"done": [1, None]})
        assert run.fact("status") == {"done": [1, None]}


# ---- one writer


def test_a_second_writer_is_refused_and_a_reader_works(tmp_path):
    with Run.begin(tmp_path, SPEC) as run:
        run.unit("a", value(x=1))
        for second in (lambda: Run.open(tmp_path), lambda: Run.begin(tmp_path, SPEC)):
            with pytest.raises(RunError, match=f"{tmp_path} is in use by another process: one run has one writer"):
                second()
        with Run.open(tmp_path, write=False) as reader:
            assert [unit.key for unit in reader.units()] == ["a"]
            run.unit("b", value(x=2))
            assert reader.find("b").value == {"x": 2}
            assert reader.spec == SPEC
    Run.open(tmp_path).close()


def test_a_reader_makes_nothing(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    with Run.open(tmp_path, write=False) as reader:
        assert reader.cost() == (0, 0, 0.0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["spec.json"]


HOLDER = """
import sys, time
from augtree.runs.store import Run
run = Run.open(sys.argv[1])
run.unit("a", lambda: ({"x": 1}, None))
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_is_free_when_its_process_is_killed(tmp_path):
    Run.begin(tmp_path, SPEC).close()
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match="in use by another process"):
            Run.open(tmp_path)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with Run.open(tmp_path) as run:
        assert run.unit("a", never).value == {"x": 1}


@pytest.mark.parametrize("left", [(), ("lock.sqlite",), (".spec.json.0123456789ab", "lock.sqlite")])
def test_a_run_that_was_killed_before_it_began_can_begin(tmp_path, left):
    for name in left:
        (tmp_path / name).write_bytes(b"")
    with Run.begin(tmp_path, SPEC) as run:
        run.unit("a", value(x=1))
    assert read_spec(tmp_path) == SPEC


def test_a_run_that_was_killed_when_it_had_begun_goes_on(tmp_path):
    program = "import json, sys; from augtree.runs.store import Run; Run.begin(sys.argv[1], json.loads(sys.argv[2]))"
    surroundings = {**os.environ, "AUGTREE_FAULT": "run.created"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), json.dumps(SPEC)], env=surroundings, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "run.sqlite").exists()
    with Run.begin(tmp_path, SPEC) as run:
        assert run.unit("a", value(x=1)).value == {"x": 1}


# ---- whose folder it is


def test_a_folder_of_another_run_is_refused_and_the_places_are_told(tmp_path):
    Run.begin(tmp_path, SPEC).close()
    other = {**SPEC, "seed": 1, "task": {"lr": 0.1, "steps": 4}, "more": [1]}
    with pytest.raises(
        RunError, match=r"another run \(it differs in /more, /seed, /task/steps\): choose another --out"
    ):
        Run.begin(tmp_path, other)
    Run.begin(tmp_path, {**SPEC, "seed": 0.0}).close()  # the same number
    assert read_spec(tmp_path) == SPEC


def test_differences():
    assert differences({"a": 1, "b": {"c": [1]}}, {"b": {"c": [1]}, "a": 1}) == []
    assert differences({"a": 1}, {"b": 1}) == ["/a", "/b"]
    assert differences([1], [2]) == ["/"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="must be an empty folder or that of the same run, got thesis.tex in it"):
        Run.begin(tmp_path, SPEC)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ArgumentError, match="--out must be a folder that can be made"):
            Run.begin(place, SPEC)


def test_a_specification_must_be_json(tmp_path):
    with pytest.raises(RunError, match="the specification must be finite numbers"):
        Run.begin(tmp_path / "a", {**SPEC, "lr": math.nan})
    assert not (tmp_path / "a").exists()


def test_a_folder_without_a_run(tmp_path):
    for write in (True, False):
        with pytest.raises(RunError, match="must be the folder of a run, but it has no spec.json"):
            Run.open(tmp_path, write=write)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"version": 1', "must be JSON"),
        (b"\xff\xfe\x00", "must be JSON"),
        (b'{"version": 2}', "must be of version 1, got 2"),
        (b"[1]", "must be of version 1, got None"),
    ],
)
def test_a_broken_specification(tmp_path, text, words):
    Run.begin(tmp_path, SPEC).close()
    (tmp_path / "spec.json").write_bytes(text)
    for broken in (lambda: Run.open(tmp_path), lambda: Run.begin(tmp_path, SPEC)):
        with pytest.raises(RunError, match=f"spec.json {words}"):
            broken()
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    Run.begin(tmp_path, SPEC).close()  # nobody kept the lock


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("how", ["not one", "torn"])
def test_a_broken_store(tmp_path, how, write):
    with Run.begin(tmp_path, SPEC) as run:
        for i in range(6):
            run.unit(f"a{i}", lambda: ({}, np.zeros(3000)))
    path = tmp_path / "run.sqlite"
    whole = path.read_bytes()
    path.write_bytes(b"nothing of the kind" * 999 if how == "not one" else whole[:8192] + bytes(len(whole) - 8192))
    with pytest.raises(RunError, match="run.sqlite must be a store that can be read"):
        Run.open(tmp_path, write=write)
    path.write_bytes(whole)
    with Run.open(tmp_path) as run:  # nobody kept the lock
        assert run.cost()[3] == 6


def test_a_broken_lock(tmp_path):
    Run.begin(tmp_path, SPEC).close()
    (tmp_path / "lock.sqlite").write_bytes(b"nothing of the kind" * 999)
    with pytest.raises(RunError, match="lock.sqlite must be a file that can be locked"):
        Run.open(tmp_path)


def test_the_store_is_plain_sqlite(tmp_path):
    with Run.begin(tmp_path, SPEC) as run:
        run.unit("a", lambda: ({"x": 1}, np.array([1.5, -2.0])))
    store = sqlite3.connect(tmp_path / "run.sqlite")
    assert store.execute("SELECT key, value, losses FROM units").fetchall() == [
        ("a", '{"x": 1}', bytes.fromhex("000000000000f83f00000000000000c0"))
    ]
    store.close()


# ---- results


def test_a_run_in_memory_keeps_no_files():
    with Run.begin(None, SPEC) as run:
        run.write_all({"result.json": b"{}"})
        assert run.folder is None


def test_results_are_written_whole(tmp_path):
    with Run.begin(tmp_path, SPEC) as run:
        run.write_all({"result.json": b"{}"})
        run.write_all({"result.json": b"{1}"})
    assert (tmp_path / "result.json").read_bytes() == b"{1}"
    names = {"spec.json", "run.sqlite", "lock.sqlite", "checkpoints", "result.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
