"""Rows of several trainings: each part is kept when it is done."""

from types import SimpleNamespace

import pytest

import augtree as at
from augtree.baselines import METHODS
from augtree.baselines.parts import Parts
from augtree.comparison import Searched
from augtree.runs.events import WATCH, Working
from augtree.runs.listing import list_runs
from augtree.training.trainer import ModelTrainer
from augtree.transforms import Invert, Space
from support.blobs import blobs
from support.methods import fitting, grouped, quick, task

SEVERAL = ["randaugment-tuned", "fast-autoaugment", "greedy-sequence", "exhaustive", "paper", "search"]


def asked(name):
    return Searched(Space([Invert(1.0)]), budget=2) if name == "search" else quick(name)


class StoppedError(BaseException):
    """As Ctrl-C."""


@pytest.fixture
def limited(monkeypatch):
    """Count the steps of trainings, and stop before too many."""
    state, train = SimpleNamespace(steps=0, most=10**9), ModelTrainer.train

    def counted(self, start, policy, rates, *given, **named):
        if state.steps >= state.most:
            raise StoppedError
        state.steps += len(rates)
        return train(self, start, policy, rates, *given, **named)

    monkeypatch.setattr(ModelTrainer, "train", counted)
    return state


@pytest.mark.parametrize("name", SEVERAL)
def test_a_stopped_row_goes_on_where_it_was_and_ends_the_same(name, tmp_path, limited):
    data = grouped()
    whole = at.compare(data, task(), {name: asked(name)}, seeds=[1], out=tmp_path / "whole")
    steps, limited.steps = limited.steps, 0
    limited.most = round(0.6 * steps)
    with pytest.raises(StoppedError):
        at.compare(data, task(), {name: asked(name)}, seeds=[1], out=tmp_path / "stopped")
    assert [run.kind for run in list_runs(tmp_path)] == ["compare", "compare"]
    kept = list((tmp_path / "stopped" / ".rows" / "0-1").rglob("run.sqlite"))
    before, limited.steps, limited.most = limited.steps, 0, 10**9
    resumed = at.resume(tmp_path / "stopped", data=data)
    assert kept
    assert resumed.rows == whole.rows  # the cost, too
    assert limited.steps < steps
    assert limited.steps >= steps - before
    assert not (tmp_path / "stopped" / ".rows").exists()
    for file in ("comparison.json", "comparison.csv"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_methods_of_several_trainings_keep_them(limited):
    """A list that grows with the methods: what trains more than twice must be kept in parts."""
    several = []
    for name in METHODS:
        method = quick(name)
        if "supervised" not in method.settings or "image" not in method.domains:
            continue
        limited.steps = 0
        asked, data = fitting(method, "supervised")
        method.fit(asked.prepare(data), 0)
        several += [name] if limited.steps > 2 * task().steps else []
    assert sorted(several) == sorted(set(SEVERAL) - {"search"})


def test_a_part_is_done_once_and_its_passes_count_each_time(tmp_path):
    done = []

    def work(trainer):
        trainer.passes.forward += 3
        trainer.passes.backward += 2
        done.append(1)
        return {"x": 1.5}

    for _ in range(2):
        trainer = SimpleNamespace(passes=SimpleNamespace(forward=10, backward=20))
        with Parts.begun(trainer, tmp_path / "row", {"row": "mine"}) as parts:
            assert parts.value("a", lambda t=trainer: work(t)) == {"x": 1.5}
        assert (trainer.passes.forward, trainer.passes.backward) == (13, 22)
    assert len(done) == 1


def test_a_folder_that_another_process_holds_is_left_alone(tmp_path):
    trainer = task().prepare(blobs())
    with Parts.begun(trainer, tmp_path / "row") as first, Parts.begun(trainer, tmp_path / "row") as second:
        first.value("a", lambda: {"by": "first"})
        assert second.value("a", lambda: {"by": "second"}) == {"by": "second"}
        assert first.value("a", dict) == {"by": "first"}


def test_the_progress_says_which_part_a_row_is_at():
    said = []
    token = WATCH.set(lambda event: said.append(event.text) if isinstance(event, Working) else None)
    try:
        at.compare(
            grouped(), task(), {"mine": asked("exhaustive"), "fast": asked("search")}, seeds=[3], watch=WATCH.get()
        )
    finally:
        WATCH.reset(token)
    assert "mine, seed 3: trees" in said
    assert any(text.startswith("fast, seed 3: ") for text in said)
