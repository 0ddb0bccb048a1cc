"""What all tasks share: the model, the length of a training, its optimizer, rates and machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from augtree import models
from augtree.data import Dataset
from augtree.errors import ArgumentError, number, one_of, whole_number
from augtree.training.metrics import METRICS
from augtree.training.schedules import SCHEDULES, rates
from augtree.training.trainer import Trainer, device_of
from augtree.transforms.base import Policy

DEFAULTS = {"sgd": (0.1, 5e-4), "adamw": (2e-3, 0.05)}
"""Learning rate and weight decay of each optimizer."""
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Task:
    """How a model is trained; what is not said has the default that stands here. Each task adds what is its own.

    `model` is a name (wrn-16-4, resnet18, cnn, gin, resgcn, ...) or a function that makes a module; "auto" is cnn up
    to 16 px (on a CPU up to 64), wrn-16-4 up to 64 px, resnet18 above, and gin for graphs. `preprocess` comes before
    the policy: "default" is the data set's own (flips and crops for CIFAR-10, nothing for digits and folders), None
    is nothing.
    """

    kind: ClassVar[str] = ""
    """The task's name in files and on the command line."""
    free: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "image": ("none", "randaugment", "trivialaugment"),
        "graph": ("none",),
    }
    """The policies that need no search and that a learned one is held against, for pictures and for graphs."""

    model: str | Callable[[], nn.Module] = "auto"
    epochs: float = 80
    steps: int | None = None
    """Instead of epochs."""
    batch_size: int = 128
    optimizer: str = "sgd"
    lr: float | None = None
    weight_decay: float | None = None
    momentum: float = 0.9
    schedule: str = "constant-linear"
    """The learning rate's course: after the warm-up constant, then a line to zero; or cosine, or constant."""
    warmup: float = 0.05
    """The share of the steps over which the learning rate rises."""
    decay: float = 0.3
    """The share of the steps, at the end, over which constant-linear falls."""
    metric: str = "accuracy"
    preprocess: Policy | str | None = "default"
    device: str = "auto"
    compile: bool = False
    deterministic: bool = False
    """On a GPU: only operations that give the same bits every time. The CPU's always do."""
    precision: str = "auto"
    """bfloat16: convolutions and products of matrices in half precision, as "auto" has it on a GPU; else float32."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the model, such as weights="file.safetensors"."""

    def __post_init__(self) -> None:
        check_model(self.model)
        number("epochs", self.epochs, 0, 1e6, open_low=True)
        if self.steps is not None:
            whole_number("steps", self.steps, 1, 10**9)
        whole_number("batch_size", self.batch_size, 1, 10**6)
        one_of("optimizer", self.optimizer, DEFAULTS)
        one_of("metric", self.metric, METRICS)
        one_of("precision", self.precision, PRECISIONS)
        if self.lr is not None:
            number("lr", self.lr, 0, 1e3, open_low=True)
        if self.weight_decay is not None:
            number("weight_decay", self.weight_decay, 0, 1e3)
        number("momentum", self.momentum, 0, 0.9999)
        one_of("schedule", self.schedule, SCHEDULES)
        number("warmup", self.warmup, 0, 1)
        number("decay", self.decay, 0, 1)
        if not (self.preprocess is None or self.preprocess == "default" or isinstance(self.preprocess, Policy)):
            raise ArgumentError("preprocess", 'must be "default", None or a transform', self.preprocess)
        if not isinstance(self.device, str):
            raise ArgumentError("device", "must be a name: auto, cpu or cuda", self.device)
        for name in ("compile", "deterministic"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(name, "must be True or False", getattr(self, name))
        if not isinstance(self.options, Mapping):
            raise ArgumentError("options", "must be a mapping from the model's arguments to values", self.options)

    @property
    def label_free(self) -> bool:
        """Whether judging a candidate needs no labels."""
        return False

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return DEFAULTS[self.optimizer][0] if self.lr is None else self.lr

    @property
    def decay_of_weights(self) -> float:
        """The weight decay, the optimizer's usual one where none was given."""
        return DEFAULTS[self.optimizer][1] if self.weight_decay is None else self.weight_decay

    def total_steps(self, samples: int) -> int:
        """The steps of one training on so many samples."""
        if self.steps is not None:
            return self.steps
        return max(1, round(self.epochs * samples / min(self.batch_size, samples)))

    def rates(self, steps: int) -> list[float]:
        """The learning rate of each step of a whole training."""
        return [self.rate * share for share in rates(self.schedule, steps, warmup=self.warmup, decay=self.decay)]

    def model_for(self, data: Dataset) -> str | Callable[[], nn.Module]:
        """The model, where it was left to us."""
        if self.model != "auto":
            return self.model
        if data.domain == "graph":
            return "gin"
        side = min(data.samples.shape[-2:]) if isinstance(data.samples, torch.Tensor) else 0
        small = 16 if device_of(self.device).type == "cuda" else 64  # a WideResNet on a CPU takes hours
        return "cnn" if side <= small else "wrn-16-4" if side <= 64 else "resnet18"

    def check(self, data: Dataset) -> None:
        """Raise for data that this task cannot be done on."""

    def prepare(self, data: Dataset) -> Trainer:
        """Everything that trainings and judgements on this data need."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """The task as a value for a file; a function stands there by its name."""
        from augtree.policies.codec import to_json

        out = {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
        out["options"] = {name: plain(value) for name, value in self.options.items()}
        if not isinstance(self.model, str):
            named = self.model if hasattr(self.model, "__qualname__") else type(self.model)
            out["model"] = {"function": f"{named.__module__}.{named.__qualname__}"}
        if isinstance(self.preprocess, Policy):
            out["preprocess"] = to_json(self.preprocess)
        if self.precision == "auto":
            del out["precision"]  # so that runs go on which are older than the option
        return {"task": self.kind, **out}


def check_model(model: Any) -> None:
    """Raise for what can be no model: a wrong name, or a module where a function that makes one is wanted."""
    if isinstance(model, str):
        if model != "auto":
            models.find(model)
    elif isinstance(model, nn.Module) or not callable(model):
        rule = "must be a name, or a function without arguments that makes a new nn.Module"
        raise ArgumentError("model", rule, type(model))


def plain(value: Any) -> Any:
    """Numpy's numbers and paths as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, PathLike) else value
