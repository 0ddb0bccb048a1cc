"""What a published method is: a frozen value that checks whether it fits, trains, and says what it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.errors import ArgumentError, RunError
from augtree.policies.codec import Reader
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State

SETTINGS = {"classification": "supervised", "contrastive": "contrastive", "semisupervised": "semisupervised"}
"""The setting of each kind of task."""


@dataclass(frozen=True)
class Baseline:
    """A published method, or a control: one file each, and one entry in `registry.METHODS`.

    Its fields are its options: numbers, texts, truth values, None, or tuples of these, so that `spec` can write them
    and `from_spec` read them.

    Examples
    --------
    >>> from augtree.baselines.mixup import Mixup
    >>> Mixup(alpha=0.4).spec()
    {'way': 'mixup', 'alpha': 0.4}

    """

    name: ClassVar[str]
    """As in `augtree compare`."""
    kind: ClassVar[str] = "method"
    """method, or control."""
    about: ClassVar[str]
    """What it does, in one line."""
    source: ClassVar[str]
    """Authors, year, venue."""
    needs: ClassVar[str] = ""
    """What it needs beside training samples, in one phrase."""
    costs: ClassVar[str]
    """Its cost in trainings, in one phrase."""
    settings: ClassVar[tuple[str, ...]]
    """Some of supervised, contrastive, semisupervised."""
    domains: ClassVar[tuple[str, ...]]
    """Some of image, graph."""
    uses_labels: ClassVar[bool] = True
    """Whether it reads labels; `evaluate` judges a contrastive method that does on other samples only."""

    def check(self, task: Task, data: Dataset) -> None:
        """Raise an ArgumentError, with the reason, for a task or data that this does not fit."""
        setting = SETTINGS.get(task.kind, task.kind)
        if setting not in self.settings:
            raise ArgumentError(self.name, f"must have a {' or '.join(self.settings)} task", task.kind)
        if data.domain not in self.domains:
            raise ArgumentError(self.name, f"must have data of the kind {' or '.join(self.domains)}", data.domain)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The trained state, and further figures for the row; all passes are counted in `trainer.passes`."""
        return self.fit_in_parts(trainer, seed, Parts(trainer))

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:  # noqa: ARG002
        """As `fit`; a method of several trainings defines this in its place, so that each is kept when it is done."""
        if type(self).fit is Baseline.fit:
            raise NotImplementedError
        return self.fit(trainer, seed)

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"way": self.name, **{name: listed(value) for name, value in fields.items()}}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], reader: Reader) -> Self:
        """The method from its value in a file."""
        known = {field.name for field in dataclasses.fields(cls)}
        if spec.keys() - {"way"} - known:
            raise RunError(f"{reader.path} was begun by another version of augtree, with another {cls.name}")
        return cls(**{name: as_tuple(value) for name, value in spec.items() if name != "way"})


def listed(value: Any) -> Any:
    """Tuples as the lists that JSON has."""
    return [listed(each) for each in value] if isinstance(value, tuple) else value


def as_tuple(value: Any) -> Any:
    """Lists as the tuples that options are."""
    return tuple(as_tuple(each) for each in value) if isinstance(value, list) else value


def require_groups(name: str, data: Dataset) -> None:
    """Raise for data whose training samples are of one group."""
    trained = sorted({data.group_names[group] for group in data.groups[data.indices("train")]})
    if len(trained) < 2:
        raise ArgumentError(name, "must have training samples of two groups or more (groups=...)", trained)


def require_validation(name: str, data: Dataset) -> None:
    """Raise for data without validation samples."""
    if not len(data.indices("val")):
        raise ArgumentError(name, "must have validation samples to choose by", data.counts)


def require_one_label(name: str, data: Dataset) -> None:
    """Raise for data whose samples may have several labels."""
    if data.multilabel:
        raise ArgumentError(name, "must have one label a sample, not several", f"{data.num_classes} labels")
