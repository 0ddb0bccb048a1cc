"""The data set and the task that a caller gives, as values or by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from augtree.data import Dataset, load
from augtree.errors import ArgumentError, one_of
from augtree.tasks.base import Task
from augtree.tasks.classification import Classification
from augtree.tasks.contrastive import Contrastive
from augtree.tasks.semisupervised import SemiSupervised

DataLike = Dataset | str | Path
TaskLike = Task | str
TASKS: dict[str, type[Task]] = {task.kind: task for task in (Classification, Contrastive, SemiSupervised)}
"""The tasks by their names in files and on the command line."""


def dataset_of(data: Any) -> Dataset:
    """A data set, or the one with this name or path.

    >>> dataset_of("digits").num_classes
    10
    """
    if isinstance(data, str | Path):
        return load(data)
    if not isinstance(data, Dataset):
        rule = "must be a data set, or the name or path of one (augtree.data.from_arrays makes one of arrays)"
        raise ArgumentError("data", rule, type(data))
    return data


def task_of(task: Any) -> Task:
    """A task, or the one with this name and its default options; without one, classification.

    >>> task_of("contrastive").kind, task_of(None).kind
    ('contrastive', 'classification')
    """
    if isinstance(task, str):
        return TASKS[one_of("task", task, TASKS)]()
    if not isinstance(task, Task | None):
        rule = f"must be a task, such as augtree.tasks.Classification(), or one of the names {', '.join(TASKS)}"
        raise ArgumentError("task", rule, task)
    return Classification() if task is None else task
