"""Losses of learning with few labels: consistency between two views (UDA, Xie et al. 2020), and signal annealing.

Logits are [N, K]. With one label a sample they stand for a distribution over the K classes; multi-label, each of them
is a distribution of its own, yes or no. Everything here has fixed shapes and never waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

STEEP = 5.0
"""How fast the log schedule rises at first, and the exp schedule at last."""
SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "linear": lambda done: done,
    "log": lambda done: 1 - math.exp(-STEEP * done),
    "exp": lambda done: math.exp(STEEP * (done - 1)),
}
"""How much of the training signal is let through after a share of the training."""


def consistency(plain: Tensor, strong: Tensor, *, sharpen: float, confidence: float, multilabel: bool) -> Tensor:
    """How far the strong view's predictions are from those of the plain view, which takes no gradient.

    The divergence KL(sharpened plain || strong) of each sample, 0 where the plain view is not confident, and the mean
    over all samples: those that are left out count. Multi-label, the same for each label by itself.
    """
    return (divergence(plain, strong, sharpen, multilabel) * taught(plain, confidence, multilabel)).mean()


def divergence(plain: Tensor, strong: Tensor, sharpen: float, multilabel: bool) -> Tensor:
    """KL(sharpened plain || strong) of each sample [N]; multi-label, of each label [N, K]."""
    target, guess = log_chances(plain.detach() / sharpen, multilabel), log_chances(strong, multilabel)
    return (target.exp() * (target - guess)).sum(-1)


def taught(plain: Tensor, confidence: float, multilabel: bool) -> Tensor:
    """Whether the plain view is sure enough to teach: for each sample [N]; multi-label, for each label [N, K]."""
    return certainty(plain.detach(), multilabel) > confidence


def certainty(logits: Tensor, multilabel: bool) -> Tensor:
    """The highest chance: of a class [N]; multi-label, of yes or no for each label [N, K]."""
    return log_chances(logits, multilabel).amax(-1).exp()


def log_chances(logits: Tensor, multilabel: bool) -> Tensor:
    """The logarithms of the chances: of the classes [N, K]; multi-label, of yes and no for each label [N, K, 2]."""
    if multilabel:
        return F.logsigmoid(torch.stack((logits, -logits), -1))
    return F.log_softmax(logits, -1)


def signal_threshold(schedule: str, step: int, steps: int, classes: int) -> float:
    """Labelled samples whose label has a higher chance than this are left out at a step: from 1/classes up to 1.

    >>> [signal_threshold("linear", step, 10, 2) for step in (0, 5, 10)]
    [0.5, 0.75, 1.0]
    """
    rise = SCHEDULES[schedule](min(1.0, step / steps))
    return rise * (1 - 1 / classes) + 1 / classes


def annealed(losses: Tensor, chances: Tensor, threshold: Tensor) -> Tensor:
    """The mean of the losses whose label does not yet have a higher chance than the threshold; 0 without any."""
    mask = (chances <= threshold).to(losses.dtype)
    return (losses * mask).sum() / mask.sum().clamp_min(1)
