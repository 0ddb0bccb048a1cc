"""What a baseline is: a published method by name, which trains a model in its own way."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.tasks import Task
from augtree.tasks.base import json_value
from augtree.tasks.trainer import Trainer
from augtree.training.state import State

SETTINGS = {"classification": "supervised", "contrastive": "contrastive", "semisupervised": "semisupervised"}
"""The setting of each kind of task."""


@dataclass(frozen=True)
class Baseline:
    """A method that a model is trained by; its fields are its options."""

    name: ClassVar[str] = ""
    """As in `augtree compare` and `augtree evaluate`."""
    about: ClassVar[str] = ""
    source: ClassVar[str] = ""
    """Authors, year, venue."""
    needs: ClassVar[str] = ""
    """What the data must have; empty for nothing."""
    costs: ClassVar[str] = ""
    """In trainings."""
    settings: ClassVar[tuple[str, ...]] = ()
    """Among supervised, contrastive and semisupervised."""
    domains: ClassVar[tuple[str, ...]] = ()
    """Among image and graph."""

    def check(self, task: Task, data: Dataset) -> None:
        """Raise an ArgumentError for a task or data that the method is not for."""
        setting = SETTINGS.get(task.kind, task.kind)
        if setting not in self.settings:
            raise ArgumentError(self.name, f"is for {' and '.join(self.settings)} training", setting)
        if data.domain not in self.domains:
            raise ArgumentError(self.name, f"works on {' and '.join(f'{d}s' for d in self.domains)}", data.domain)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The trained state, and further figures for the row; passes are counted in `trainer.passes`."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        fields = {field.name: json_value(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"way": self.name, **fields}
