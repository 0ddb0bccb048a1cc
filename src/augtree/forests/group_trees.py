"""Lines 1 to 3 of Algorithm 2: a tree for each group, side by side where there are workers."""

from __future__ import annotations

import pickle
import re
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.runs.store import Run
from augtree.search.result import TreeResult
from augtree.search.search import Watch, search_tree
from augtree.tasks import Task
from augtree.transforms import Space, Transform

CONTEXT = get_context("spawn")
Job = tuple[Dataset, Task, list[Transform], dict[str, Any]]
"""What a search is called with."""
LONGEST = 60
"""Letters of a group's name in that of its folder."""


def silent(*_: Any, **__: Any) -> None:
    """Tell nobody."""


def trees_of_groups(
    data: Dataset, task: Task, space: Space, run: Run, how: dict[str, Any], workers: int, watch: Watch
) -> dict[str, TreeResult]:
    """Lines 1 to 3 of Algorithm 2: a tree for each group, from its own samples alone."""
    jobs: dict[str, Job] = {}
    for i, name in enumerate(data.group_names):
        jobs[name] = (group_alone(data, name), task, list(space), {**how, "out": folder_of(run.folder, i, name)})
    found = searched(jobs, workers, watch)
    return {name: found[name] for name in data.group_names}


def searched(jobs: dict[str, Job], workers: int, watch: Watch) -> dict[str, TreeResult]:
    """All these searches, so many side by side."""
    found: dict[str, TreeResult] = {}
    if workers == 1 or len(jobs) == 1:
        for number, (name, job) in enumerate(jobs.items(), 1):
            watch("group", group=name, number=number, of=len(jobs), data=job[0])
            found[name] = search_group(*job, watch)
        return found
    others = set(active_children())
    with ProcessPoolExecutor(min(workers, len(jobs)), CONTEXT, begin_worker, (torch.get_num_threads(),)) as pool:
        try:
            # Packed here: on its own, torch would send every tensor of every graph as an open file.
            waiting = {pool.submit(search_packed, pickle.dumps(job)): name for name, job in jobs.items()}
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                watch("grown", group=waiting[done], result=done.result(), number=len(found), of=len(jobs))
        except BrokenProcessPool as error:
            rule = (
                'must be 1 in a script without `if __name__ == "__main__":`, which every worker would run again; or a'
            )
            raise ArgumentError("workers", f"{rule} worker died", workers) from error
        except BaseException:
            for child in set(active_children()) - others:  # what they have done is kept; what is half done can go
                child.terminate()
            raise
    return found


def search_group(
    data: Dataset, task: Task, space: list[Transform], how: dict[str, Any], watch: Watch = silent
) -> TreeResult:
    """One group's tree."""
    return search_tree(data, task, space, **how, watch=watch)


def search_packed(job: bytes) -> TreeResult:
    """The same, in another process of ours."""
    return search_group(*pickle.loads(job))  # noqa: S301 - never from a file


def begin_worker(threads: int) -> None:
    """A worker computes as its parent would."""
    torch.set_num_threads(threads)


def group_alone(data: Dataset, group: str) -> Dataset:
    """The samples of one group, as a data set of its own."""
    rows = data.indices(None, group)
    part = data.take(rows)
    return replace(part, name=f"{data.name}[{group}]", groups=np.zeros(len(part), np.int64), group_names=(group,))


def folder_of(folder: Path | None, number: int, group: str) -> Path | None:
    """Where a group's search is kept."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", group)[:LONGEST]
    return None if folder is None else folder / "groups" / f"{number:02d}-{plain}"
