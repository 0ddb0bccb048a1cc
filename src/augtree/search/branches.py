"""Cool-downs from one state of a model, each judged on the same samples: here, or side by side in other processes.

Branches are independent of each other, and each is a function of what is given, so the result is the same however
many are done at a time.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.errors import ArgumentError, AugtreeError
from augtree.tasks import Task
from augtree.training.trainer import Rows, State, Trainer
from augtree.transforms import Space
from augtree.transforms.base import Policy

Losses = NDArray[np.float64]
CONTEXT = get_context("spawn")


@dataclass(frozen=True)
class Branch:
    """What is trained from a state, and judged."""

    policy: Policy
    rates: tuple[float, ...]
    seed: int
    rows: Rows
    kept: bool = False
    """Whether the model is wanted, and not its losses alone."""


class Grown(NamedTuple):
    """What came of a branch."""

    losses: Losses
    state: State | None
    metric: float | None
    """The task's metric, where the model is kept."""
    forward: int
    backward: int


def grown(trainer: Trainer, start: State, branch: Branch) -> Grown:
    """Train and judge one branch."""
    before = (trainer.passes.forward, trainer.passes.backward)
    state = trainer.train(start, branch.policy, branch.rates, branch.seed)
    losses = trainer.calibrated_losses(state, branch.rows)
    measured = branch.kept and np.isfinite(losses).all()
    metric = trainer.measures(state, branch.rows)[trainer.task.metric] if measured else None
    after = (trainer.passes.forward, trainer.passes.backward)
    return Grown(losses, state if branch.kept else None, metric, after[0] - before[0], after[1] - before[1])


class Crew:
    """Does branches, so many at a time."""

    def __init__(self, trainer: Trainer, pool: ProcessPoolExecutor | None = None) -> None:
        self.trainer, self.pool = trainer, pool

    def work(self, start: State, branches: Sequence[Branch]) -> Iterator[Grown]:
        """What comes of each branch, in their order."""
        if self.pool is None:
            for branch in branches:
                yield grown(self.trainer, start, branch)
            return
        tensors = {name: tensor.detach().cpu().numpy() for name, tensor in start.tensors.items()}
        waiting: list[Future[bytes]] = [
            self.pool.submit(in_worker, pickle.dumps((tensors, start.step, branch))) for branch in branches
        ]
        try:
            for future in waiting:
                yield self.received(future.result())
        finally:
            for future in waiting:
                future.cancel()

    def received(self, packed: bytes) -> Grown:
        """What a worker sent; its passes are counted here."""
        losses, tensors, step, metric, forward, backward = pickle.loads(packed)  # noqa: S301 - from our own worker
        self.trainer.passes.forward += forward
        self.trainer.passes.backward += backward
        device = self.trainer.device
        state = tensors and State({n: torch.from_numpy(t).to(device) for n, t in tensors.items()}, step)
        return Grown(losses, state, metric, forward, backward)


def check_sendable(task: Task, space: Space, workers: int) -> None:
    """Raise where a search cannot go to another process."""
    try:
        pickle.dumps((task, list(space)))
    except Exception as error:
        rule = f"must be 1 where the task or a transform cannot be sent to another process ({error})"
        raise ArgumentError("workers", rule, workers) from error


@contextmanager
def crew(trainer: Trainer, workers: int) -> Iterator[Crew]:
    """A crew of so many workers; one is this process itself."""
    if workers == 1:
        yield Crew(trainer)
        return
    try:
        content = pickle.dumps((trainer.task, trainer.data, torch.get_num_threads()))
    except Exception as error:
        rule = f"must be 1 where the task or the data cannot be sent to another process ({error})"
        raise ArgumentError("workers", rule, workers) from error
    pool = ProcessPoolExecutor(workers, CONTEXT, begin_worker, (content,))
    try:
        yield Crew(trainer, pool)
    except BrokenProcessPool as error:
        pool.shutdown(wait=False, cancel_futures=True)
        rule = 'must be 1 in a script without `if __name__ == "__main__":`, which every worker would run again; or a'
        raise ArgumentError("workers", f"{rule} worker died", workers) from error
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, AugtreeError), cancel_futures=True)
        raise
    pool.shutdown()


here: list[Trainer] = []
"""A worker's trainer."""


def begin_worker(content: bytes) -> None:
    """A worker computes as its parent would."""
    task, data, threads = pickle.loads(content)  # noqa: S301 - from our own parent
    torch.set_num_threads(threads)
    here[:] = [task.prepare(data)]


def in_worker(packed: bytes) -> bytes:
    """One branch, in a process of ours."""
    tensors, step, branch = pickle.loads(packed)  # noqa: S301 - from our own parent
    trainer = here[0]
    start = State({name: torch.from_numpy(t).to(trainer.device) for name, t in tensors.items()}, step)
    found = grown(trainer, start, branch)
    kept = found.state and {name: tensor.detach().cpu().numpy() for name, tensor in found.state.tensors.items()}
    end = step + len(branch.rates)
    return pickle.dumps((found.losses, kept, end, found.metric, found.forward, found.backward))
