"""One look at how the weights should move: the batches, the two losses, and the implicit gradient between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.policies import Forest
from augtree.tasks.trainer import Rows, State, Trainer, seed_of, seeded, stream
from augtree.weighting.hypergradient import GaussNewton, Inner, Solved, conjugate_gradients, pulled, series
from augtree.weighting.options import Weighting

Floats = NDArray[np.float64]
FEWEST = 16
"""Samples of each group in an update, at least."""
TINY = 1e-12


class Look(NamedTuple):
    """What one look found."""

    d: Floats
    """How the outer loss moves with each weight."""
    outer: Floats
    """The outer loss of each group."""
    solved: Solved
    product: str
    """hessian or gauss-newton."""


@dataclass
class Hypergradient:
    """Looks at a training from outside: `at` gives d for a state of the model and weights of the groups."""

    trainer: Trainer
    forest: Forest
    options: Weighting
    seed: int

    def __post_init__(self) -> None:
        data = self.trainer.data
        self.groups = data.group_names
        self.train_rows = [data.indices("train", group) for group in self.groups]
        self.outer_rows = [data.indices("val", group) for group in self.groups]
        self.size = self.options.batch or max(FEWEST, self.trainer.batch_size // len(self.groups))
        task = self.trainer.task
        self.decay = task.decay if task.optimizer == "sgd" else 0.0  # AdamW's decay is no part of its loss

    def at(self, state: State, w: Floats, outer_weights: Floats, t: int, product: str) -> Look:
        """The direction after the t-th round. The state stays as it is, buffers too: models are read from states."""
        trainer = self.trainer
        with trainer.deterministically(), seeded(seed_of(self.seed, "look", t), trainer.device):
            trainer.module(state).train()
            weights = torch.from_numpy(w).float().to(trainer.device)
            logits, labels = self._outputs(self._inner_batch(t))
            inner = Inner(self._losses(logits, labels), weights, self.parameters, self.decay)
            v, outer = self._outer_gradient(inner, torch.from_numpy(outer_weights).float().to(trainer.device), t)
            solved, product = self._solved(inner, logits, weights, v, product, t)
            d = -inner.slopes(solved.x)
            if self.options.d == "cosine":
                d = d / (solved.x.norm() * inner.sizes()).clamp_min(TINY)
            self._count(len(labels), 2 * (solved.iterations + 1 + (self.options.d == "cosine") * len(self.groups)))
        return Look(d.double().cpu().numpy(), outer.double().cpu().numpy(), solved, product)

    @property
    def parameters(self) -> list[Tensor]:
        """What is trained."""
        return [p for p in self.trainer.model.parameters() if p.requires_grad]

    def _outer_gradient(self, inner: Inner, outer_weights: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """The gradient of the outer loss, and that loss in each group."""
        if self.options.outer == "train":
            losses = inner.losses
        else:
            which = np.concatenate([stream(r, t * self.size, self.size, self.seed)[0] for r in self.outer_rows])
            inputs = self.trainer.outer_inputs(self.forest, which, seed_of(self.seed, "outer", t))
            losses = self._losses(*self._outputs((inputs, which)))
        return pulled(outer_weights @ losses, self.parameters), losses.detach()

    def _solved(self, inner: Inner, logits: Tensor, w: Tensor, v: Tensor, product: str, t: int) -> tuple[Solved, str]:
        """H^-1 v; with Gauss-Newton products where H turns out not to be positive."""
        options = self.options
        if options.solver == "series":
            return self._series(w, v, product, t), product
        limits = {"iterations": options.iterations, "tolerance": options.tolerance}
        if product == "hessian":
            found = conjugate_gradients(inner.hessian, v, damping=options.damping, **limits)  # type: ignore[arg-type]
            if not found.failed or options.product == "hessian":
                return found, product
        curve = self._gauss_newton(logits, w)
        return conjugate_gradients(curve, v, damping=options.damping, **limits), "gauss-newton"  # type: ignore[arg-type]

    def _series(self, w: Tensor, v: Tensor, product: str, t: int) -> Solved:
        """The paper's series: each term from other samples."""

        def one(j: int, x: Tensor) -> Tensor:
            logits, labels = self._outputs(self._inner_batch(t * self.options.iterations + j, "series"))
            if product == "gauss-newton":
                return self._gauss_newton(logits, w)(x)
            return Inner(self._losses(logits, labels), w, self.parameters, self.decay).hessian(x)

        options = self.options
        return series(one, v, damping=options.damping, terms=options.iterations, scale=options.scale)

    def _gauss_newton(self, logits: Tensor, w: Tensor) -> GaussNewton:
        rows = len(logits) // len(self.groups)
        share = (w / rows).repeat_interleave(rows)[:, None]
        bend = bends(logits.detach(), self.trainer.independent_outputs)
        return GaussNewton(logits, lambda pushed: share * bend(pushed), self.parameters, self.decay)

    def _inner_batch(self, t: int, role: str = "inner") -> tuple[Any, Rows]:
        """As many training samples of each group, as the trees make them."""
        seed = seed_of(self.seed, role)
        parts = [stream(rows, t * self.size, self.size, seed) for rows in self.train_rows]
        which, where = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self.trainer.augmented(self.forest, which, where, seed), which

    def _outputs(self, batch: tuple[Any, Rows]) -> tuple[Tensor, Tensor]:
        """What the model says, in full precision, and the labels."""
        inputs, which = batch
        logits = self.trainer.outputs(inputs, len(which), self.trainer.model)
        self._count(len(which), 0)
        return logits, self.trainer.labels[torch.from_numpy(which).to(self.trainer.device)]

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each group."""
        return self.trainer.output_losses(logits, labels).view(len(self.groups), -1).mean(1)

    def _count(self, samples: int, backwards: int) -> None:
        self.trainer.passes.forward += samples if not backwards else 0
        self.trainer.passes.backward += samples * backwards


def bends(logits: Tensor, multilabel: bool) -> Any:
    """Each sample's Hessian of the loss by the logits, times a matrix of their shape; labels play no part in it."""
    if multilabel:
        p = torch.sigmoid(logits)
        return lambda pushed: p * (1 - p) * pushed / logits.shape[1]
    p = torch.softmax(logits, 1)
    return lambda pushed: p * (pushed - (p * pushed).sum(1, keepdim=True))
