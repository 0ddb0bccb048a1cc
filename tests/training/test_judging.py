import math

import pytest
import torch

from augtree.training.judging import label_losses


def test_losses_of_one_label_by_hand():
    logits, labels = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]]), torch.tensor([0, 1])
    assert label_losses(logits, labels).tolist() == pytest.approx([math.log(4), math.log(2)])
    smooth = 0.9 * math.log(4) + 0.1 * math.log(4 / 3)  # 0.2 is shared by both classes
    assert label_losses(logits, labels, 0.2).tolist() == pytest.approx([smooth, math.log(2)])


def test_losses_of_several_labels_by_hand():
    logits, labels = torch.tensor([[math.log(3), 0.0], [math.log(3), -math.log(3)]]), torch.tensor([[1, 0], [0, 1]])
    plain = [(math.log(4 / 3) + math.log(2)) / 2, math.log(4)]
    assert label_losses(logits, labels.byte()).tolist() == pytest.approx(plain)
    smooth = [
        ((0.9 * math.log(4 / 3) + 0.1 * math.log(4)) + math.log(2)) / 2,
        0.9 * math.log(4) + 0.1 * math.log(4 / 3),
    ]
    assert label_losses(logits, labels.byte(), 0.2).tolist() == pytest.approx(smooth)
