"""Damaged files of a run: a valid state or a clear error, never silently another result."""

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import PolicyFileError, RunError
from augtree.runs.checkpoints import Checkpoints
from augtree.runs.database import TABLES
from augtree.runs.store import Run, checked_spec
from augtree.training.state import State
from support.benchmarks import benchmark
from support.damage import edit
from support.searches import TASK, bars

SPEC = {"version": 1, "kind": "test", "data": {"name": "bars", "source": {"source": "a"}}, "seed": 0}
reliability = benchmark("reliability_damage")


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


@pytest.fixture
def run(tmp_path):
    """The folder of a run with a few units and facts."""
    rng = np.random.default_rng(0)
    with Run.begin(tmp_path / "run", SPEC) as run:
        for i in range(12):
            run.unit(f"cool/{i}", lambda i=i: ({"candidate": f"Rotate({i})", "loss": rng.random()}, rng.random(60)))
        run.record_fact("status", "done")
        run.record_fact("budget", {"trainings": 2.5})
    return tmp_path / "run"


# ---- by chance


def test_a_damaged_store_is_never_silently_another(run):
    content = (run / "run.sqlite").read_bytes()
    outcome = reliability.damaged_file(run, "run.sqlite", lambda _: {})
    found = reliability.outcomes(content, 40, 100, lambda spoilt: outcome(spoilt).replace("the same result", "state"))
    assert set(found["truncated"]) == {"told, state", "a clear error"}  # nothing left, and something left
    assert found["truncated"]["told, state"] == 1
    assert set(found["bit flipped"]) == {"the same state", "a clear error"}
    assert found["bit flipped"]["a clear error"] > 20


def test_a_damaged_specification_is_never_silently_another(run):
    content = (run / "spec.json").read_bytes()
    counts: Counter[str] = Counter()
    for _, spoilt in reliability.damages(content, 40, 100):
        (run / "spec.json").write_bytes(spoilt)
        try:
            spec = dict(checked_spec(run))
            spec["data"] = {**spec["data"], "source": SPEC["data"]["source"]}  # judged by the data's fingerprint
            counts["same" if spec == SPEC else "another"] += 1
        except RunError:
            counts["error"] += 1
    assert counts["another"] == 0
    assert counts["error"] > 100


def test_a_damaged_checkpoint_is_trained_again(tmp_path):
    trainer = TASK.prepare(bars(0, 0.5, 16, 16))
    with Run.begin(tmp_path / "run", SPEC) as run:
        weights = {"weights": torch.arange(20.0)}
        Checkpoints(run, trainer).training("trunk/1", lambda: State(weights, 3))
        outcome = reliability.damaged_checkpoint(run, trainer, "trunk/1")
        content = (tmp_path / "run" / "checkpoints" / "trunk-1.safetensors").read_bytes()
        assert outcome(content) == "the same state"
        found = reliability.outcomes(content, 40, 100, outcome)
    assert found == {"truncated": {"trained again": 40}, "bit flipped": {"trained again": 100}}


def test_a_damaged_policy_is_valid_or_refused(tmp_path):
    tree = at.Tree().with_node(1, at.transforms.Rotate(0.6), p=0.75).with_node(2, at.transforms.RandAugment(), p=0.5)
    tree.save(tmp_path / "tree.json")
    content = (tmp_path / "tree.json").read_bytes()
    found = reliability.outcomes(content, 40, 100, reliability.damaged_policy(tmp_path / "tree.json"))
    edited = "another valid policy (as if edited)"
    assert found["truncated"] == {"a clear error": 39, "the same policy": 1}  # without the last line feed
    assert found["bit flipped"]["a clear error"] > 80
    assert set(found["bit flipped"]) <= {"a clear error", edited, "the same policy"}
    (tmp_path / "tree.json").write_bytes(content[:-3])
    with pytest.raises(PolicyFileError):
        at.load(tmp_path / "tree.json")


