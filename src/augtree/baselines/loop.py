"""Training by a loss of a method's own: of the task's model, of networks beside it, or of these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from augtree.keys import Key
from augtree.tasks.trainer import Trainer
from augtree.training.optimizers import AdamW, Optimizer, ParameterVector, Sgd
from augtree.training.sampling import Order, Rows
from augtree.training.state import State, seed_of, seeded
from augtree.transforms import Identity
from augtree.transforms.base import Policy


@dataclass(frozen=True)
class Batch:
    """What the loss of a step may depend on."""

    inputs: Any
    """The samples after preprocessing and policy, as the trainer makes them, on the device."""
    labels: Tensor
    """Their labels, on the device."""
    rows: Rows
    """Their places in the data set."""
    draws: Rows
    """The position of each draw: it differs between epochs and samples."""
    step: int
    """The number of the step, from 0 on."""
    seed: int
    """The seed of the training."""

    def key(self, role: str) -> Key:
        """Random numbers for the samples of this step; each role has its own."""
        return Key.of(self.seed, self.draws, role=role, step=self.step)

    def key_of_step(self, role: str) -> Key:
        """A single random number, for the whole step."""
        return Key.of(self.seed, [0], role=role, step=self.step)


StepLoss = Callable[[Batch], Tensor]
"""The loss of a step."""


class Learner:
    """A network beside the model, with an optimizer: the task's, or AdamW without weight decay."""

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


def descend(
    learners: Sequence[Trainer | Learner], rates: Sequence[float], losses: Iterable[Tensor], first: int = 0
) -> None:
    """Lower each of these losses by a step, one for each rate; the next is computed when the last step is done."""
    scalars = [each.optimizer.scalars(rates, first).to(each.weights.values.device) for each in learners]
    for loss, *rows in zip(losses, *scalars, strict=True):
        for each in learners:
            each.weights.grads.zero_()
        loss.backward()
        with torch.no_grad():
            for each, row in zip(learners, rows, strict=True):
                each.optimizer.update(each.weights, row)


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
    Steps are in Python: none is recorded.
    """

    def losses() -> Iterator[Tensor]:
        for inputs, samples in batches:
            yield loss(inputs)
            trainer.passes.forward += samples
            trainer.passes.backward += samples

    learners: list[Trainer | Learner] = [trainer] if beside is None else [trainer, beside]
    with trainer.deterministically(), seeded(seed_of(seed, "model", state.step), trainer.device):
        trainer.load(state)
        trainer.model.train()
        descend(learners, rates, losses(), state.step)
        return trainer.snapshot(state.step + len(rates))


def fit_by(
    trainer: Trainer,
    seed: int,
    step_loss: StepLoss,
    *,
    policy: Policy | None = None,
    order: Order | None = None,
    passes: int = 1,
    after: Callable[[Batch], object] | None = None,
) -> State:
    """A training of the task's length by another loss: the same samples, rates and draws as `Trainer.fit`.

    `passes` is how often a sample goes through the model in a step. `after` is called when a step is done.
    """

    def batches() -> Iterator[tuple[Batch, int]]:
        for batch in batches_of(trainer, seed, Identity() if policy is None else policy, order):
            yield batch, passes * len(batch.labels)
            if after is not None:
                after(batch)

    rates = trainer.task.rates(trainer.total_steps)
    return train_by(trainer, trainer.fresh(seed), rates, seed, batches(), step_loss)


def batches_of(trainer: Trainer, seed: int, policy: Policy, order: Order | None = None) -> Iterator[Batch]:
    """The batches of a training of the task's length."""
    rows, steps = trainer.rows, trainer.total_steps
    order = trainer.order_of(rows, seed) if order is None else order
    size = min(trainer.task.batch_size, len(rows))
    for step, (inputs, labels) in enumerate(trainer.batches(policy, rows, order, seed, 0, steps)):
        yield Batch(inputs, labels, *order(step * size, size), step, seed)


def preprocessed(trainer: Trainer, rows: Rows, draw_ids: Rows, seed: int) -> Any:
    """Samples after the task's preprocessing alone."""
    batch = trainer.samples_on_device(rows)
    return trainer.apply_policy(trainer.preprocess, batch, rows, draw_ids, seed_of(seed, "preprocess"))


def outputs_of(trainer: Trainer, inputs: Any, count: int) -> Tensor:
    """The model's outputs for a batch, in the precision of the task, as float32."""
    with trainer.precision():
        return trainer.outputs(inputs, count, trainer.forward).float()


def shares(key: Key, alpha: float) -> Tensor:
    """A draw of Beta(alpha, alpha) for each sample of a key."""
    drawn = [np.random.default_rng(seed).beta(alpha, alpha) for seed in key.seeds()]
    return torch.tensor(drawn, dtype=torch.float32)
