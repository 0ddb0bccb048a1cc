"""Cool-downs side by side: what goes to another process comes back as if it had been done here."""

from dataclasses import replace

import numpy as np
import torch

from augtree.runs.executors.messages import pack, unpack
from augtree.runs.workers import TrainerPool, TrainerWork
from augtree.search.branches import Branch, BranchRunner, run_branch
from augtree.search.play import Play
from support.inline import Inline
from support.searches import CORNERS, LINEAR, corners

MIXTURE = Play(CORNERS).mixture()


def made(count=2):
    trainer = LINEAR.prepare(corners())
    start = trainer.train(trainer.fresh(0), MIXTURE, [0.02] * 10, 0)
    rows = trainer.data.indices("val")
    each = [Branch(MIXTURE, (0.02, 0.01), seed, rows, keep_model=seed == 0) for seed in range(count)]
    return trainer, start, {f"b{seed}": branch for seed, branch in enumerate(each)}


def test_a_branch_is_a_training_from_its_state_judged_on_its_rows():
    trainer, start, each = made()
    branch = each["b0"]
    before = replace(trainer.passes)
    found = run_branch(trainer, start, branch)
    after = replace(trainer.passes)
    state = trainer.train(start, MIXTURE, branch.rates, branch.seed)
    assert torch.equal(found.state.tensors["weights"], state.tensors["weights"])
    assert (found.losses == trainer.calibrated_losses(state, branch.rows)).all()
    assert found.metric == trainer.measures(state, branch.rows)["accuracy"]
    passes = after.forward - before.forward, after.backward - before.backward
    assert passes == (2 * 64 + 2 * 128, 2 * 64)


def test_what_is_not_kept_is_its_losses_alone():
    trainer, start, each = made()
    branch = each["b1"]
    before = trainer.passes.total
    found = run_branch(trainer, start, branch)
    assert (found.state, found.metric) == (None, None)
    assert trainer.passes.total - before == 2 * 64 + 128 + 2 * 64


def test_in_another_process_it_is_the_same_and_counted_here():
    trainer, start, each = made(3)
    before = trainer.passes.total
    near = list(BranchRunner(trainer).run(start, each))
    cost = trainer.passes.total - before
    far = list(BranchRunner(trainer, Inline()).run(start, each))
    assert cost > 0
    assert trainer.passes.total == before + 2 * cost
    for one, two in zip(near, far, strict=True):
        assert (one.losses == two.losses).all()
        assert one.metric == two.metric
    assert torch.equal(near[0].state.tensors["weights"], far[0].state.tensors["weights"])
    assert near[0].state.step == far[0].state.step == 12
    assert far[1].state is None


def test_a_batch_that_was_halved_in_a_worker_stays_so():
    """What a worker has learned about its memory is known here from then on, and in all workers."""
    trainer, start, each = made(2)
    seen = [list(TrainerPool(trainer, halve, Inline()).run(each, start)) for _ in range(2)]
    assert seen == [[False, True], [True, True]]


def halve(trainer, common, argument):
    before, trainer.halved = trainer.halved, True
    return before


def test_what_nobody_takes_is_not_done():
    """Where one branch ends the search, those that wait are not begun."""
    trainer, start, each = made(3)
    executor = Inline()
    work = BranchRunner(trainer, executor).run(start, each)
    next(work)
    work.close()
    assert executor.begun == ["b0"]


def test_a_diverged_branch_has_no_metric():
    trainer, start, each = made()
    branch = each["b0"]
    start.tensors["weights"].fill_(float("nan"))
    found = run_branch(trainer, start, branch)
    assert not np.isfinite(found.losses).any()
    assert found.metric is None


def test_a_worker_computes_as_its_parent(monkeypatch):
    threads = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    work = unpack(pack(TrainerWork(LINEAR.prepare(corners()), run_branch)))
    assert threads == [torch.get_num_threads()]
    assert work.trainer.data.fingerprint == corners().fingerprint
    assert work.trainer.task == LINEAR.for_data(corners())
