"""What the trainers of all tasks share: an objective, and the evaluation of a model against labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.training.judging import calibrated_losses, label_losses
from augtree.training.metrics import allowed_metrics
from augtree.training.sampling import Rows
from augtree.training.state import State
from augtree.training.trainer import ModelTrainer
from augtree.transforms.base import Policy

if TYPE_CHECKING:
    from augtree.tasks.base import Task


class Trainer(ModelTrainer):
    """The trainer of a task: adds the loss of a step, and losses and metrics of a model."""

    task: Task

    # ---- the objective

    def step_loss(self, inputs: Any, labels: Tensor, loss_scalars: Tensor) -> Tensor:  # noqa: ARG002
        return self.step_losses(inputs, labels).mean()

    def step_losses(self, inputs: Any, labels: Tensor) -> Tensor:
        """The training loss of each row of the outputs for a batch."""
        with self.precision():
            outputs = self.outputs(inputs, len(labels), self.forward)
        return self.output_losses(outputs.float(), labels)

    def outputs(self, inputs: Any, count: int, forward: Callable[[Any], Any]) -> Tensor:
        """The outputs from which the training loss of a batch of `count` samples is computed."""
        raise NotImplementedError

    def output_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The training loss of each row of `outputs`; the rows of a sample are side by side."""
        raise NotImplementedError

    @property
    def independent_outputs(self) -> bool:
        """Whether each column of the outputs is a yes or no of its own, and not one of several classes."""
        return self.data.multilabel

    def inner_inputs(self, policy: Policy, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """Training samples as the group-weighted (inner) loss sees them."""
        return self.augmented(policy, rows, draw_ids, seed)

    def inner_outputs(
        self, inputs: Any, labels: Tensor, forward: Callable[[Any], Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The outputs of the inner loss, the loss of each row, and the weight of each row's curvature.

        Each sample has equally many rows, side by side; the loss is the mean of all. `forward` replaces the model's.
        """
        with self.precision():
            outputs = self.outputs(inputs, len(labels), forward or self.model).float()
        return outputs, self.output_losses(outputs, labels), torch.ones_like(outputs[:, :1])

    def outer_inputs(self, policy: Policy, rows: Rows, seed: int) -> Any:  # noqa: ARG002
        """Validation samples as the outer loss, which judges the weights of groups, sees them: unchanged."""
        return self.samples_on_device(rows)

    # ---- judging

    def logits(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """Predictions for samples, unchanged or augmented by a policy without preprocessing."""
        raise NotImplementedError

    def losses(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> NDArray[np.float64]:
        """The loss of each sample."""
        logits = self.logits(state, rows, policy, seed)
        return label_losses(logits, self.labels_of(rows)).double().cpu().numpy()

    def calibrated_losses(self, state: State, rows: Rows, policy: Policy | None = None) -> NDArray[np.float64]:
        """The loss of each sample, unchanged or after a policy, at the temperature that is best for all of them."""
        logits = self.logits(state, rows, policy).cpu()
        return calibrated_losses(logits, self.data.labels[torch.from_numpy(rows)]).double().numpy()

    def measures(self, state: State, rows: Rows) -> dict[str, float]:
        """Every metric that these samples allow."""
        logits = self.logits(state, rows).double().cpu().numpy()
        if not np.isfinite(logits).all():
            raise self.diverged(state)
        return allowed_metrics(logits, self.data.labels.numpy()[rows], self.task.metric)
