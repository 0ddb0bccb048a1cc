"""What is doubtful in a run, told before it spends time."""

from __future__ import annotations

from collections.abc import Iterator

from augtree.data.warnings import data_warnings
from augtree.tasks.trainer import Trainer

FORESTS = ("forest", "fit")
"""The kinds of runs that have a policy for each group."""
SHORT_TRAINING = 300
"""Differences between policies are small in trainings of fewer steps."""


def run_warnings(trainer: Trainer, kind: str) -> Iterator[str]:
    """What the user should know of the data, its groups and the length of a training, for a kind of run."""
    yield from data_warnings(trainer.data)
    if kind in FORESTS and len(trainer.data.group_names) == 1:
        yield (
            "The data has one group, so the forest is one tree: groups=... (--groups) makes groups, and `augtree"
            " search` searches one tree for all."
        )
    if trainer.total_steps < SHORT_TRAINING:
        yield (
            f"A training has {trainer.total_steps} steps: too short to tell well what helps, and short trainings want"
            " little augmentation (--epochs, --steps)."
        )
