"""The part of a task that a trainer reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import nn

from augtree.data import Dataset
from augtree.transforms.base import Policy


class Settings(Protocol):
    """Model, optimizer, preprocessing, length and machine."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Further arguments of the model."""

    @property
    def compile(self) -> bool:
        """Whether the model is compiled."""

    @property
    def optimizer(self) -> str:
        """`sgd` or `adamw`."""

    @property
    def momentum(self) -> float:
        """The momentum of SGD."""

    @property
    def effective_weight_decay(self) -> float:
        """The weight decay, the optimizer's default included."""

    @property
    def batch_size(self) -> int:
        """The most samples in a step."""

    @property
    def preprocess(self) -> Policy | str | None:
        """What comes before the policy; a name stands for the data set's own."""

    @property
    def device(self) -> str:
        """`auto`, `cpu` or `cuda`."""

    @property
    def deterministic(self) -> bool:
        """Whether only operations that repeat to the bit are allowed on a GPU."""

    @property
    def precision(self) -> str:
        """`auto`, `float32` or `bfloat16`."""

    def model_for(self, data: Dataset) -> str | Callable[[], nn.Module]:
        """The model for a data set."""

    def total_steps(self, samples: int) -> int:
        """The steps of a whole training on this many samples."""

    def rates(self, steps: int) -> list[float]:
        """The learning rate of each step of a whole training."""
