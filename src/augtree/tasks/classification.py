"""Supervised classification: pictures or graphs, one label a sample or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from augtree.data import Dataset
from augtree.errors import number
from augtree.tasks.base import DEFAULTS, Task, check_model, plain
from augtree.training.trainer import Trainer

__all__ = ["DEFAULTS", "Classification", "check_model", "plain"]


@dataclass(frozen=True)
class Classification(Task):
    """Train a classifier; what is not said has the default that stands here."""

    kind: ClassVar[str] = "classification"
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number("label_smoothing", self.label_smoothing, 0, 0.9999)

    def prepare(self, data: Dataset) -> Trainer:
        """Everything that trainings and judgements on this data need."""
        return Trainer(self, data)
