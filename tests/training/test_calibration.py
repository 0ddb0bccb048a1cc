import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from augtree.training.calibration import temperature
from augtree.training.state import State
from augtree.transforms import Identity
from support.blobs import blobs, rows, task


def noisy_logits(count=500, classes=3, seed=0):
    """Logits that know something of their labels, but not all."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (count,), generator=rng)
    logits = 2 * F.one_hot(labels, classes) + 1.5 * torch.randn(count, classes, generator=rng)
    return logits.double(), labels


def one_label(logits, labels):
    return lambda t: F.cross_entropy(logits / t, labels, reduction="none")


def several_labels(logits, labels):
    return lambda t: F.binary_cross_entropy_with_logits(logits / t, labels, reduction="none").mean(1)


LOGITS, LABELS = noisy_logits()
KINDS = {
    "one": (one_label, LOGITS, LABELS),
    "several": (several_labels, LOGITS, F.one_hot(LABELS, 3).double()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0])
def test_no_temperature_of_a_fine_grid_is_better(kind, scale):
    losses, logits, labels = KINDS[kind]
    losses_at = losses(scale * logits, labels)
    grid = np.exp(np.linspace(math.log(0.05), math.log(20), 4001))
    means = [float(losses_at(t).mean()) for t in grid]
    found = temperature(losses_at)
    assert found == pytest.approx(grid[np.argmin(means)], rel=2e-3)
    assert 0.06 < found < 19  # a valley, not an end
    assert float(losses_at(found).mean()) <= min(means) + 1e-12


@pytest.mark.parametrize("sureness", [0.1, 0.5, 1.0, 3.0, 15.0])
def test_the_temperature_is_how_many_times_too_sure_the_model_is(sureness):
    """Exactly, where the labels are the probabilities themselves: the loss is lowest where they are met."""
    honest = torch.randn(200, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    chances = honest.softmax(1)
    found = temperature(lambda t: F.cross_entropy(sureness * honest / t, chances, reduction="none"))
    assert found == pytest.approx(sureness, rel=1e-6)
    chances = honest.sigmoid()
    assert temperature(several_labels(sureness * honest, chances)) == pytest.approx(sureness, rel=1e-6)


def test_two_classes_by_hand():
    """Right in 3 of 4, and each time as sure: best where the logit is the logarithm of the odds, log 3."""
    logits = torch.tensor([[2.0, 0.0]] * 4, dtype=torch.float64)
    losses_at = one_label(logits, torch.tensor([0, 0, 0, 1]))
    assert temperature(losses_at) == pytest.approx(2 / math.log(3), rel=1e-6)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert float(losses_at(temperature(losses_at)).mean()) == pytest.approx(entropy, abs=1e-12)


def test_labels_drawn_from_the_probabilities_need_no_other_temperature():
    honest = 2 * torch.randn(20000, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    labels = torch.multinomial(honest.softmax(1), 1, generator=torch.Generator().manual_seed(3))[:, 0]
    assert temperature(one_label(honest, labels)) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("labels", "end"), [([0, 1], 0.05), ([1, 0], 20.0)], ids=["always right", "always wrong"])
def test_without_a_valley_it_is_the_end_of_the_range(labels, end):
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert temperature(one_label(logits, torch.tensor(labels))) == pytest.approx(end, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.0, -1e6])
def test_a_model_that_says_the_same_of_all_classes_has_the_loss_of_guessing(value):
    losses_at = one_label(torch.full((6, 3), value, dtype=torch.float64), torch.arange(6) % 3)
    found = temperature(losses_at)
    assert 0.05 <= found <= 20
    assert losses_at(found).tolist() == pytest.approx([math.log(3)] * 6)


# ---- the trainer's losses


def linear():
    """A model whose logits are as large as its weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 2, bias=False))


PLACE = np.arange(96)
ONE = np.where((PLACE >= 48) & (PLACE % 5 == 0), 1 - PLACE % 2, PLACE % 2)
SEVERAL = np.stack([ONE, np.where((PLACE >= 48) & (PLACE % 7 == 0), PLACE % 2, 1 - PLACE % 2)], 1)
"""What the pictures tell, but for some of the validation samples."""


def louder(state, factor):
    """The state with all its logits times a factor."""
    return State({**state.tensors, "weights": factor * state.tensors["weights"]}, state.step)


@pytest.fixture(params=[ONE, SEVERAL], ids=["one", "several"])
def ready(request):
    """A trainer and a state that is right in some cases."""
    trainer = task(model=linear).prepare(blobs(48, 48, 0, y=request.param))
    return trainer, trainer.fit(Identity(), 0, 10)  # the best temperature is well within its range


def test_calibrated_losses_do_not_change_when_all_logits_do(ready):
    trainer, state = ready
    which = rows(trainer)
    found = trainer.calibrated_losses(state, which)
    for factor in (0.1, 0.25, 1.25):  # the best temperature stays within its range
        other = louder(state, factor)
        assert abs(trainer.losses(other, which) - trainer.losses(state, which)).max() > 0.1
        assert trainer.calibrated_losses(other, which) == pytest.approx(found, abs=1e-5)


def test_calibrated_losses_are_the_losses_of_divided_logits(ready):
    """Of each sample, at one temperature for all of them: that with the lowest mean."""
    trainer, state = ready
    which = rows(trainer)
    found = trainer.calibrated_losses(state, which)
    assert found.shape == (48,)
    assert found.dtype == np.float64
    assert found.mean() < trainer.losses(state, which).mean()
    grid = [
        trainer.losses(louder(state, 1 / t), which) for t in np.exp(np.linspace(math.log(0.05), math.log(20), 601))
    ]
    best = min(grid, key=lambda losses: losses.mean())
    assert found.mean() <= best.mean() + 1e-6
    assert found == pytest.approx(best, abs=0.02)


def test_calibration_changes_no_answer():
    """With two classes a sample is right where its loss is below log 2, before and after."""
    trainer = task(model=linear).prepare(blobs(48, 48, 0, y=ONE))
    state, which = trainer.fit(Identity(), 0, 20), rows(trainer)
    right = trainer.losses(state, which) < math.log(2)
    assert 0 < right.sum() < 48
    assert np.array_equal(trainer.calibrated_losses(state, which) < math.log(2), right)


def test_a_model_without_an_opinion_has_the_loss_of_guessing(ready):
    trainer, state = ready
    assert trainer.calibrated_losses(louder(state, 0), rows(trainer)) == pytest.approx([math.log(2)] * 48)


def test_what_is_no_number_stays_so(ready):
    """It is for others to call it a failure."""
    trainer, state = ready
    assert np.isnan(trainer.calibrated_losses(louder(state, math.nan), rows(trainer))).all()


def test_each_sample_goes_through_the_model_once(ready):
    trainer, state = ready
    before = trainer.passes.forward
    trainer.calibrated_losses(state, rows(trainer))
    assert trainer.passes.forward - before == 48
