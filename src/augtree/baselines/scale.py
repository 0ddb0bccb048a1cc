"""SCALE: a stochastic composition whose probabilities and magnitudes are learned together with the model.

Chatzipantazis, Pertigkiozoglou, Daniilidis and Dobriban, "Learning Augmentation Distributions using Transformed Risk
Minimization", TMLR 2023 ("Stochastic Compositional Augmentation Learning"). A composition applies each operation, in
a fixed order, with its own probability, and with a value drawn uniformly from minus to plus its own magnitude. Both
are learned by gradient descent on the training loss: values as values of a uniform draw, probabilities by relaxed
Bernoulli draws (hard in the forward pass, relaxed in the backward pass: "straight-through").

Simplified: the nine operations of `differentiable`, in one order; their descent is Adam's at a constant rate. The
training loss alone would shrink every augmentation to nothing. Against that stands here the entropy of what is drawn,
that is of the Bernoulli draw and of the uniform one, times `strength`; the paper derives its own regulariser from a
PAC-Bayes bound. So figures need not agree with the paper's.

In contrastive training a composition is drawn for each view, and the loss is that of the two views: the reading here
of a comparison whose paper says no more. That loss, too, is lowest where nothing is augmented.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.baselines.base import Baseline
from augtree.baselines.differentiable import LIMITS, NAMES, compose
from augtree.baselines.loop import Batch, fit_by
from augtree.errors import number
from augtree.keys import Key
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


@dataclass(frozen=True)
class Scale(Baseline):
    """Probabilities and magnitudes of a composition, learned with the model.

    Examples
    --------
    >>> Scale().costs
    '1, with slower steps'

    """

    name = "scale"
    about = "a composition whose probabilities and magnitudes are learned by gradient descent with the model"
    source = "Chatzipantazis et al. 2023, TMLR"
    costs = "1, with slower steps"
    settings = ("supervised", "contrastive")
    domains = ("image",)
    uses_labels = False  # in contrastive training

    strength: float = 0.02
    """The weight of the entropy, which keeps the augmentation from vanishing."""
    rate: float = 0.01
    """The learning rate of probabilities and magnitudes."""
    temperature: float = 0.5
    """That of the relaxed Bernoulli draws."""
    p: float = 0.5
    """Every probability at the start."""
    magnitude: float = 0.5
    """Every magnitude at the start, as a share of the largest."""

    def __post_init__(self) -> None:
        number("strength", self.strength, 0, 1e6)
        number("rate", self.rate, 0, 10)
        number("temperature", self.temperature, 0, 100, open_low=True)
        for name in ("p", "magnitude"):
            number(name, getattr(self, name), 0.01, 0.99)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        learned = self.start().to(trainer.device).requires_grad_()
        descent = torch.optim.Adam([learned], lr=self.rate)

        def loss(batch: Batch) -> Tensor:
            losses = trainer.step_losses(self.inputs(trainer, batch, learned), batch.labels)
            return losses.mean() - self.strength * entropy(learned).mean()

        def learn(_: Batch) -> None:
            descent.step()
            descent.zero_grad()

        state = fit_by(trainer, seed, loss, passes=trainer.views, after=learn)
        p, magnitude = learned.detach().sigmoid().tolist()
        figures = {f"p {name}": value for name, value in zip(NAMES, p, strict=True)}
        return state, figures | {f"m {name}": value for name, value in zip(NAMES, magnitude, strict=True)}

    def start(self) -> Tensor:
        """The logits of probabilities and of magnitudes, [2, operations]."""
        return torch.tensor([[self.p], [self.magnitude]]).logit().repeat(1, len(NAMES))

    def inputs(self, trainer: Trainer, batch: Batch, learned: Tensor) -> Tensor:
        """The pictures of a step after their compositions; in contrastive training both views of each."""
        pictures, fill = batch.inputs.to(learned), trainer.data.fill
        if not isinstance(trainer, ContrastiveTrainer):
            return self.augmented(pictures, learned, batch.key("scale"), fill)
        views = list(pictures.unbind(1))
        for i in trainer.augmented_views:
            views[i - 1] = self.augmented(views[i - 1], learned, batch.key(f"scale {i}"), fill)
        return torch.stack(views, 1)

    def augmented(self, pictures: Tensor, learned: Tensor, key: Key, fill: float) -> Tensor:
        """Pictures after a composition drawn for each."""
        draws = [torch.from_numpy(np.stack([key.at(i).uniform(c) for i in range(len(NAMES))], 1)) for c in (0, 1)]
        applied, place = (draw.to(learned) for draw in draws)
        gates = straight_through(learned[0], applied, self.temperature)
        values = gates * learned[1].sigmoid() * (2 * place - 1) * learned.new_tensor(LIMITS)
        return compose(pictures, values, fill)


def straight_through(logits: Tensor, draws: Tensor, temperature: float) -> Tensor:
    """Bernoulli draws of these probabilities, 0 or 1, whose gradient is that of the relaxed ones."""
    relaxed = relaxed_bernoulli(logits, draws, temperature)
    return (relaxed > 0.5).to(relaxed) + (relaxed - relaxed.detach())


def relaxed_bernoulli(logits: Tensor, draws: Tensor, temperature: float) -> Tensor:
    """The concrete distribution: above a half with the probability of the logit."""
    inside = draws.clamp(1e-6, 1 - 1e-6)
    return torch.sigmoid((logits + inside.logit()) / temperature)


def entropy(learned: Tensor) -> Tensor:
    """The entropy of each operation's draws: of whether it is applied, and of its value if it is."""
    p = learned[0].sigmoid()
    of_gate = p * F.softplus(-learned[0]) + (1 - p) * F.softplus(learned[0])
    return of_gate + p * F.logsigmoid(learned[1])
