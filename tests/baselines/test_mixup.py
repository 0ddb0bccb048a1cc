"""mixup: the loss of a blend for the blended label."""

import numpy as np
import pytest
import torch

from augtree.baselines.mixup import Mixup
from augtree.errors import ArgumentError
from augtree.transforms import Identity
from support.blobs import blobs, by_hand, same
from support.methods import batch_of, grouped, task


def in_eval(trainer, state=None):
    """A trainer whose model gives every sample the same whatever the batch is."""
    trainer.load(trainer.fresh(0) if state is None else state)
    trainer.model.eval()
    return trainer


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_cross_entropy_of_blended_pictures_for_blended_labels(smoothing):
    data = grouped()
    trainer, method = in_eval(task(label_smoothing=smoothing).prepare(data)), Mixup(alpha=1.0)
    batch = batch_of(trainer, [3, 8, 11, 20])
    share, partner = method.draw(batch)
    assert 0 < share < 1
    assert sorted(partner.tolist()) == [0, 1, 2, 3]
    pictures = by_hand(batch.inputs, data)
    blended = share * pictures + (1 - share) * pictures[torch.from_numpy(partner)]
    hot = torch.nn.functional.one_hot(batch.labels, 2) * (1 - smoothing) + smoothing / 2
    soft = share * hot + (1 - share) * hot[torch.from_numpy(partner)]
    by_formula = -(soft * torch.log_softmax(trainer.model(blended), 1)).sum(1).mean()
    assert torch.allclose(method.loss(trainer, batch), by_formula, atol=1e-5)


def test_labels_that_are_several_are_blended_too():
    y = np.stack([np.arange(80) % 2, np.arange(80) // 2 % 2, np.arange(80) % 3 == 0], 1).astype(np.uint8)
    data = blobs(y=y)
    trainer, method = in_eval(task().prepare(data)), Mixup()
    batch = batch_of(trainer, [0, 1, 2, 3, 4])
    share, partner = method.draw(batch)
    pictures, labels = by_hand(batch.inputs, data), batch.labels.float()
    outputs = trainer.model(share * pictures + (1 - share) * pictures[partner])
    soft = share * labels + (1 - share) * labels[partner]
    by_formula = torch.nn.functional.binary_cross_entropy_with_logits(outputs, soft)
    assert torch.allclose(method.loss(trainer, batch), by_formula, atol=1e-5)


def test_shares_and_partners_are_drawn_anew_for_each_step():
    trainer, method = task().prepare(grouped()), Mixup()
    draws = [method.draw(batch_of(trainer, range(16), step)) for step in range(50)]
    assert len({share for share, _ in draws}) == 50
    assert len({tuple(partner) for _, partner in draws}) == 50
    assert 0.35 < np.mean([share for share, _ in draws]) < 0.65


def test_a_blend_of_samples_with_themselves_is_a_plain_training(monkeypatch):
    trainer = task().prepare(grouped())
    monkeypatch.setattr(Mixup, "draw", lambda self, batch: (1.0, np.arange(len(batch.rows))))
    state, row = Mixup().fit(trainer, 4)
    assert row == {}
    assert same(state, trainer.fit(Identity(), 4))


@pytest.mark.parametrize("alpha", [0, -1, "1", float("nan")])
def test_a_wrong_alpha_is_refused(alpha):
    with pytest.raises(ArgumentError, match="alpha must be a number in"):
        Mixup(alpha)
