"""Where the parts of a run that do not depend on each other are done: here, in other processes, on a Ray cluster.

The result is the same everywhere, so an executor is no part of a run, and a run may be resumed on another.
"""

from __future__ import annotations

from augtree.errors import ArgumentError, one_of, whole_number
from augtree.runs.executors.base import Executor
from augtree.runs.executors.processes import Processes
from augtree.runs.executors.ray import Ray
from augtree.runs.executors.serial import Serial

__all__ = ["Executor", "Processes", "Ray", "Serial", "executor_of"]

EXECUTORS: dict[str, type[Executor]] = {"serial": Serial, "processes": Processes, "ray": Ray}
"""By name."""
MOST_WORKERS = 1024


def executor_of(executor: Executor | str | None, workers: int = 1) -> Executor:
    """The executor that is meant by a value, a name or a number of processes.

    Parameters
    ----------
    executor
        A value such as `Processes(2)`, a name (serial, processes, ray), or None.
    workers
        The number of processes, where there is no executor; 1 is this process itself.

    Examples
    --------
    >>> executor_of(None, 2), executor_of("serial")
    (Processes(workers=2, retries=3), Serial())

    """
    workers = whole_number("workers", workers, 1, MOST_WORKERS)
    if executor is None:
        return Serial() if workers == 1 else Processes(workers)
    if workers != 1:
        raise ArgumentError("workers", "must be left out where an executor is given, which has its own", workers)
    if isinstance(executor, Executor):
        return executor
    return EXECUTORS[one_of("executor", executor, EXECUTORS)]()
