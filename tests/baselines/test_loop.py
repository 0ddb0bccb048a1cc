"""A training by another loss: with the task's own loss it is that of the trainer, to the bit."""

import numpy as np
import pytest

from augtree.baselines.loop import Batch, fit_by, outputs_of, shares
from augtree.keys import Key
from augtree.transforms import Identity
from support.blobs import MINE, forgetful_net, same
from support.methods import grouped, task


@pytest.mark.parametrize("more", [{}, {"optimizer": "adamw", "lr": 0.01}, {"model": forgetful_net, "options": {}}])
@pytest.mark.parametrize("policy", [None, MINE])
def test_with_the_loss_of_the_task_it_is_the_training_of_the_task(more, policy):
    trainer = task(**more, label_smoothing=0.1).prepare(grouped())

    def loss(batch):
        outputs = outputs_of(trainer, batch.inputs, len(batch.labels))
        return trainer.output_losses(outputs, batch.labels).mean()

    one, counted = fit_by(trainer, 5, loss, policy=policy), trainer.passes.total
    assert same(one, trainer.fit(policy or Identity(), 5))
    assert trainer.passes.total == 2 * counted


def test_the_loss_sees_whose_samples_it_has_and_after_is_called_after_each_step():
    trainer = task().prepare(grouped())
    seen, done = [], []

    def loss(batch):
        assert (trainer.samples_on_device(batch.rows) == batch.inputs).all()
        assert (trainer.labels_of(batch.rows) == batch.labels).all()
        seen.append(batch.step)
        return outputs_of(trainer, batch.inputs, len(batch.labels)).square().mean()

    state = fit_by(trainer, 5, loss, passes=2, after=lambda batch: done.append((batch.step, len(seen))))
    assert seen == [*range(8)]
    assert done == [(i, i + 1) for i in range(8)]
    assert state.step == 8
    assert trainer.passes.forward == trainer.passes.backward == 2 * 8 * 16


def test_draws_depend_on_role_step_seed_and_sample():
    rows = np.arange(6)
    batch = Batch(None, None, rows, rows, 3, 1)
    base = batch.key("a").uniform()
    assert np.array_equal(base, Key.of(1, rows, role="a", step=3).uniform())
    others = [Batch(None, None, rows, rows, 4, 1), Batch(None, None, rows, rows, 3, 2)]
    for other in (batch.key("b"), *(each.key("a") for each in others)):
        assert not np.isin(other.uniform(), base).any()
    assert batch.key_of_step("a").uniform()[0] == base[0]


def test_shares_are_of_the_beta_distribution():
    drawn = shares(Key.of(0, np.arange(4000)), 2.0).numpy()
    assert abs(drawn.mean() - 0.5) < 0.02
    assert abs(drawn.var() - 0.05) < 0.005  # of Beta(2, 2)
