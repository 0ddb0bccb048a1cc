"""A whole training with another loss: the same samples, rates and random draws as `Trainer.fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.keys import Key
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Order, Rows
from augtree.training.state import State, seed_of, seeded
from augtree.transforms import Identity
from augtree.transforms.base import Policy


@dataclass(frozen=True)
class Batch:
    """What the loss of a step may depend on."""

    inputs: Any
    """The samples after preprocessing and policy: pictures uint8 on the device, or a batch of graphs."""
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
    """A training of the task's length whose steps have this loss, in Python: no step is recorded.

    `passes` is how often a sample goes through the model in a step. `after` is called when a step is done.
    """
    rows, policy = trainer.rows, Identity() if policy is None else policy
    order = trainer.order_of(rows, seed) if order is None else order
    steps, size = trainer.total_steps, min(trainer.task.batch_size, len(rows))
    with trainer.deterministically(), seeded(seed_of(seed, "model", 0), trainer.device):
        trainer.load(trainer.fresh(seed))
        trainer.model.train()
        scalars = trainer.optimizer.scalars(trainer.task.rates(steps), 0).to(trainer.device)
        batches = trainer.batches(policy, rows, order, seed, 0, steps)
        for step, (inputs, labels) in enumerate(batches):
            chosen, draws = order(step * size, size)
            batch = Batch(inputs, labels, chosen, draws, step, seed)
            trainer.weights.grads.zero_()
            step_loss(batch).backward()
            with torch.no_grad():
                trainer.optimizer.update(trainer.weights, scalars[step])
            trainer.passes.forward += passes * len(labels)
            trainer.passes.backward += passes * len(labels)
            if after is not None:
                after(batch)
        return trainer.snapshot(steps)


def outputs_of(trainer: Trainer, inputs: Any, count: int) -> Tensor:
    """The model's outputs for a batch, in the precision of the task, as float32."""
    with trainer.precision():
        return trainer.outputs(inputs, count, trainer.forward).float()


def shares(key: Key, alpha: float) -> Tensor:
    """A draw of Beta(alpha, alpha) for each sample of a key."""
    drawn = [np.random.default_rng(seed).beta(alpha, alpha) for seed in key.seeds()]
    return torch.tensor(drawn, dtype=torch.float32)
