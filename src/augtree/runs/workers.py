"""Work of a trainer in the workers of an executor: each prepares a trainer of its own, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from augtree.data import Dataset
from augtree.runs.executors import Executor
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer

Function = Callable[[Trainer, Any, Any], Any]
"""From a trainer, what all jobs have in common and the argument of one to its value; a function of a module."""


Record = Callable[[str, Callable[[], Any]], object]
"""Takes a job's key, and a function that does the job or counts what a worker has done, and gives the value."""


class Done(NamedTuple):
    """The value of a job, and what it has changed in its trainer."""

    value: Any
    forward: int
    backward: int
    halved: bool


class TrainerWork:
    """A function of a trainer, sent as task, data and threads: a worker computes as its parent would."""

    def __init__(self, trainer: Trainer, function: Function) -> None:
        self.trainer, self.function = trainer, function

    def __reduce__(self) -> tuple[Any, ...]:
        task = replace(self.trainer.task, device=self.trainer.device.type)
        return arrived, (task, self.trainer.data, torch.get_num_threads(), self.function)

    def __call__(self, common: Any, argument: Any) -> Done:
        halved, argument = argument
        self.trainer.halved |= halved
        before = replace(self.trainer.passes)
        value = self.function(self.trainer, common, argument)
        after = self.trainer.passes
        return Done(value, after.forward - before.forward, after.backward - before.backward, self.trainer.halved)


def arrived(task: Task, data: Dataset, threads: int, function: Function) -> TrainerWork:
    """The work in a worker."""
    torch.set_num_threads(threads)
    return TrainerWork(task.prepare(data), function)


class TrainerPool:
    """A pool of an executor for a function of a trainer; passes in other processes are counted here."""

    def __init__(self, trainer: Trainer, function: Function, executor: Executor) -> None:
        executor.check_device(trainer.device.type)
        self.trainer, self.function, self.remote, self.began = trainer, function, executor.remote, False
        self.pool = executor.pool(TrainerWork(trainer, function))

    def run(self, jobs: Mapping[str, Any], common: Any = None) -> Iterator[Any]:
        """The values of jobs, given their arguments by key, in their order."""
        if self.is_better_here(jobs):
            yield from (self.function(self.trainer, common, argument) for argument in jobs.values())
            return
        for _, done in self.pool.run(self.messages(jobs), common):
            yield self.value_of(done)

    def each(self, jobs: Mapping[str, Any], record: Record, common: Any = None) -> None:
        """Do jobs and record each as it ends, in whatever order."""
        if self.is_better_here(jobs):
            for key, argument in jobs.items():
                record(key, partial(self.function, self.trainer, common, argument))
            return
        for _ in self.pool.run(
            self.messages(jobs), common, lambda key, done: record(key, partial(self.value_of, done))
        ):
            pass

    def is_better_here(self, jobs: Mapping[str, Any]) -> bool:
        """Whether jobs are done in this process: all are, or it is one for which a worker would have to begin."""
        here = not self.remote or (len(jobs) == 1 and not self.began)
        self.began |= not here
        return here

    def messages(self, jobs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of jobs as workers get them."""
        return {key: (self.trainer.halved, argument) for key, argument in jobs.items()}

    def value_of(self, done: Done) -> Any:
        """The value of a job that a worker has done; its passes are counted here."""
        self.trainer.halved |= done.halved
        self.trainer.passes.forward += done.forward
        self.trainer.passes.backward += done.backward
        return done.value

    def __enter__(self) -> TrainerPool:
        self.pool.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.pool.__exit__(*error)
