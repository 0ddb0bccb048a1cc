"""Weighted training in parts, each a unit of a run."""

import numpy as np
import pytest
import torch

from augtree.errors import RunError
from augtree.forests import Weighting
from augtree.forests.algorithm2 import Weighed, WeightedTraining
from augtree.forests.checkpointed import PARTS, CheckpointedTraining
from augtree.runs.events import Stepped
from augtree.runs.store import VERSION, Run
from support.two_groups import forest, task, two_groups

DATA = two_groups(sizes=(60, 40))
SPEC = {"version": VERSION}
pytestmark = pytest.mark.usefixtures("quick_disk")


def training_of(steps=60, alpha=4):
    trainer = task(steps=steps).prepare(DATA)
    return WeightedTraining(trainer, forest(DATA), Weighting(alpha=alpha, eta=0.3), 0)


def same(one, other):
    assert all(torch.equal(one.theta.tensors[name], other.theta.tensors[name]) for name in one.theta.tensors)
    assert one.w.tolist() == other.w.tolist()
    assert (one.drawn, one.product, one.outer_losses) == (
        other.drawn,
        other.product,
        other.outer_losses,
    )
    assert list(one.history) == list(other.history)


@pytest.fixture
def whole():
    """The training in one go."""
    training = training_of()
    return training.run(range(training.rounds))


def test_the_parts_are_all_rounds_in_order():
    with Run.begin(None, SPEC) as run:
        for alpha, parts in ((4, 8), (1, 10), (60, 1)):  # 15, 60 and 1 rounds
            made = CheckpointedTraining(training_of(alpha=alpha), run, lambda _: None).parts
            assert [t for part in made for t in part] == list(range(training_of(alpha=alpha).rounds))
            assert len(made) == parts <= PARTS


def test_in_parts_it_ends_as_in_one_go_and_every_step_is_an_event(whole, tmp_path):
    events = []
    with Run.begin(tmp_path / "run", SPEC) as run:
        same(CheckpointedTraining(training_of(), run, events.append).finish(), whole)
        assert len(list(run.units("leg/"))) == 8
    assert [event.done for event in events if isinstance(event, Stepped)] == [*range(1, 61)]
    weighed = [(event.weights, event.outer) for event in events if isinstance(event, Weighed)]
    assert weighed == [(row["w"], row["outer"]) for row in whole.history]
    assert isinstance(events[4], Weighed)  # right after the four steps of a round
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 2  # the last ones


def test_parts_of_one_s_own_and_the_one_that_stays_in_memory(whole):
    with Run.begin(None, SPEC) as run:
        made = CheckpointedTraining(training_of(), run, lambda _: None, [range(3), range(3, 15)], kept=0)
        same(made.finish(), whole)
        training = training_of()
        first = training.run(range(3))
        middle = made.state_after(0)
        assert (middle.theta.step, middle.w.tolist()) == (12, first.w.tolist())
        assert list(middle.history) == []
        assert middle is made.state_after(0)


def test_what_is_done_is_not_trained_again(whole, tmp_path):
    with Run.begin(tmp_path / "run", SPEC) as run:
        CheckpointedTraining(training_of(), run, lambda _: None).finish()
    with Run.open(tmp_path / "run") as run:
        training, events = training_of(), []
        same(CheckpointedTraining(training, run, events.append).finish(), whole)
        assert training.trainer.passes.total == 0
        assert events == []


def test_what_was_stopped_goes_on_from_its_last_part(whole, tmp_path):
    class StopError(Exception):
        pass

    def stop(event):
        if isinstance(event, Stepped) and event.done == 30:
            raise StopError

    with Run.begin(tmp_path / "run", SPEC) as run, pytest.raises(StopError):
        CheckpointedTraining(training_of(), run, stop).finish()
    with Run.open(tmp_path / "run") as run:
        events = []
        same(CheckpointedTraining(training_of(), run, events.append).finish(), whole)
    assert events[0] == Stepped(25)  # three parts of two rounds of four steps were done


def test_a_lost_file_is_made_again_and_not_counted_twice(whole, tmp_path):
    with Run.begin(tmp_path / "run", SPEC) as run:
        CheckpointedTraining(training_of(), run, lambda _: None).finish()
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        path.unlink()
    with Run.open(tmp_path / "run") as run:
        training = training_of()
        made = CheckpointedTraining(training, run, lambda _: None)
        same(made.finish(), whole)
        assert training.trainer.passes.total == 0
        assert np.array_equal(made.state_after(0).w, made.train_again(0).w)


def test_a_part_that_is_missing_is_an_error(tmp_path):
    with Run.begin(tmp_path / "run", SPEC) as run:
        made = CheckpointedTraining(training_of(), run, lambda _: None)
        with pytest.raises(RunError, match="must hold part 2 of its weighted training"):
            made.state_after(2)
