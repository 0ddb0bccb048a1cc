"""What a log of a run holds, whoever writes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.data import Dataset
from augtree.runs.events import Began, Count, Event, Finished, figure_name
from augtree.transforms.base import Policy

SAMPLES, VERSIONS = 4, 7
"""The pictures that policies are shown on, and the versions of each."""
SEED = 0
LONGEST_OPTION = 250


class Logger(ABC):
    """A watcher that hands what a run reports to a log: pass it as `watch=`, alone or in a list.

    A subclass says how numbers are written and, if it can, options, texts and pictures. `step` is what the run has
    done in all, in the unit of its plan: steps of training; in comparisons trainings. Names hold letters, digits and
    `_.-/`.

    Examples
    --------
    >>> import augtree as at
    >>> class Printed(at.loggers.Logger):
    ...     def log_numbers(self, numbers, step):
    ...         print(step, *numbers)
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=4, batch_size=16)
    >>> table = at.compare(data, task, {"none": None}, seeds=1, watch=Printed())
    1 comparison/val/none comparison/test/none comparison/cost/none

    """

    def __init__(self) -> None:
        self.count = Count()
        self.data: Dataset | None = None
        self.heading = ""

    @abstractmethod
    def log_numbers(self, numbers: Mapping[str, float], step: int) -> None:
        """Write numbers."""

    def log_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027
        """Write what the run is about: values by name, such as `task/lr`."""

    def log_text(self, name: str, text: str, step: int) -> None:  # noqa: B027
        """Write a text."""

    def log_picture(self, name: str, picture: Tensor, step: int) -> None:  # noqa: B027
        """Write a picture, uint8 [3,H,W]."""

    def flush(self) -> None:  # noqa: B027
        """Write all that waits to be written; called when a run ends, also by an error or Ctrl-C."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __call__(self, event: Event) -> None:
        step, heading = self.count(event), event.heading()
        if heading is not None:
            self.heading = figure_name(heading)
        if isinstance(event, Began):
            self.data = event.data
            self.log_options(flat(event.spec))
        numbers = {self.name(name): value for name, value in event.logged().items()}
        if numbers:
            self.log_numbers(numbers, step)
        lines = [event.text] if isinstance(event, Finished) else event.describe()
        if any(lines):
            self.log_text(self.name("result" if isinstance(event, Finished) else "log"), "\n".join(lines), step)
        for group, policy in event.policies().items():
            picture = None if self.data is None else pictures_of(policy, self.data, group)
            if picture is not None:
                self.log_picture(self.name(figure_name("policy", group)), picture, step)

    def name(self, name: str) -> str:
        """A name below the heading."""
        return f"{self.heading}/{name}" if self.heading else name


def flat(options: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested options as one level: texts, numbers and truth values, without lists and long texts such as policies.

    >>> flat({"kind": "train", "task": {"lr": 0.1, "metric": None}, "seeds": [0, 1]})
    {'kind': 'train', 'task/lr': 0.1}
    """
    found: dict[str, Any] = {}
    for name, value in options.items():
        full = f"{before}{name}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{full}/")
        elif isinstance(value, str | int | float) and len(str(value)) <= LONGEST_OPTION:
            found[full] = value
    return found


def pictures_of(policy: Policy, data: Dataset, group: str = "") -> Tensor | None:
    """Training pictures, a row each: as they are, then augmented; None where the policy makes no pictures of them."""
    rows = data.indices("train", group or None)[:SAMPLES]
    if not isinstance(data.samples, Tensor) or not len(rows):
        return None
    originals = data.samples[torch.from_numpy(np.asarray(rows))]
    versions = policy(originals.repeat_interleave(VERSIONS, 0), seed=SEED)
    if not isinstance(versions, Tensor) or versions.shape[1:] != originals.shape[1:] or versions.dtype != torch.uint8:
        return None
    lines = torch.cat([originals[:, None], versions.view(len(rows), VERSIONS, *originals.shape[1:])], 1)
    count, columns, channels, height, width = lines.shape
    sheet = lines.permute(2, 0, 3, 1, 4).reshape(channels, count * height, columns * width)
    return sheet if channels == 3 else sheet[:1].expand(3, -1, -1).contiguous()
