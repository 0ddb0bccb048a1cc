"""CutMix: a box of another picture, its label by the box's share of the area."""

import pytest
import torch
import torch.nn.functional as F

from augtree.baselines.cutmix import CutMix, kept
from augtree.baselines.loop import shares
from augtree.baselines.mixup import partners
from augtree.errors import ArgumentError
from augtree.transforms import Identity
from support.blobs import by_hand, same
from support.methods import batch_of, grouped, task


def test_the_loss_is_that_of_pasted_pictures_for_labels_by_area():
    data = grouped()
    trainer, method = task().prepare(data), CutMix(p=1)
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    steps = 0
    for step in range(12):
        batch = batch_of(trainer, [3, 8, 11, 20, 5], step)
        left, top, right, bottom = method.box(batch, 8, 8)
        partner = partners(batch, "cutmix partner")
        pasted, pixels = batch.inputs.clone(), 0
        for y in range(top, bottom):
            for x in range(left, right):
                pixels += 1
                for i in range(5):
                    pasted[i, :, y, x] = batch.inputs[partner[i], :, y, x]
        outputs = trainer.model(by_hand(pasted, data))
        own, other = F.cross_entropy(outputs, batch.labels), F.cross_entropy(outputs, batch.labels[partner])
        assert torch.allclose(method.loss(trainer, batch), own * (1 - pixels / 64) + other * (pixels / 64), atol=1e-5)
        steps += 0 < pixels < 64
    assert steps > 6


def test_a_box_lies_within_the_picture_and_its_area_is_what_the_share_leaves_if_it_is_not_cut_off():
    trainer, method = task().prepare(grouped()), CutMix()
    boxes = [method.box(batch_of(trainer, [0], step), 60, 90) for step in range(300)]
    for left, top, right, bottom in boxes:
        assert 0 <= left <= right <= 90
        assert 0 <= top <= bottom <= 60
    whole = [(b[2] - b[0], b[3] - b[1]) for b in boxes if b[0] and b[1] and b[2] < 90 and b[3] < 60]
    assert len(whole) > 30
    assert all(abs(width / 90 - height / 60) < 0.06 for width, height in whole)  # as wide as high, in shares
    for step, (left, top, right, bottom) in enumerate(boxes):
        share = float(shares(batch_of(trainer, [0], step).key_of_step("cutmix share"), 1.0)[0])
        assert (right - left) * (bottom - top) <= (1 - share) * 60 * 90
        if left and top and right < 90 and bottom < 60:  # sides are even numbers of pixels
            assert kept((left, top, right, bottom), 60, 90) == pytest.approx(share, abs=0.06)
    assert kept((10, 10, 40, 40), 60, 90) == 1 - 900 / 5400


def test_so_many_steps_are_mixed():
    trainer = task().prepare(grouped())
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    plain = mixed = 0
    for step in range(200):
        batch = batch_of(trainer, [0, 1, 2, 3], step)
        half, always, never = (CutMix(p=p).loss(trainer, batch).item() for p in (0.5, 1, 0))
        assert half in (always, never)
        plain, mixed = plain + (half == never != always), mixed + (half == always != never)
    assert plain > 60
    assert mixed > 60


def test_without_any_mixing_it_is_a_plain_training():
    trainer = task().prepare(grouped())
    assert same(CutMix(p=0).fit(trainer, 4)[0], trainer.fit(Identity(), 4))


@pytest.mark.parametrize(("options", "words"), [({"alpha": 0}, "alpha must be"), ({"p": 1.1}, "p must be")])
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        CutMix(**options)
