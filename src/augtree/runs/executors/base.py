"""What executors share: jobs with keys, results in order, workers that may die."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from augtree.errors import RunError
from augtree.runs.executors.messages import sendable_error

Work = Callable[[Any, Any], Any]
"""From what all jobs have in common and the argument of one to its value. It is sent to each worker once."""
Report = Callable[[str, Any], object]
"""Called with the key and the value of each job that is done, in the order in which they end."""


class Executor(ABC):
    """Where work is done: a value that makes pools of workers."""

    remote: ClassVar[bool] = True
    """Whether workers are other processes, which work on copies."""

    @abstractmethod
    def pool(self, work: Work) -> Pool:
        """A pool of workers for some work; closed when its context ends."""

    def check_sendable(self, what: str, *values: object) -> None:  # noqa: B027 - here nothing is sent
        """Raise an ArgumentError where values cannot be sent to a worker."""

    def check_device(self, device: str) -> None:  # noqa: B027 - on this machine they have
        """Raise an ArgumentError where workers do not have the device (cpu, cuda) of this process."""


class Pool(ABC):
    """Workers for one kind of work."""

    @abstractmethod
    def run(
        self, jobs: Mapping[str, Any], common: Any = None, report: Report | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Do jobs, given their arguments by key: the key and the value of each, in their order.

        A job that raises raises here, in its turn. Jobs whose values nobody takes are not begun.
        """

    def close(self) -> None:  # noqa: B027 - here there are none
        """End all workers, whatever they do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Reply(NamedTuple):
    """What a worker sends for a job: its value, or the error that it raised."""

    key: str
    value: Any = None
    error: Exception | None = None


class Death(NamedTuple):
    """What is known about a worker that died."""

    reason: str


def do(work: Work, key: str, common: Any, argument: Any) -> Reply:
    """Do a job in a worker."""
    try:
        return Reply(key, work(common, argument))
    except Exception as error:
        return Reply(key, error=sendable_error(error))


class Worker:
    """A worker, as its pool sees it: the key of its present job, None where it has none."""

    key: str | None = ""
    """At first the worker prepares itself, which is the job without a name."""
    gathering: Gathering | None = None
    """The run that its job is of: where a run has been given up, its last jobs may still be at work."""


W = TypeVar("W", bound=Worker)


@dataclass
class Gathering:
    """The jobs of one `run`."""

    jobs: Mapping[str, Any]
    common: Any
    report: Report | None
    replies: dict[str, Reply] = field(default_factory=dict)
    deaths: Counter[str] = field(default_factory=Counter)
    """The number of workers that died at each job."""

    def __post_init__(self) -> None:
        self.waiting, self.unfinished = deque(self.jobs), set(self.jobs)

    def take(self, reply: Reply) -> None:
        """Keep the reply to a job; a second one is ignored."""
        if reply.key not in self.unfinished:
            return
        self.unfinished.discard(reply.key)
        self.replies[reply.key] = reply
        if self.report is not None and reply.error is None:
            self.report(reply.key, reply.value)


class WorkerPool(Pool, Generic[W]):
    """A pool of workers that each do one job at a time; the job of a worker that dies is given to another."""

    def __init__(self, most: int, retries: int) -> None:
        self.most, self.retries = most, retries
        self.workers: list[W] = []
        self.deaths_at_start = 0

    @abstractmethod
    def begin(self, count: int) -> None:
        """Add workers, which prepare themselves and then send an empty reply."""

    @abstractmethod
    def send(self, worker: W, key: str, common: Any, argument: Any) -> None:
        """Give a job to a worker."""

    @abstractmethod
    def receive(self) -> Sequence[tuple[W, Reply | Death]]:
        """Wait until one worker or more has replied or died."""

    def run(
        self, jobs: Mapping[str, Any], common: Any = None, report: Report | None = None
    ) -> Iterator[tuple[str, Any]]:
        gathering = Gathering(jobs, common, report)
        for key in jobs:
            self.feed(gathering)
            while key not in gathering.replies:
                self.collect(gathering)
                if key not in gathering.replies:
                    self.feed(gathering)
            reply = gathering.replies.pop(key)
            if reply.error is not None:
                raise reply.error
            yield key, reply.value

    def feed(self, gathering: Gathering) -> None:
        """Give jobs to all workers that have none."""
        missing = min(self.most, len(gathering.unfinished)) - len(self.workers)
        if missing > 0:
            self.begin(missing)
        for worker in self.workers:
            if worker.key is None and gathering.waiting:
                worker.key, worker.gathering = gathering.waiting.popleft(), gathering
                self.send(worker, worker.key, gathering.common, gathering.jobs[worker.key])

    def collect(self, gathering: Gathering) -> None:
        """Take what comes from the workers."""
        for worker, reply in self.receive():
            if isinstance(reply, Death):
                self.workers.remove(worker)
                self.count_death(worker, reply, gathering)
                continue
            worker.key = None
            if not reply.key:
                self.deaths_at_start = 0
                if reply.error is not None:
                    raise reply.error
            if worker.gathering is gathering:
                gathering.take(reply)

    def count_death(self, worker: W, death: Death, gathering: Gathering) -> None:
        """Give a dead worker's job to another, unless too many have died at it."""
        if not worker.key:
            self.deaths_at_start += 1
            if self.deaths_at_start > self.retries:
                raise self.lost("while it began", death)
        elif worker.gathering is gathering and worker.key in gathering.unfinished:
            gathering.deaths[worker.key] += 1
            if gathering.deaths[worker.key] > self.retries:  # raised in its turn, after what the others finish
                gathering.take(Reply(worker.key, error=self.lost(f"at {worker.key}", death)))
            else:
                gathering.waiting.appendleft(worker.key)

    def lost(self, doing: str, death: Death) -> RunError:
        """The error where too many workers have died."""
        return RunError(
            f"a worker died {doing}, after {self.retries} retries ({death.reason}): see to its memory; what is"
            " finished is kept, resume the run to go on"
        )
