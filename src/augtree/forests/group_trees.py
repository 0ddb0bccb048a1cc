"""Lines 1 to 3 of Algorithm 2: a tree for each group, side by side where there are workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augtree.data import Dataset
from augtree.errors import RunError, printable
from augtree.runs.events import Event, Watch, silent
from augtree.runs.executors import Executor
from augtree.runs.store import Run
from augtree.search.result import TreeResult
from augtree.search.search import search_tree
from augtree.tasks import Task
from augtree.training.device import device_of
from augtree.transforms import Space, Transform

LONGEST = 60
"""A folder's name has at most this many letters of its group's name."""


@dataclass(frozen=True)
class GroupStarted(Event):
    """The search of a group's tree begins."""

    group: str
    number: int
    of: int
    data: str

    def describe(self) -> Sequence[str]:
        return [f"\nGroup {printable(self.group)} ({self.number} of {self.of}): {self.data}"]

    def heading(self) -> str:
        return self.group


@dataclass(frozen=True)
class GroupFinished(Event):
    """A worker has found a group's tree."""

    group: str
    number: int
    of: int
    tree: str
    trainings: float

    def describe(self) -> Sequence[str]:
        place = f"{self.number} of {self.of} done"
        return [f"Group {printable(self.group)} ({place}): {self.tree}, {self.trainings:.1f} trainings."]


@dataclass(frozen=True)
class GroupSearch:
    """The search for a group's tree, from its data and its folder."""

    task: Task
    space: list[Transform]
    arguments: dict[str, Any]
    run: Path | None
    """The folder of the whole run."""
    threads: int

    def __call__(self, watch: Watch | None, argument: tuple[Dataset, str]) -> TreeResult:
        data, name = argument
        torch.set_num_threads(self.threads)
        if self.run is not None and not self.run.is_dir():
            raise RunError(f"{self.run} must be a folder that every worker can reach, but one cannot")
        out = None if self.run is None else self.run / "groups" / name
        return search_tree(data, self.task, self.space, **self.arguments, out=out, watch=watch or silent)


def trees_of_groups(
    data: Dataset, task: Task, space: Space, run: Run, arguments: dict[str, Any], executor: Executor, watch: Watch
) -> dict[str, TreeResult]:
    """Lines 1 to 3 of Algorithm 2: a tree for each group, from its own samples alone."""
    executor.check_device(device_of(task.device).type)
    groups = {name: (group_alone(data, name), folder_name(i, name)) for i, name in enumerate(data.group_names)}
    folder = run.folder and run.folder.resolve()
    search = GroupSearch(task, list(space), arguments, folder, torch.get_num_threads())
    results = search_all(search, groups, executor, watch)
    if run.folder is None:
        return results
    return {name: replace(found, out=run.folder / "groups" / groups[name][1]) for name, found in results.items()}


def search_all(
    search: GroupSearch, groups: dict[str, tuple[Dataset, str]], executor: Executor, watch: Watch
) -> dict[str, TreeResult]:
    """Do all searches, as many side by side as there are workers."""
    if not executor.remote or len(groups) == 1:
        results = {}
        for number, (name, group) in enumerate(groups.items(), 1):
            watch(GroupStarted(name, number, len(groups), str(group[0])))
            results[name] = search(watch, group)
        return results
    done: list[str] = []

    def report(name: str, result: TreeResult) -> None:
        done.append(name)
        tree, trainings = str(result.tree) if len(result.tree) else "empty", result.cost.training_equivalents
        watch(GroupFinished(name, len(done), len(groups), tree, trainings))

    with executor.pool(search) as pool:  # finished searches are in their folders, also where this is interrupted
        return dict(pool.run(groups, report=report))


def group_alone(data: Dataset, group: str) -> Dataset:
    """The samples of one group, as a data set of its own."""
    rows = data.indices(None, group)
    part = data.take(rows)
    return replace(part, name=f"{data.name}[{group}]", groups=np.zeros(len(part), np.int64), group_names=(group,))


def folder_name(number: int, group: str) -> str:
    """The name of the folder of a group's search."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", group)[:LONGEST]
    return f"{number:02d}-{plain}"
