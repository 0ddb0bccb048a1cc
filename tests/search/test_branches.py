"""Cool-downs side by side: what goes to another process comes back as if it had been done here."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError
from augtree.search import branches
from augtree.search.branches import Branch, BranchRunner, begin_worker, branch_runner, run_branch
from augtree.search.play import Play
from support.inline import Inline
from support.searches import CORNERS, LINEAR, corners

MIXTURE = Play(CORNERS).mixture()


def made(count=2):
    trainer = LINEAR.prepare(corners())
    start = trainer.train(trainer.fresh(0), MIXTURE, [0.02] * 10, 0)
    rows = trainer.data.indices("val")
    return trainer, start, [Branch(MIXTURE, (0.02, 0.01), seed, rows, keep_model=seed == 0) for seed in range(count)]


def test_a_branch_is_a_training_from_its_state_judged_on_its_rows():
    trainer, start, (branch, _) = made()
    found = run_branch(trainer, start, branch)
    state = trainer.train(start, MIXTURE, branch.rates, branch.seed)
    assert torch.equal(found.state.tensors["weights"], state.tensors["weights"])
    assert (found.losses == trainer.calibrated_losses(state, branch.rows)).all()
    assert found.metric == trainer.measures(state, branch.rows)["accuracy"]
    assert (found.forward, found.backward) == (2 * 64 + 2 * 128, 2 * 64)


def test_what_is_not_kept_is_its_losses_alone():
    trainer, start, (_, branch) = made()
    found = run_branch(trainer, start, branch)
    assert (found.state, found.metric) == (None, None)
    assert (found.forward, found.backward) == (2 * 64 + 128, 2 * 64)


def test_in_another_process_it_is_the_same_and_counted_here():
    trainer, start, each = made(3)
    other = LINEAR.prepare(corners())
    before = trainer.passes.total
    near = list(BranchRunner(trainer).run(start, each))
    cost = trainer.passes.total - before
    far = list(BranchRunner(trainer, Inline(other)).run(start, each))
    assert trainer.passes.total == before + 2 * cost
    for one, two in zip(near, far, strict=True):
        assert (one.losses == two.losses).all()
        assert (one.metric, one.forward, one.backward) == (two.metric, two.forward, two.backward)
    assert torch.equal(near[0].state.tensors["weights"], far[0].state.tensors["weights"])
    assert near[0].state.step == far[0].state.step == 12
    assert far[1].state is None


def test_what_nobody_takes_is_not_done():
    """Where one branch ends the search, those that wait are called off."""
    trainer, start, each = made(3)
    waiting = []

    class Pool(Inline):
        def submit(self, *arguments):
            waiting.append(super().submit(*arguments) if not waiting else Future())
            return waiting[-1]

    work = BranchRunner(trainer, Pool(trainer)).run(start, each)
    next(work)
    work.close()
    assert [future.cancelled() for future in waiting] == [False, True, True]


def test_a_diverged_branch_has_no_metric():
    trainer, start, (branch, _) = made()
    start.tensors["weights"].fill_(float("nan"))
    found = run_branch(trainer, start, branch)
    assert not np.isfinite(found.losses).any()
    assert found.metric is None


def test_one_worker_is_this_process():
    trainer = LINEAR.prepare(corners())
    with branch_runner(trainer, 1) as hands:
        assert hands.pool is None


def test_a_worker_that_dies_is_told(monkeypatch):
    class Pool:
        def __init__(self, *_):
            pass

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(branches, "ProcessPoolExecutor", Pool)
    trainer = LINEAR.prepare(corners())
    with (
        pytest.raises(ArgumentError, match=r"workers must be 1 in a script .* or a worker died, got 3"),
        branch_runner(trainer, 3),
    ):
        raise BrokenProcessPool


def test_a_worker_computes_as_its_parent():
    import pickle

    threads = torch.get_num_threads()
    begin_worker(pickle.dumps((LINEAR, corners(), 1)))
    assert torch.get_num_threads() == 1
    torch.set_num_threads(threads)
    assert branches.worker_trainer[0].data.fingerprint == corners().fingerprint