# ---- by hand


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE units SET value = '{"candidate": "Rotate(3)"}' WHERE key = 'cool/3'""",
        """UPDATE units SET value = '{"loss": ' WHERE key = 'cool/3'""",
        """UPDATE units SET value = '[1]' WHERE key = 'cool/3'""",
        """UPDATE units SET losses = x'00' WHERE key = 'cool/3'""",
        """UPDATE units SET losses = 'many' WHERE key = 'cool/3'""",
        """UPDATE units SET forward = 'many' WHERE key = 'cool/3'""",
        """UPDATE units SET seconds = 1e9 WHERE key = 'cool/3'""",
        """UPDATE units SET key = 'cool/33' WHERE key = 'cool/3'""",
        """UPDATE units SET sha256 = '' WHERE key = 'cool/3'""",
        """UPDATE facts SET value = '"begun"' WHERE key = 'status'""",
        """INSERT INTO facts (key, value) VALUES ('more', '1')""",
        """ALTER TABLE units RENAME TO parts""",
        """ALTER TABLE units RENAME COLUMN forward TO ahead""",
        """DROP TABLE facts""",
        """CREATE TABLE more (key TEXT)""",
    ],
)
def test_a_store_edited_by_hand_is_damaged(run, statement, write):
    edit(run, statement)
    with pytest.raises(RunError) as caught:
        Run.open(run, write=write)
    message = str(caught.value)
    assert message.startswith(f"{run / 'run.sqlite'} must be a store that can be read (")
    assert message.endswith(f"put a copy of it back, or remove it and begin again: `augtree resume {run}`")
    assert "\n" not in message


def test_a_changed_specification_is_refused_but_the_data_may_move(run):
    path = run / "spec.json"
    path.write_text(json.dumps({**SPEC, "data": {**SPEC["data"], "source": {"source": "b"}}}))
    Run.open(run).close()
    path.write_text(json.dumps({**SPEC, "seed": 1}))
    with pytest.raises(RunError, match=f"{path} must be as it was when the run began, but it has been changed"):
        Run.open(run)
    with pytest.raises(RunError, match="must be as it was when the run began"):
        at.resume(run)


def test_a_store_whose_text_is_not_unicode_is_damaged(run):
    path = run / "run.sqlite"
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE facts", b"\xccREATE TABLE facts"))
    with pytest.raises(RunError, match="run.sqlite must be a store that can be read"):
        Run.open(run)


# ---- nothing left


@pytest.mark.parametrize("state", ["is empty", "is missing"])
def test_that_a_store_has_nothing_left_is_told(run, state):
    (run / "checkpoints" / "trunk-1.safetensors").write_bytes(b"")
    if state == "is empty":
        (run / "run.sqlite").write_bytes(b"")
    else:
        (run / "run.sqlite").unlink()
    with Run.open(run, write=False) as reader:
        assert reader.cost() == (0, 0, 0.0, 0)
    with Run.open(run) as again:
        note = f"{run / 'run.sqlite'} {state} although the run had begun: all is done from the start."
        assert again.notes == [note]
        again.unit("a", lambda: ({}, None))
    with Run.open(run) as again:
        assert again.notes == []


def test_a_new_run_has_lost_nothing(tmp_path):
    with Run.begin(tmp_path / "a", SPEC) as run:
        assert run.notes == []


def test_what_a_killed_process_was_writing_is_removed(run):
    torn = [run / ".tree.json.0123456789ab", run / "checkpoints" / ".trunk-1.safetensors.0123456789ab"]
    kept = [run / "checkpoints" / "trunk-1.safetensors", run / ".hidden"]
    for path in (*torn, *kept):
        path.write_bytes(b"1")
    Run.open(run, write=False).close()
    assert all(path.exists() for path in torn)
    Run.open(run).close()
    assert [path.exists() for path in (*torn, *kept)] == [False, False, True, True]


# ---- a store of an earlier version


@pytest.fixture
def old(run):
    """The same run as an earlier version has kept it, without hashes."""
    with closing(sqlite3.connect(run / "run.sqlite")) as store:
        units = store.execute("SELECT key, value, losses, forward, backward, seconds FROM units").fetchall()
        facts = store.execute("SELECT key, value FROM facts WHERE key <> 'spec'").fetchall()
    old = run.parent / "old"
    shutil.copytree(run, old)
    (old / "run.sqlite").unlink()
    with closing(sqlite3.connect(old / "run.sqlite")) as store, store:
        for name, text in TABLES.items():
            store.execute(text.replace(f"CREATE TABLE {name}", f"CREATE TABLE IF NOT EXISTS {name}"))
        store.executemany(
            "INSERT INTO units (key, value, losses, forward, backward, seconds) VALUES (?,?,?,?,?,?)", units
        )
        store.executemany("INSERT INTO facts VALUES (?, ?)", facts)
    return old


def test_a_store_of_an_earlier_version_is_read_and_protected_from_then_on(run, old):
    with Run.open(old, write=False) as reader:
        assert reader.fact("status") == "done"
    before = (old / "run.sqlite").read_bytes()
    Run.open(old, write=False).close()
    assert (old / "run.sqlite").read_bytes() == before  # a reader changes nothing
    assert reliability.kept(old) == reliability.kept(run)
    Run.open(old).close()
    edit(old, "UPDATE units SET value = '{}' WHERE key = 'cool/3'")
    with pytest.raises(RunError, match=r"the unit 'cool/3' is not what was recorded"):
        Run.open(old)
