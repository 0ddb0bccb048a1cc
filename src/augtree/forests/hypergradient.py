"""The hypergradient: the derivative of the outer loss with respect to the groups' weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.forests.implicit_gradient import (
    GaussNewton,
    InnerLoss,
    OutputsOf,
    backward_jvp,
    forward_jvp,
    gradient_norms,
    has_forward_mode,
    vjp,
)
from augtree.forests.linear_solvers import CGOnDevice, Product, Solution, series, solve_cg
from augtree.forests.options import Weighting
from augtree.policies import Forest
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of, seeded

Floats = NDArray[np.float64]
MIN_GROUP_BATCH = 16
"""The fewest samples of each group in an estimate."""
TINY = 1e-12


class Estimate(NamedTuple):
    """One estimate of the hypergradient."""

    d: Floats
    """The derivative of the outer loss with respect to each weight."""
    outer_losses: Floats
    """The outer loss of each group."""
    solution: Solution
    product: str
    """hessian or gauss-newton."""


@dataclass
class Hypergradient:
    """Estimates the hypergradient, from one batch of each group."""

    trainer: Trainer
    forest: Forest
    options: Weighting
    seed: int

    def __post_init__(self) -> None:
        data = self.trainer.data
        self.groups = data.group_names
        self.train_rows = rows_of_groups(self.trainer)
        self.outer_rows = [data.indices("val", group) for group in self.groups]
        self.size = group_batch(self.trainer, self.options)
        task = self.trainer.task
        self.decay = (
            task.effective_weight_decay if task.optimizer == "sgd" else 0.0
        )  # AdamW's decay is no part of its loss
        self.forward_mode: bool | None = None
        """Whether the model has a forward mode; unknown before the first estimate."""

    def estimate(self, state: State, w: Floats, outer_weights: Floats, t: int, product: str) -> Estimate:
        """The estimate after the t-th round. It changes nothing in the state, nor in its buffers."""
        trainer, options = self.trainer, self.options
        self.forward_mode = self._forward_mode() if self.forward_mode is None else self.forward_mode
        with trainer.deterministically(), seeded(seed_of(self.seed, "look", t), trainer.device):
            trainer.module(state).train()
            weights = [torch.from_numpy(each).float().to(trainer.device) for each in (w, outer_weights)]
            batches = [self._inner_batch(t), *([self._outer_batch(t)] if options.outer == "val" else [])]
            inputs = [*weights, *(each for batch in batches for each in self._labelled(batch))]
            estimate = self._estimate_with(product, inputs, t)
            fall_back = product == "hessian" and options.product == "auto" and options.solver == "cg"
            if fall_back and estimate.solution.failed:
                estimate = self._estimate_with("gauss-newton", inputs, t)
        return estimate

    def _estimate_with(self, product: str, inputs: list[Any], t: int) -> Estimate:
        """The direction by one product; on a GPU Gauss-Newton is recorded (the Hessian mostly fails at first)."""
        trainer, options = self.trainer, self.options
        on_gpu = trainer.device.type == "cuda" and trainer.pictures
        if product == "gauss-newton" and options.solver == "cg" and on_gpu:
            name = ("look", options.damping, options.iterations, options.tolerance, options.d, options.outer)
            d, outer, result = trainer.replay(name, partial(self._direction, product, t, stop_early=False), inputs)
        else:
            d, outer, result = self._direction(product, t, *inputs)
        solution = result.solution() if isinstance(result, CGOnDevice) else result
        samples = len(self.groups) * self.size
        inner = 1 + (options.solver == "series") * solution.iterations
        trainer.passes.forward += samples * (inner * trainer.views + (options.outer == "val"))
        cosine = (options.d == "cosine") * len(self.groups)
        trainer.passes.backward += samples * 2 * trainer.views * (solution.iterations + 1 + cosine)
        return Estimate(d.double().cpu().numpy(), outer.double().cpu().numpy(), solution, product)

    def _direction(
        self, product: str, t: int, w: Tensor, outer_weights: Tensor, *batches: Any, stop_early: bool = True
    ) -> tuple[Tensor, Tensor, CGOnDevice | Solution]:
        """d, the outer loss of each group, and the solution that d is from."""
        parameters, options = self.parameters, self.options
        outputs, losses, curvature = self._inner(*batches[:2])
        outer = losses if options.outer == "train" else self._outputs_and_losses(*batches[2:])[1]
        v = vjp(outer_weights @ outer, parameters)
        if product == "hessian":
            inner = InnerLoss(losses, w, parameters, self.decay)
            solution = self._solve(inner.hessian, v, w, product, t, stop_early)
            d = -inner.dot_gradients(solution.x)
        else:
            curve = self._gauss_newton(outputs, w, curvature, *batches[:2])
            solution = self._solve(curve, v, w, product, t, stop_early)
            d = -curve.dot_gradients(losses, solution.x)
        if options.d == "cosine":
            d = d / (solution.x.norm() * gradient_norms(losses, parameters)).clamp_min(TINY)
        return d, outer.detach(), solution

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters that are trained."""
        return [p for p in self.trainer.model.parameters() if p.requires_grad]

    def _solve(
        self, by: Product, v: Tensor, w: Tensor, product: str, t: int, stop_early: bool
    ) -> CGOnDevice | Solution:
        """H^-1 v."""
        options = self.options
        if options.solver == "series":
            return self._series(w, v, product, t)
        limits = {"damping": options.damping, "tolerance": options.tolerance}
        return solve_cg(by, v, iterations=options.iterations, stop_early=stop_early, **limits)

    def _series(self, w: Tensor, v: Tensor, product: str, t: int) -> Solution:
        """The paper's series: each term from other samples."""

        def product_of_term(j: int, x: Tensor) -> Tensor:
            batch = self._inner_batch(t * self.options.iterations + j, "series")
            labelled = self._labelled(batch)
            outputs, losses, curvature = self._inner(*labelled)
            if product == "gauss-newton":
                return self._gauss_newton(outputs, w, curvature, *labelled)(x)
            return InnerLoss(losses, w, self.parameters, self.decay).hessian(x)

        options = self.options
        return series(product_of_term, v, damping=options.damping, terms=options.iterations, scale=options.scale)

    def _gauss_newton(self, logits: Tensor, w: Tensor, curvature: Tensor, inputs: Any, labels: Tensor) -> GaussNewton:
        rows = len(logits) // len(self.groups)
        share = (w / rows).repeat_interleave(rows)[:, None] * curvature
        by_logits = loss_curvature(logits.detach(), self.trainer.independent_outputs)
        if self.forward_mode:
            jvp = forward_jvp(self._outputs_of(inputs, labels), self.trainer.model)
        else:
            jvp = backward_jvp(logits, self.parameters)
        return GaussNewton(logits, lambda moved: share * by_logits(moved), jvp, self.parameters, self.decay)

    def _forward_mode(self) -> bool:
        """Whether the model has a forward mode; tested on fresh weights, so that the answer is always the same."""
        trainer = self.trainer
        with trainer.deterministically(), seeded(seed_of("forward mode"), trainer.device):
            trainer.module(trainer.fresh(self.seed)).train()
            return has_forward_mode(self._outputs_of(*self._labelled(self._inner_batch(0))), trainer.model)

    def _outputs_of(self, inputs: Any, labels: Tensor) -> OutputsOf:
        return lambda forward: self.trainer.inner_outputs(inputs, labels, forward)[0]

    def _inner_batch(self, t: int, role: str = "inner") -> tuple[Any, Rows]:
        """The same number of training samples of each group, augmented by its tree."""
        seed = seed_of(self.seed, role)
        parts = [self._next(rows, t, seed) for rows in self.train_rows]
        which, where = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self.trainer.inner_inputs(self.forest, which, where, seed), which

    def _outer_batch(self, t: int) -> tuple[Any, Rows]:
        """The same number of validation samples of each group."""
        which = np.concatenate([self._next(rows, t, self.seed)[0] for rows in self.outer_rows])
        return self.trainer.outer_inputs(self.forest, which, seed_of(self.seed, "outer", t)), which

    def _next(self, rows: Rows, t: int, seed: int) -> tuple[Rows, Rows]:
        """The samples of a group for the t-th estimate: rows, and positions that key their random numbers."""
        return self.trainer.order_of(rows, seed, self.size)(t * self.size, self.size)

    def _labelled(self, batch: tuple[Any, Rows]) -> tuple[Any, Tensor]:
        inputs, which = batch
        return inputs, self.trainer.labels[torch.from_numpy(which).to(self.trainer.device)]

    def _inner(self, inputs: Any, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The outputs, the task's own loss in each group, and the weight of each row's curvature."""
        outputs, losses, curvature = self.trainer.inner_outputs(inputs, labels)
        return outputs, losses.view(len(self.groups), -1).mean(1), curvature

    def _outputs_and_losses(self, inputs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs, and the loss of each group."""
        with self.trainer.precision():
            outputs = self.trainer.outputs(inputs, len(labels), self.trainer.model).float()
        losses = self.trainer.output_losses(outputs, labels)
        return outputs, losses.view(len(self.groups), -1).mean(1)


def group_batch(trainer: Trainer, options: Weighting) -> int:
    """The samples of each group in an estimate."""
    return options.batch or max(MIN_GROUP_BATCH, trainer.batch_size // len(trainer.data.group_names))


def most_passes(trainer: Trainer, options: Weighting) -> int:
    """The most samples that go through the model in an estimate, forward and backward."""
    groups, views = len(trainer.data.group_names), trainer.views
    forward = (1 + (options.solver == "series") * options.iterations) * views + (options.outer == "val")
    backward = 2 * views * (options.iterations + 1 + (options.d == "cosine") * groups)
    return groups * group_batch(trainer, options) * (forward + backward)


def rows_of_groups(trainer: Trainer) -> list[Rows]:
    """The training samples of each group."""
    groups = trainer.data.groups[trainer.rows]
    return [trainer.rows[groups == number] for number in range(len(trainer.data.group_names))]


def loss_curvature(logits: Tensor, multilabel: bool) -> Any:
    """Each sample's Hessian of the loss by the logits, times a matrix of their shape; labels do not matter."""
    if multilabel:
        p = torch.sigmoid(logits)
        return lambda v: p * (1 - p) * v / logits.shape[1]
    p = torch.softmax(logits, 1)
    return lambda v: p * (v - (p * v).sum(1, keepdim=True))
