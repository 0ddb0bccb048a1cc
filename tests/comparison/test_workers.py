"""Trainings of a comparison in workers: the same rows in the same order, failures and costs included."""

import numpy as np
import pytest

import augtree as at
from augtree import Tree
from augtree.comparison import Longer, Searched, compare, resume
from augtree.errors import ArgumentError
from augtree.runs.events import RowTrained
from augtree.runs.executors.base import Pool
from augtree.runs.store import Run
from augtree.search import Cooldown
from augtree.transforms import Flip, Invert, Posterize, Space
from support.blobs import MINE, Fragile, blobs, net, task
from support.inline import Inline

SEARCH = Searched(
    Space([Posterize(0.2)], basics=[Flip()]),
    3,
    Cooldown(looks=(0.3, 0.6), look=0.2, shortest=2, cool=0.3, renew=2),
    1,
)
ROWS = {"mine": MINE, "longer": Longer(2), "search": SEARCH, "none": None, "bright": Tree().with_node(1, Invert(1.0))}


def files(folder):
    return {name: (folder / name).read_bytes() for name in ("spec.json", "comparison.csv", "comparison.json")}


def test_rows_are_the_same_wherever_they_are_trained(tmp_path):
    data, how = blobs(groups=np.arange(80) % 2), {"task": task(model=Fragile), "policies": ROWS, "seeds": 2}
    events = {"here": [], "there": []}
    here = compare(data, **how, out=tmp_path / "here", watch=events["here"].append)
    workers = Inline()
    there = compare(data, **how, out=tmp_path / "there", watch=events["there"].append, executor=workers)
    assert here.rows == there.rows
    assert [bool(row.get("failed")) for row in here.rows] == [False, False, False, False, True] * 2
    assert files(tmp_path / "here") == files(tmp_path / "there")
    trained = [[event for event in each if isinstance(event, RowTrained)] for each in events.values()]
    assert trained[0] == trained[1]
    assert workers.begun == [f"train/{event.policy}/{event.seed}" for event in trained[0]]
    again = Inline()
    assert resume(tmp_path / "there", data=data, task=how["task"], executor=again).rows == here.rows
    assert again.begun == []  # nothing was left to do


def test_only_missing_rows_are_sent(tmp_path, cut):
    data, how = blobs(), {"task": task(), "policies": {"none": None, "mine": MINE}, "seeds": 2}
    whole = compare(data, **how, out=tmp_path / "whole")
    cut(3, "unit.recorded")
    with pytest.raises(cut.Error):
        compare(data, **how, out=tmp_path / "cut")
    cut(100)
    workers = Inline()
    found = compare(data, **how, out=tmp_path / "cut", executor=workers)
    assert workers.begun == ["train/mine/1"]
    assert found.rows == whole.rows
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_what_cannot_be_sent_is_told_before_anything_is_kept(tmp_path):
    with pytest.raises(ArgumentError, match="workers must be 1 where the task or a policy cannot be sent"):
        compare(blobs(), task(model=lambda: net()), {"none": None}, workers=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ArgumentError, match="workers must be left out where an executor is given"):
        at.compare(blobs(), task(), {"none": None}, workers=2, executor="serial")


class Backwards(Inline):
    """Does the jobs last first, and is interrupted after some."""

    def __init__(self, stop=100):
        super().__init__()
        self.stop = stop

    def pool(self, work):
        return BackwardsPool(super().pool(work), self.stop)


class BackwardsPool(Pool):
    def __init__(self, pool, stop):
        self.inner, self.stop = pool, stop

    def run(self, jobs, common=None, report=None):
        found = {}
        for number, key in enumerate(reversed(jobs)):
            if number == self.stop:
                raise KeyboardInterrupt
            found |= dict(self.inner.run({key: jobs[key]}, common, report))
        yield from ((key, found[key]) for key in jobs)


def test_each_row_is_kept_as_soon_as_it_ends(tmp_path):
    data, how = blobs(), {"task": task(), "policies": {"none": None, "ra": "randaugment"}, "seeds": 2}
    whole = compare(data, **how, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        compare(data, **how, out=tmp_path / "cut", executor=Backwards(stop=2))
    with Run.open(tmp_path / "cut", write=False) as run:
        assert [unit.key for unit in run.units()] == ["train/ra/1", "train/none/1"]
    rest = Backwards()
    assert compare(data, **how, out=tmp_path / "cut", executor=rest).rows == whole.rows
    assert sorted(rest.begun) == ["train/none/0", "train/ra/0"]
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_no_worker_begins_for_a_single_training():
    workers = Inline()
    compare(blobs(), task(), {"none": None}, seeds=1, executor=workers)
    assert workers.begun == []
