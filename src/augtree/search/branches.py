"""Cool-downs from one state of a model, each judged on the same samples: here, or side by side in other processes.

Branches are independent of each other, and each is a function of its start and its own fields, so the results are
the same wherever they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.runs.executors import Executor, Serial
from augtree.runs.workers import TrainerPool
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State
from augtree.transforms.base import Policy

Losses = NDArray[np.float64]


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


def run_branch(trainer: Trainer, start: State, branch: Branch) -> BranchResult:
    """Train and judge one branch."""
    state = trainer.train(start, branch.policy, branch.rates, branch.seed)
    losses = trainer.calibrated_losses(state, branch.rows)
    measured = branch.keep_model and np.isfinite(losses).all()
    metric = trainer.measures(state, branch.rows)[trainer.task.metric] if measured else None
    return BranchResult(losses, state if branch.keep_model else None, metric)


class BranchRunner:
    """Runs branches on an executor, by default in this process."""

    def __init__(self, trainer: Trainer, executor: Executor | None = None) -> None:
        self.pool = TrainerPool(trainer, run_branch, executor or Serial())

    def run(self, start: State, branches: Mapping[str, Branch]) -> Iterator[BranchResult]:
        """The result of each branch, in their order."""
        for result in self.pool.run(branches, start):
            yield result._replace(state=result.state and result.state.to(self.pool.trainer.device))

    def __enter__(self) -> BranchRunner:
        self.pool.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.pool.__exit__(*error)
