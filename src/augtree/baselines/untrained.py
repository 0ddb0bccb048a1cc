"""Encoders without a training: random weights, and the weights of a file. Controls for contrastive training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from augtree.baselines.base import Baseline
from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


@dataclass(frozen=True)
class RandomEncoder(Baseline):
    """The encoder with the random weights of a seed.

    Random features are a strong control on small graphs, which published tables lack. Weights of a file that the task
    begins with are not loaded.
    """

    name: ClassVar[str] = "random-encoder"
    kind: ClassVar[str] = "control"
    about: ClassVar[str] = "an encoder with random weights"
    source: ClassVar[str] = "a control"
    costs: ClassVar[str] = "0"
    settings: ClassVar[tuple[str, ...]] = ("contrastive",)
    domains: ClassVar[tuple[str, ...]] = ("image", "graph")
    uses_labels: ClassVar[bool] = False

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The fresh state."""
        task = trainer.task
        if task.options.get("weights") is None:
            return trainer.fresh(seed), {}
        options = {name: value for name, value in task.options.items() if name != "weights"}
        return replace(task, options=options).prepare(trainer.data).fresh(seed), {}


@dataclass(frozen=True)
class Pretrained(Baseline):
    """The encoder with the weights of the file that the task begins with."""

    name: ClassVar[str] = "pretrained"
    kind: ClassVar[str] = "control"
    about: ClassVar[str] = "an encoder with the weights of a file, as they are"
    source: ClassVar[str] = "a control"
    needs: ClassVar[str] = "weights=... among the model's options"
    costs: ClassVar[str] = "0"
    settings: ClassVar[tuple[str, ...]] = ("contrastive",)
    domains: ClassVar[tuple[str, ...]] = ("image", "graph")
    uses_labels: ClassVar[bool] = False

    def check(self, task: Task, data: Dataset) -> None:
        """Raise where the task begins with random weights."""
        super().check(task, data)
        if task.options.get("weights") is None:
            raise ArgumentError("options/weights", f"must name a file of weights for {self.name}", None)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The fresh state, in which only layers that the file lacks depend on the seed."""
        return trainer.fresh(seed), {}
