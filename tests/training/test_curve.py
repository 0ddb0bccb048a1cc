import numpy as np
import pytest
import torch

from augtree.training.curve import POINTS, LossCurve
from augtree.training.state import arrived
from augtree.transforms import Identity
from support.blobs import blobs, task


def test_the_curve_is_the_mean_loss_of_each_part():
    losses = np.random.default_rng(0).random(50)
    curve = LossCurve(50, torch.device("cpu"))
    for step, loss in enumerate(losses):
        curve.add(step, torch.tensor(loss))
    points = curve.points(100, 50)
    assert len(points) <= POINTS
    size = points[0][0] - 100
    for (end, mean), start in zip(points, range(0, 50, size), strict=True):
        assert mean == pytest.approx(losses[start : end - 100].mean(), abs=1e-5)
    assert points[-1][0] == 150


def test_losses_that_are_not_finite_have_no_point():
    curve = LossCurve(2, torch.device("cpu"))
    curve.add(0, torch.tensor(float("nan")))
    curve.add(1, torch.tensor(float("inf")))
    assert curve.points(0, 2) == ()


def test_a_training_ends_with_its_curve_and_takes_it_to_another_process():
    trainer = task(steps=4).prepare(blobs())
    state = trainer.fit(Identity(), 0)
    assert [step for step, _ in state.curve] == [1, 2, 3, 4]
    batch = next(iter(trainer.batches(Identity(), trainer.rows, None, 0, 0, 1)))
    trainer.load(trainer.fresh(0))
    trainer.model.train()
    first = trainer.step_loss(*batch, torch.empty(0))
    assert state.curve[0][1] == pytest.approx(float(first.detach()), rel=1e-4)
    make, given = state.__reduce__()
    assert make is arrived
    assert make(*given).curve == state.curve
