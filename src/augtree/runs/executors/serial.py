"""Work in this process, one job after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from augtree.runs.executors.base import Executor, Pool, Report, Work


@dataclass(frozen=True)
class Serial(Executor):
    """Work in this process, one job after the other.

    Examples
    --------
    >>> import augtree as at
    >>> pool = at.executors.Serial().pool(lambda common, argument: common + argument)
    >>> dict(pool.run({"a": 1, "b": 2}, common=10))
    {'a': 11, 'b': 12}

    """

    remote: ClassVar[bool] = False

    def pool(self, work: Work) -> Pool:
        return SerialPool(work)


class SerialPool(Pool):
    """Does each job when its value is taken."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def run(
        self, jobs: Mapping[str, Any], common: Any = None, report: Report | None = None
    ) -> Iterator[tuple[str, Any]]:
        for key, argument in jobs.items():
            value = self.work(common, argument)
            if report is not None:
                report(key, value)
            yield key, value
