"""Losses of predictions against labels: classes [N], or, multi-label, zeros and ones [N, K]."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from augtree.training.calibration import temperature

FEW_NUMBERS = 1 << 20


def label_losses(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The loss of each sample: cross-entropy, or, multi-label, the mean binary cross-entropy of its labels."""
    if labels.ndim == 1:
        return F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
    targets = labels.to(logits.dtype) * (1 - smoothing) + smoothing / 2
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)


def calibrated_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each sample at the temperature that is best for all of them."""
    if logits.numel() <= FEW_NUMBERS:
        logits = logits.double()
    best = temperature(lambda t: label_losses(logits / t, labels))
    return label_losses(logits / best, labels)
