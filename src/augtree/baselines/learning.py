"""Training with a loss of a method's own, and of networks that it has beside the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from augtree.errors import TaskError
from augtree.models import Model
from augtree.tasks.trainer import Trainer
from augtree.training.optimizers import AdamW, Optimizer, ParameterVector, Sgd
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of, seeded


class Learner:
    """A network with an optimizer: the task's, or AdamW without weight decay."""

    def __init__(self, network: nn.Module, trainer: Trainer, adam: bool = False) -> None:
        self.network = network.to(trainer.device)
        self.weights = ParameterVector(self.network)
        task = trainer.task
        decay = 0.0 if adam else task.effective_weight_decay
        self.optimizer: Optimizer = (
            AdamW(self.weights, decay)
            if adam or task.optimizer == "adamw"
            else Sgd(self.weights, task.momentum, decay)
        )

    def fit(self, rates: Sequence[float], losses: Iterable[Tensor]) -> None:
        """Lower each of these losses by a step; the next is computed when the last step is done."""
        rows = self.optimizer.scalars(rates, 0).to(self.weights.values.device)
        waiting = iter(losses)
        for scalars in rows:
            self.weights.grads.zero_()
            next(waiting).backward()
            with torch.no_grad():
                self.optimizer.update(self.weights, scalars)


def train_by(
    trainer: Trainer,
    state: State,
    rates: Sequence[float],
    seed: int,
    batches: Iterable[tuple[Any, int]],
    loss: Callable[[Any], Tensor],
    beside: Learner | None = None,
) -> State:
    """Train on by a loss of the method's own, a step for each rate, as `Trainer.train` does by the task's.

    Each batch comes with the number of samples in it that go through the model; `beside` is trained at the same time.
    """
    learners = [] if beside is None else [beside]
    with trainer.deterministically(), seeded(seed_of(seed, "model", state.step), trainer.device):
        trainer.load(state)
        trainer.model.train()
        pairs = [(trainer.weights, trainer.optimizer), *((each.weights, each.optimizer) for each in learners)]
        scalars = [optimizer.scalars(rates, state.step).to(trainer.device) for _, optimizer in pairs]
        done = 0
        for inputs, samples in batches:
            for weights, _ in pairs:
                weights.grads.zero_()
            loss(inputs).backward()
            with torch.no_grad():
                for (weights, optimizer), rows in zip(pairs, scalars, strict=True):
                    optimizer.update(weights, rows[done])
            done += 1
            trainer.passes.forward += samples
            trainer.passes.backward += samples
        return trainer.snapshot(state.step + done)


def preprocessed(trainer: Trainer, rows: Rows, draw_ids: Rows, seed: int) -> Any:
    """Samples after the task's preprocessing alone."""
    batch = trainer.samples_on_device(rows)
    return trainer.apply_policy(trainer.preprocess, batch, rows, draw_ids, seed_of(seed, "preprocess"))


def encoder_of(trainer: Trainer, method: str) -> Model:
    """The model, where it is of the form that `augtree.models.Model` has."""
    model: Any = trainer.model
    if not callable(getattr(model, "features", None)) or not callable(getattr(model, "fc", None)):
        rule = "needs a model with `features` (from a batch to [samples, features]) and a layer `fc` behind them"
        raise TaskError(f"{method} {rule}; {type(model).__name__} has not")
    return model  # type: ignore[no-any-return]
