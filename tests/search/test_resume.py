"""Searches that are killed and resumed end with the same bytes."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import augtree as at
from augtree.errors import RunError
from augtree.runs import faults
from augtree.runs.events import Planned, Working
from augtree.runs.store import Run
from augtree.search.grow import NodeBuilt
from augtree.search.scorers.base import Scored
from augtree.tasks import Classification
from support.searches import INVERT
from support.tree_runs import SCORERS, again, files, search

pytestmark = pytest.mark.usefixtures("full_trees")


def passes(cut, tmp_path, name, **changes):
    """Every point that an uninterrupted run passes."""
    passed = cut(10**9)
    search(tmp_path / "counted", name, **changes)
    return list(passed)


@pytest.mark.parametrize("name", SCORERS)
def test_every_named_point_is_passed(cut, tmp_path, name):
    expected = set(faults.POINTS) - ({"checkpoint.written"} if name == "retrain" else set())
    assert set(passes(cut, tmp_path, name)) == expected


@pytest.mark.parametrize(("name", "stride"), [("density", 7), ("cooldown", 13), ("retrain", 31)])
def test_killed_at_any_point_it_ends_the_same(whole, cut, tmp_path, name, stride):
    """At every point (or every few) that the run passes, whatever its name."""
    count = len(passes(cut, tmp_path, name))
    assert count > 30
    for at_point in range(1 + count % stride, count + 1, stride):
        out = tmp_path / f"at-{at_point}"
        cut(at_point)
        with pytest.raises(cut.Error):
            search(out, name)
        cut(10**9)
        again(out)
        assert files(out) == files(whole / name), at_point
        shutil.rmtree(out)


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_again_and_again_it_ends_the_same(whole, cut, tmp_path, name, seed):
    rng = random.Random(seed)
    kills, out = 0, tmp_path / "a"
    while True:
        cut(rng.randint(1, 20))
        try:
            again(out) if (out / "spec.json").exists() and rng.random() < 0.5 else search(out, name)
            break
        except cut.Error:
            kills += 1
    assert kills > 3
    assert files(out) == files(whole / name)


def test_what_is_done_is_not_done_again(cut, tmp_path, monkeypatch):
    cut(25, "unit.recorded")
    with pytest.raises(cut.Error):
        search(tmp_path / "a")
    cut(10**9)
    made = []
    prepare = Classification.prepare
    monkeypatch.setattr(Classification, "prepare", lambda *a: made.append(prepare(*a)) or made[-1])
    result = again(tmp_path / "a")
    assert 0 < made[0].passes.total < result.cost.forward + result.cost.backward
    again(tmp_path / "a")
    assert made[1].passes.total == 0


SPOILS = {
    "deleted": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "overwritten": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", ["cooldown", "density"])
@pytest.mark.parametrize("spoil", SPOILS)
def test_lost_checkpoints_are_made_again(whole, cut, tmp_path, name, spoil):
    """All of them, again and again: a trunk then grows from its root, and nothing is charged twice."""
    out, kills, spoiled = tmp_path / "a", 0, 0
    while True:
        cut(6, "unit.recorded")
        try:
            search(out, name)
            break
        except cut.Error:
            kills += 1
        for path in (out / "checkpoints").iterdir():
            spoiled += 1
            SPOILS[spoil](path)
    assert kills > 2
    assert spoiled > 2
    assert files(out) == files(whole / name)


@pytest.mark.parametrize(("name", "what"), [("density", "model"), ("cooldown", "trunk")])
def test_checkpoints_do_not_pile_up(tmp_path, name, what):
    search(tmp_path / "a", name, depth=3)
    with Run.open(tmp_path / "a", write=False) as run:
        assert len(list(run.units(f"{what}/"))) > 3
    assert 1 <= len(list((tmp_path / "a" / "checkpoints").glob(f"{what}-*"))) <= 2


@pytest.mark.parametrize("kind", [Planned, Scored, NodeBuilt, Working])
def test_ctrl_c_leaves_a_run_that_can_be_resumed(whole, tmp_path, kind):
    def interrupt(event):
        if isinstance(event, kind):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "a", watch=interrupt)
    assert (tmp_path / "a" / "tree.json").exists() is (kind is Working)  # the tree is there before the check
    again(tmp_path / "a")
    assert files(tmp_path / "a") == files(whole / "retrain")


def test_ctrl_c_within_a_candidate_is_no_failure_of_it(tmp_path):
    pressed = []

    def impatient(picture):
        if not pressed:
            pressed.append(1)
            raise KeyboardInterrupt
        return picture

    fog = at.wrap(impatient, name="Fog")
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "a", space=[fog, INVERT], depth=1)
    result = again(tmp_path / "a", transforms=[fog])
    assert not any("failed" in row for row in result.history)


def test_only_one_works_in_a_folder(tmp_path):
    seen = []

    def second(event):
        if isinstance(event, NodeBuilt):
            with pytest.raises(RunError, match="is in use by another process: one run has one writer"):
                search(tmp_path / "a")
            seen.append(event.node)

    search(tmp_path / "a", depth=1, watch=second)
    assert seen == [1]


SCRIPT = """
import os, random, signal, sqlite3, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[2])
from support.cuts import quickly
from support.searches import QUICK
from augtree import data, resume, search_tree
from augtree.tasks import Classification
from augtree.transforms import Flip, Posterize, Space

place, faults = Path(sys.argv[1]), sys.argv[3:]
digits = data.load("digits", train=60, val=60)  # what is imported for it is there for all children
os.fsync, sqlite3.connect = lambda _: None, quickly(sqlite3.connect)

def search(out):
    task = Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16, device="cpu")
    search_tree(digits, task, Space([Posterize(0.2)], basics=[Flip()]), depth=2, scorer=QUICK, out=out, budget=8)

def child(work, fault="", seconds=None):
    pid = os.fork()
    if not pid:
        os.environ["AUGTREE_FAULT"] = fault
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]

since = time.monotonic()
assert child(lambda: search(place / "whole")) == 0
seconds = time.monotonic() - since
for fault in faults:
    out = place / fault.replace(":", "-")
    status = child(lambda: search(out), fault)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (fault, status)
    if fault == faults[-1]:  # once more on the way
        status = child(lambda: resume(out), "unit.computed:3")
        assert os.WIFSIGNALED(status), status
    assert child(lambda: resume(out)) == 0, fault
for number in range(2):  # at any moment
    out = place / f"moment-{number}"
    for kill in range(5):
        work = resume if (out / "spec.json").exists() else search
        assert child(lambda: work(out), seconds=random.random() * seconds * 0.7) in (0, signal.SIGKILL), number
    assert child(lambda: work(out)) == 0, number
"""
FAULTS = [*faults.POINTS, "result.written:6", "unit.recorded:12"]


def test_killed_by_the_system_and_resumed_from_the_folder_alone(tmp_path):
    """SIGKILL, about 20 times, in processes of their own; nothing but the folder is left."""
    here = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path, here, *FAULTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in (*(fault.replace(":", "-") for fault in FAULTS), "moment-0", "moment-1"):
        assert files(tmp_path / name) == files(tmp_path / "whole"), name
