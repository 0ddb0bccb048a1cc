"""What all tasks share: the model, the length of a training, its optimizer, learning rates and machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from augtree import models
from augtree.data import Dataset
from augtree.errors import ArgumentError, number, one_of, true_or_false, whole_number
from augtree.training.device import check_device, device_of
from augtree.training.metrics import METRICS
from augtree.training.schedules import SCHEDULES, rates
from augtree.transforms.base import Policy

if TYPE_CHECKING:
    from augtree.tasks.trainer import Trainer

DEFAULTS = {"sgd": (0.1, 5e-4), "adamw": (2e-3, 0.05)}
"""Learning rate and weight decay of each optimizer."""
OPTIMIZERS = ("auto", *DEFAULTS)
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Task:
    """How a model is trained and judged. Each field is a parameter; each kind of task adds its own.

    Tasks are values: they compare by their fields, and `dataclasses.replace` makes a changed one. None in `steps`,
    `lr` and `weight_decay` stands for the default.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from augtree.tasks import Classification
    >>> task = Classification(model="wrn-16-4", steps=4, lr=0.2, schedule="cosine", warmup=0)
    >>> task.rates(2)
    [0.2, 0.1]
    >>> replace(task, lr=0.4).rates(2)
    [0.4, 0.2]

    """

    kind: ClassVar[str] = ""
    """The task's name in files and on the command line."""
    free: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "image": ("none", "randaugment", "trivialaugment"),
        "graph": ("none",),
    }
    """The policies that need no search, which learned ones are compared with, for pictures and for graphs."""

    model: str | Callable[[], nn.Module] = "auto"
    """The network: wrn-D-K (such as wrn-16-4), resnet18, resnet50, cnn, gin or resgcn, auto for one that suits the
    data, or, in Python, a function that makes a module."""
    epochs: float = 80
    """How many times a training goes through its samples."""
    steps: int | None = None
    """The length of a training in steps (default: by epochs)."""
    batch_size: int = 128
    """How many samples a step takes, at most."""
    optimizer: str = "auto"
    """The optimizer: sgd, with Nesterov momentum, adamw, or auto (sgd for pictures, adamw for graphs)."""
    lr: float | None = None
    """The highest learning rate (default: 0.1 for sgd, 0.002 for adamw)."""
    weight_decay: float | None = None
    """The weight decay (default: 0.0005 for sgd, 0.05 for adamw)."""
    momentum: float = 0.9
    """The momentum of sgd."""
    schedule: str = "constant-linear"
    """The course of the learning rate: constant-linear (warm-up, constant, a line to zero), cosine (warm-up, a cosine
    to zero) or constant."""
    warmup: float = 0.05
    """The share of the steps, at the start, over which the learning rate rises."""
    decay: float = 0.3
    """The share of the steps, at the end, over which constant-linear falls to zero."""
    metric: str = "accuracy"
    """The metric that results are compared by: accuracy, error, f1, auroc or loss."""
    preprocess: Policy | str | None = "default"
    """What is applied to training samples before the policy: default for the data set's own (flips and crops for
    CIFAR-10, nothing for digits and folders), None for nothing, or, in Python, a transform."""
    device: str = "auto"
    """Where to train: cpu, cuda, or auto (the GPU where there is one)."""
    compile: bool = False
    """Whether to compile the model with torch.compile."""
    deterministic: bool = False
    """Whether to use only operations that repeat to the bit on a GPU, as a CPU always does."""
    precision: str = "auto"
    """The precision of convolutions and matrix products: float32, bfloat16, or auto (bfloat16 on a GPU)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of a named model, such as {"weights": "file.safetensors"}."""

    def __post_init__(self) -> None:
        if self.model != "auto":
            models.check_model(self.model)
        number("epochs", self.epochs, 0, 1e6, open_low=True)
        if self.steps is not None:
            whole_number("steps", self.steps, 1, 10**9)
        whole_number("batch_size", self.batch_size, 1, 10**6)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
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
        check_device(self.device)
        for name in ("compile", "deterministic"):
            true_or_false(name, getattr(self, name))
        if not isinstance(self.options, Mapping):
            raise ArgumentError("options", "must be a mapping from the model's arguments to values", self.options)
        if self.model != "auto":
            models.check_options(self.model, self.options)

    @property
    def label_free(self) -> bool:
        """Whether judging a candidate needs no labels."""
        return False

    def for_data(self, data: Dataset) -> Self:
        """The task with the optimizer that suits the data, where it is to be chosen."""
        return (
            replace(self, optimizer="adamw" if data.domain == "graph" else "sgd")
            if self.optimizer == "auto"
            else self
        )

    @property
    def defaults(self) -> tuple[float, float]:
        """The learning rate and the weight decay of the optimizer, by default; `for_data` decides for auto."""
        return DEFAULTS["sgd" if self.optimizer == "auto" else self.optimizer]

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return self.defaults[0] if self.lr is None else self.lr

    @property
    def effective_weight_decay(self) -> float:
        """The weight decay, the optimizer's default included."""
        return self.defaults[1] if self.weight_decay is None else self.weight_decay

    def total_steps(self, samples: int) -> int:
        """The steps of one training on this many samples."""
        if self.steps is not None:
            return self.steps
        return max(1, round(self.epochs * samples / min(self.batch_size, samples)))

    def rates(self, steps: int) -> list[float]:
        """The learning rate of each step of a whole training."""
        return [self.rate * share for share in rates(self.schedule, steps, warmup=self.warmup, decay=self.decay)]

    def model_for(self, data: Dataset) -> str | Callable[[], nn.Module]:
        """The model for a data set; `auto` depends on the samples and the device."""
        if self.model != "auto":
            return self.model
        if data.domain == "graph":
            return "gin"
        side = min(data.samples.shape[-2:]) if isinstance(data.samples, torch.Tensor) else 0
        small = 16 if device_of(self.device).type == "cuda" else 64  # a WideResNet on a CPU takes hours
        return "cnn" if side <= small else "wrn-16-4" if side <= 64 else "resnet18"

    def check(self, data: Dataset) -> None:
        """Raise for data that this task cannot use."""

    def prepare(self, data: Dataset) -> Trainer:
        """The trainer for a data set."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """The task as a value for a JSON file; a model function is represented by its name."""
        from augtree.policies.codec import to_json

        out = {f.name: json_value(getattr(self, f.name)) for f in dataclasses.fields(self)}
        out["options"] = {name: json_value(value) for name, value in self.options.items()}
        if not isinstance(self.model, str):
            function = self.model if hasattr(self.model, "__qualname__") else type(self.model)
            out["model"] = {"function": f"{function.__module__}.{function.__qualname__}"}
        if isinstance(self.preprocess, Policy):
            out["preprocess"] = to_json(self.preprocess)
        if self.precision == "auto":
            del out["precision"]  # so that runs older than the option can be resumed
        return {"task": self.kind, **out}


def json_value(value: Any) -> Any:
    """A value with numpy's numbers and paths as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, PathLike) else value
