"""Supervised classification: pictures or graphs, one label a sample or several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from augtree.data import Dataset
from augtree.errors import TaskError, number
from augtree.tasks.base import Task
from augtree.tasks.trainer import Trainer
from augtree.training.judging import label_losses
from augtree.training.sampling import Rows
from augtree.training.state import State
from augtree.transforms.base import Policy


@dataclass(frozen=True)
class Classification(Task):
    """Train a classifier on labelled samples, with one label each or several.

    Examples
    --------
    >>> task = Classification(model="wrn-16-4", epochs=80, label_smoothing=0.1)
    >>> task.total_steps(samples=4000)
    2500

    """

    kind: ClassVar[str] = "classification"
    label_smoothing: float = 0.0
    """The share of each label that is spread over all classes, from 0 (none) to below 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        number("label_smoothing", self.label_smoothing, 0, 0.9999)

    def prepare(self, data: Dataset) -> ClassificationTrainer:
        return ClassificationTrainer(self, data)


class ClassificationTrainer(Trainer):
    """Lowers and judges the loss of the labels."""

    task: Classification

    def outputs(self, inputs: Any, count: int, forward: Callable[[Any], Any]) -> Tensor:
        """The logits."""
        return self.require_logits(forward(self.normalised(inputs)), count)

    def output_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return label_losses(outputs, labels, self.task.label_smoothing)

    def logits(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        return self.predict(
            state, rows, lambda batch, count: self.require_logits(self.forward(batch), count), policy, seed
        )

    def require_logits(self, logits: Any, count: int) -> Tensor:
        """The logits, or a TaskError where the model is for another task."""
        expected = (count, self.data.num_classes)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise TaskError(f"the model must give [samples, classes], here {list(expected)}, got {got}")
        return logits
