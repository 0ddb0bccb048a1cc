"""Losses of semi-supervised learning: consistency of two views (UDA, Xie et al. 2020), and signal annealing.

Logits are [N, K]. With one label a sample they stand for a distribution over the K classes; multi-label, each of them
is a distribution over yes and no. Shapes are fixed and nothing waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

STEEPNESS = 5.0
"""How fast the log schedule rises at first, and the exp schedule at last."""
SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "linear": lambda done: done,
    "log": lambda done: 1 - math.exp(-STEEPNESS * done),
    "exp": lambda done: math.exp(STEEPNESS * (done - 1)),
}
"""How much of the training signal is let through after a share of the training."""


def consistency(plain: Tensor, strong: Tensor, *, sharpen: float, confidence: float, multilabel: bool) -> Tensor:
    """How far the predictions for strong views are from those for plain views, which take no gradient.

    It is the mean of KL(sharpened plain || strong) over all samples, those with too low a confidence counting as 0;
    multi-label, over all labels of all samples.
    """
    return (divergence(plain, strong, sharpen, multilabel) * confident(plain, confidence, multilabel)).mean()


def divergence(plain: Tensor, strong: Tensor, sharpen: float, multilabel: bool) -> Tensor:
    """KL(sharpened plain || strong) of each sample [N]; multi-label, of each label [N, K]."""
    target, guess = log_probabilities(plain.detach() / sharpen, multilabel), log_probabilities(strong, multilabel)
    return (target.exp() * (target - guess)).sum(-1)


def confident(plain: Tensor, confidence: float, multilabel: bool) -> Tensor:
    """Whether the plain view is certain enough to be a target: each sample [N]; multi-label, each label [N, K]."""
    return certainty(plain.detach(), multilabel) > confidence


def certainty(logits: Tensor, multilabel: bool) -> Tensor:
    """The highest probability: of a class [N]; multi-label, of yes or no for each label [N, K]."""
    return log_probabilities(logits, multilabel).amax(-1).exp()


def log_probabilities(logits: Tensor, multilabel: bool) -> Tensor:
    """Of the classes [N, K]; multi-label, of yes and no for each label [N, K, 2]."""
    if multilabel:
        return F.logsigmoid(torch.stack((logits, -logits), -1))
    return F.log_softmax(logits, -1)


def signal_threshold(schedule: str, step: int, steps: int, classes: int) -> float:
    """The probability beyond which the label of a sample is left out at a step: from 1/classes up to 1.

    >>> [signal_threshold("linear", step, 10, 2) for step in (0, 5, 10)]
    [0.5, 0.75, 1.0]
    """
    rise = SCHEDULES[schedule](min(1.0, step / steps))
    return rise * (1 - 1 / classes) + 1 / classes


def annealed(losses: Tensor, probabilities: Tensor, threshold: Tensor) -> Tensor:
    """The mean of the losses whose label has no higher probability than the threshold; 0 without any."""
    mask = (probabilities <= threshold).to(losses.dtype)
    return (losses * mask).sum() / mask.sum().clamp_min(1)
