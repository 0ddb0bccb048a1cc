"""CutMix: paste a box of one picture into another, and mix their labels by area.

Yun, Han, Oh, Chun, Choe and Yoo, "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable
Features", ICCV 2019. A share is drawn from Beta(alpha, alpha), the box has the rest of the area, its middle is
anywhere in the picture; what lies outside is cut off, and the share is corrected for that. The defaults are those
with which the authors train on CIFAR (github.com/clovaai/CutMix-PyTorch: beta 1, cutmix_prob 0.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from augtree.baselines.base import Baseline
from augtree.baselines.loop import Batch, fit_by, shares
from augtree.baselines.mixup import partners, soft_loss
from augtree.errors import number
from augtree.tasks.trainer import Trainer
from augtree.training.state import State

Box = tuple[int, int, int, int]
"""Left, top, right and bottom; right and bottom are outside."""


@dataclass(frozen=True)
class CutMix(Baseline):
    """Boxes of other pictures, with soft labels by area.

    Examples
    --------
    >>> CutMix(p=1).spec()
    {'way': 'cutmix', 'alpha': 1.0, 'p': 1}

    """

    name = "cutmix"
    about = "a box of another picture, and the labels mixed by area"
    source = "Yun et al. 2019, ICCV"
    costs = "1"
    settings = ("supervised",)
    domains = ("image",)

    alpha: float = 1.0
    """Shares are drawn from Beta(alpha, alpha)."""
    p: float = 0.5
    """The share of the steps that are mixed: the authors have 0.5 for CIFAR and 1 for ImageNet."""

    def __post_init__(self) -> None:
        number("alpha", self.alpha, 0, 100, open_low=True)
        number("p", self.p, 0, 1)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        return fit_by(trainer, seed, lambda batch: self.loss(trainer, batch)), {}

    def loss(self, trainer: Trainer, batch: Batch) -> Tensor:
        """The loss of a batch, which is mixed with probability p."""
        if batch.key_of_step("cutmix apply").uniform()[0] >= self.p:
            return trainer.step_losses(batch.inputs, batch.labels).mean()
        height, width = batch.inputs.shape[2:]
        partner = torch.from_numpy(partners(batch, "cutmix partner"))
        left, top, right, bottom = box = self.box(batch, height, width)
        inputs = batch.inputs.clone()
        inputs[:, :, top:bottom, left:right] = batch.inputs[partner][:, :, top:bottom, left:right]
        return soft_loss(trainer, inputs, batch.labels, batch.labels[partner], kept(box, height, width))

    def box(self, batch: Batch, height: int, width: int) -> Box:
        """The box of a step."""
        share = float(shares(batch.key_of_step("cutmix share"), self.alpha)[0])
        key, side = batch.key_of_step("cutmix box"), (1 - share) ** 0.5
        x, y = int(key.below(width, 0)[0]), int(key.below(height, 1)[0])
        half_width, half_height = int(width * side) // 2, int(height * side) // 2
        return (
            max(x - half_width, 0),
            max(y - half_height, 0),
            min(x + half_width, width),
            min(y + half_height, height),
        )


def kept(box: Box, height: int, width: int) -> float:
    """The share of a picture outside the box.

    >>> kept((0, 0, 2, 4), 4, 4)
    0.5
    """
    left, top, right, bottom = box
    return 1 - (right - left) * (bottom - top) / (height * width)
