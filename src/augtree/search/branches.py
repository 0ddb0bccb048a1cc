"""Cool-downs from one state of a model, each judged on the same samples: here, or side by side in other processes.

Branches are independent of each other, and each is a function of its start and its own fields, so the results are
the same however many run at a time.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.errors import ArgumentError, AugtreeError
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State
from augtree.transforms import Space
from augtree.transforms.base import Policy

Losses = NDArray[np.float64]
CONTEXT = get_context("spawn")


@dataclass(frozen=True)
class Branch:
    """A training from a state on, and the samples it is judged on."""

    policy: Policy
    rates: tuple[float, ...]
    seed: int
    rows: Rows
    keep_model: bool = False
    """Whether the model is returned, and not its losses alone."""


class BranchResult(NamedTuple):
    """The result of a branch."""

    losses: Losses
    state: State | None
    metric: float | None
    """The task's metric, where the model is kept."""
    forward: int
    backward: int


def run_branch(trainer: Trainer, start: State, branch: Branch) -> BranchResult:
    """Train and judge one branch."""
    before = replace(trainer.passes)
    state = trainer.train(start, branch.policy, branch.rates, branch.seed)
    losses = trainer.calibrated_losses(state, branch.rows)
    measured = branch.keep_model and np.isfinite(losses).all()
    metric = trainer.measures(state, branch.rows)[trainer.task.metric] if measured else None
    forward, backward = trainer.passes.forward - before.forward, trainer.passes.backward - before.backward
    return BranchResult(losses, state if branch.keep_model else None, metric, forward, backward)


class BranchRunner:
    """Runs branches, in this process or in a pool of others."""

    def __init__(self, trainer: Trainer, pool: ProcessPoolExecutor | None = None) -> None:
        self.trainer, self.pool = trainer, pool

    def run(self, start: State, branches: Sequence[Branch]) -> Iterator[BranchResult]:
        """The result of each branch, in their order."""
        if self.pool is None:
            yield from (run_branch(self.trainer, start, branch) for branch in branches)
            return
        arrays = to_arrays(start)
        futures: list[Future[bytes]] = [
            self.pool.submit(run_in_worker, pickle.dumps((arrays, start.step, branch))) for branch in branches
        ]
        try:
            for future in futures:
                yield self.unpack(future.result())
        finally:
            for future in futures:
                future.cancel()

    def unpack(self, packed: bytes) -> BranchResult:
        """The result that a worker sent; its passes are counted here."""
        losses, arrays, step, metric, forward, backward = pickle.loads(packed)  # noqa: S301 - from our own worker
        self.trainer.passes.forward += forward
        self.trainer.passes.backward += backward
        state = arrays and from_arrays(arrays, step, self.trainer)
        return BranchResult(losses, state, metric, forward, backward)


def to_arrays(state: State) -> dict[str, NDArray[Any]]:
    """The tensors of a state as arrays, which can be pickled."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.tensors.items()}


def from_arrays(arrays: dict[str, NDArray[Any]], step: int, trainer: Trainer) -> State:
    """A state from its arrays, on the trainer's device."""
    return State({name: torch.from_numpy(array).to(trainer.device) for name, array in arrays.items()}, step)


def check_sendable(task: Task, space: Space, workers: int) -> None:
    """Raise where a task or a transform cannot be sent to another process."""
    try:
        pickle.dumps((task, list(space)))
    except Exception as error:
        rule = f"must be 1 where the task or a transform cannot be sent to another process ({error})"
        raise ArgumentError("workers", rule, workers) from error


@contextmanager
def branch_runner(trainer: Trainer, workers: int) -> Iterator[BranchRunner]:
    """A runner with this many workers; one worker is this process itself."""
    if workers == 1:
        yield BranchRunner(trainer)
        return
    try:
        content = pickle.dumps((trainer.task, trainer.data, torch.get_num_threads()))
    except Exception as error:
        rule = f"must be 1 where the task or the data cannot be sent to another process ({error})"
        raise ArgumentError("workers", rule, workers) from error
    pool = ProcessPoolExecutor(workers, CONTEXT, begin_worker, (content,))
    try:
        yield BranchRunner(trainer, pool)
    except BrokenProcessPool as error:
        pool.shutdown(wait=False, cancel_futures=True)
        raise ArgumentError("workers", WORKER_DIED, workers) from error
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, AugtreeError), cancel_futures=True)
        raise
    pool.shutdown()


WORKER_DIED = (
    'must be 1 in a script without `if __name__ == "__main__":`, which every worker would run again; or a worker died'
)
worker_trainer: list[Trainer] = []
"""In a worker: its trainer."""


def begin_worker(content: bytes) -> None:
    """Prepare a worker, so that it computes as its parent would."""
    task, data, threads = pickle.loads(content)  # noqa: S301 - from our own parent
    torch.set_num_threads(threads)
    worker_trainer[:] = [task.prepare(data)]


def run_in_worker(packed: bytes) -> bytes:
    """One branch, in a process of ours."""
    arrays, step, branch = pickle.loads(packed)  # noqa: S301 - from our own parent
    trainer = worker_trainer[0]
    result = run_branch(trainer, from_arrays(arrays, step, trainer), branch)
    kept = result.state and to_arrays(result.state)
    end = step + len(branch.rates)
    return pickle.dumps((result.losses, kept, end, result.metric, result.forward, result.backward))
