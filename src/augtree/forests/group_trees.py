"""Lines 1 to 3 of Algorithm 2: a tree for each group, side by side where there are workers."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augtree.data import Dataset
from augtree.errors import ArgumentError, printable
from augtree.runs.events import Event, Watch, silent
from augtree.runs.store import Run
from augtree.search.branches import CONTEXT, WORKER_DIED
from augtree.search.result import TreeResult
from augtree.search.search import search_tree
from augtree.tasks import Task
from augtree.transforms import Space

Job = dict[str, Any]
"""The arguments of a group's search."""
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


def trees_of_groups(
    data: Dataset, task: Task, space: Space, run: Run, arguments: dict[str, Any], workers: int, watch: Watch
) -> dict[str, TreeResult]:
    """Lines 1 to 3 of Algorithm 2: a tree for each group, from its own samples alone."""
    jobs: dict[str, Job] = {}
    for i, name in enumerate(data.group_names):
        own = {"data": group_alone(data, name), "out": folder_of(run.folder, i, name)}
        jobs[name] = {**arguments, **own, "task": task, "space": list(space)}
    results = search_all(jobs, workers, watch)
    return {name: results[name] for name in data.group_names}


def search_all(jobs: dict[str, Job], workers: int, watch: Watch) -> dict[str, TreeResult]:
    """Do all searches, as many side by side as there are workers."""
    results: dict[str, TreeResult] = {}
    if workers == 1 or len(jobs) == 1:
        for number, (name, job) in enumerate(jobs.items(), 1):
            watch(GroupStarted(name, number, len(jobs), str(job["data"])))
            results[name] = search_tree(**job, watch=watch)
        return results
    others = set(active_children())
    with ProcessPoolExecutor(min(workers, len(jobs)), CONTEXT, begin_worker, (torch.get_num_threads(),)) as pool:
        try:
            # Pickled here: by itself, torch would send every tensor of every graph as an open file.
            futures = {pool.submit(search_packed, pickle.dumps(job)): name for name, job in jobs.items()}
            for number, future in enumerate(as_completed(futures), 1):
                name, result = futures[future], future.result()
                results[name] = result
                tree, trainings = str(result.tree) if len(result.tree) else "empty", result.cost.training_equivalents
                watch(GroupFinished(name, number, len(jobs), tree, trainings))
        except BrokenProcessPool as error:
            raise ArgumentError("workers", WORKER_DIED, workers) from error
        except BaseException:
            for child in set(active_children()) - others:  # finished searches are in their folders
                child.terminate()
            raise
    return results


def search_packed(job: bytes) -> TreeResult:
    """Search one group's tree in a worker, which gets its arguments pickled."""
    return search_tree(**pickle.loads(job), watch=silent)  # noqa: S301 - never from a file


def begin_worker(threads: int) -> None:
    """Give a worker as many threads as its parent has."""
    torch.set_num_threads(threads)


def group_alone(data: Dataset, group: str) -> Dataset:
    """The samples of one group, as a data set of its own."""
    rows = data.indices(None, group)
    part = data.take(rows)
    return replace(part, name=f"{data.name}[{group}]", groups=np.zeros(len(part), np.int64), group_names=(group,))


def folder_of(folder: Path | None, number: int, group: str) -> Path | None:
    """The folder of a group's search."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", group)[:LONGEST]
    return None if folder is None else folder / "groups" / f"{number:02d}-{plain}"
