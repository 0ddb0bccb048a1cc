"""mixup: train on blends of two pictures and of their labels.

Zhang, Cisse, Dauphin and Lopez-Paz, "mixup: Beyond Empirical Risk Minimization", ICLR 2018. Every step draws one
share from Beta(alpha, alpha), and every sample a partner from its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.baselines.base import Baseline
from augtree.baselines.loop import Batch, fit_by, outputs_of, shares
from augtree.errors import number
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State


@dataclass(frozen=True)
class Mixup(Baseline):
    """Blends of two samples, with soft labels.

    Examples
    --------
    >>> Mixup().about
    'blends of two pictures and of their labels'

    """

    name = "mixup"
    about = "blends of two pictures and of their labels"
    source = "Zhang et al. 2018, ICLR"
    costs = "1"
    settings = ("supervised",)
    domains = ("image",)

    alpha: float = 1.0
    """Shares are drawn from Beta(alpha, alpha); the paper has 1 for CIFAR and 0.2 for ImageNet."""

    def __post_init__(self) -> None:
        number("alpha", self.alpha, 0, 100, open_low=True)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        return fit_by(trainer, seed, lambda batch: self.loss(trainer, batch)), {}

    def loss(self, trainer: Trainer, batch: Batch) -> Tensor:
        """The loss of a blended batch."""
        share, partner = self.draw(batch)
        inputs = blend(batch.inputs, batch.inputs[torch.from_numpy(partner)], share)
        return soft_loss(trainer, inputs, batch.labels, batch.labels[torch.from_numpy(partner)], share)

    def draw(self, batch: Batch) -> tuple[float, Rows]:
        """The share of each sample itself, and the place of its partner in the batch."""
        share = float(shares(batch.key_of_step("mixup share"), self.alpha)[0])
        return share, partners(batch, "mixup partner")


def partners(batch: Batch, role: str) -> Rows:
    """A shuffled batch."""
    return np.argsort(batch.key(role).uniform(), kind="stable")


def blend(pictures: Tensor, others: Tensor, share: float | Tensor) -> Tensor:
    """`share` of each picture, and the rest of its partner, as floats within 0..255."""
    return pictures.float() * share + others.float() * (1 - share)


def soft_loss(trainer: Trainer, inputs: Any, labels: Tensor, others: Tensor, share: float | Tensor) -> Tensor:
    """The mean loss for two labels a sample, which is that of the mixed label: losses are affine in it."""
    outputs = outputs_of(trainer, inputs, len(labels))
    mixed: Tensor = share * trainer.output_losses(outputs, labels) + (1 - share) * trainer.output_losses(
        outputs, others
    )
    return mixed.mean()
