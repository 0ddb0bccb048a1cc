"""Work on a Ray cluster: actors that hold the work, a model and one job at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from augtree.errors import ArgumentError, RunError, need, number, whole_number
from augtree.runs.executors.base import Death, Executor, Reply, Work, Worker, WorkerPool, do

CONNECT_SECONDS = 30.0
"""The longest that a cluster may take to answer."""
START_SECONDS = 300.0
"""The longest until a first worker begins; machines of a cluster that grows on demand take minutes."""
LOCAL = "local"


@dataclass(frozen=True)
class Ray(Executor):
    """Work on a Ray cluster, or with Ray on this machine (docs/cluster.md).

    Examples
    --------
    >>> import augtree as at
    >>> at.executors.Ray(address="auto", gpus_per_task=0.5, workers=4)
    Ray(workers=4, address='auto', gpus_per_task=0.5, retries=3)

    """

    workers: int | None = None
    """The number of workers (default: as many as the cluster has CPUs and GPUs for)."""
    address: str = LOCAL
    """The cluster: HOST:PORT, auto (the one that this machine belongs to), or local (one begun for this run)."""
    gpus_per_task: float = 0.0
    """The part of a GPU that each worker has."""
    retries: int = 3
    """How often a job is begun again whose worker has died."""

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole_number("workers", self.workers, 1, 1_000_000)
        if not isinstance(self.address, str) or not (self.address in (LOCAL, "auto") or is_place(self.address)):
            raise ArgumentError("address", "must be auto, local or HOST:PORT", self.address)
        number("gpus_per_task", self.gpus_per_task, 0, 64)
        whole_number("retries", self.retries, 0, 1000)

    def pool(self, work: Work) -> RayPool:
        return RayPool(work, self)

    def check_sendable(self, what: str, *values: object) -> None:
        ray = need_ray()
        try:
            ray.cloudpickle.dumps(values)
        except Exception as error:
            rule = f"must be serial where {what} cannot be sent to another process ({error})"
            raise ArgumentError("executor", rule) from error

    def check_device(self, device: str) -> None:
        need_ray()
        if device == "cuda" and not self.gpus_per_task:
            raise ArgumentError("gpus_per_task", "must be above 0 where models train on a GPU", self.gpus_per_task)
        if device != "cuda" and self.gpus_per_task:
            rule = "must be 0 where this process trains on the CPU: begin the run on a machine with a GPU"
            raise ArgumentError("gpus_per_task", rule, self.gpus_per_task)


class Actor:
    """What runs in a worker of the cluster."""

    def prepare(self, work: Work) -> Reply:
        """Take the work."""
        self.work = work
        return Reply("")

    def do(self, key: str, common: Any, argument: Any) -> Reply:
        """Do a job."""
        return do(self.work, key, common, argument)


class RayWorker(Worker):
    """An actor, and the reply that is awaited from it."""

    def __init__(self, actor: Any, reply: Any) -> None:
        self.actor, self.reply = actor, reply


class RayPool(WorkerPool[RayWorker]):
    """Actors on a cluster. What is shared lies in its object store once, and workers of a machine read it there."""

    def __init__(self, work: Work, options: Ray) -> None:
        self.options, self.ray = options, need_ray()
        self.connected = connect(self.ray, options)
        try:
            self.work = self.ray.put(work)
            super().__init__(options.workers or self.room(), options.retries)
        except BaseException as error:
            self.close()
            if isinstance(error, self.ray.exceptions.RayError):
                raise RunError(f"the cluster must have room for the data in its object store ({error})") from error
            raise
        self.common: tuple[Any, Any] = (None, None)

    def room(self) -> int:
        """The number of workers for which the cluster has CPUs and GPUs."""
        resources, gpus = self.ray.cluster_resources(), self.options.gpus_per_task
        by_gpu = int(resources.get("GPU", 0) / gpus) if gpus else None
        by_cpu = int(resources.get("CPU", 0))
        return max(1, by_cpu if by_gpu is None else min(by_cpu, by_gpu))

    def begin(self, count: int) -> None:
        actor = self.ray.remote(num_cpus=1, num_gpus=self.options.gpus_per_task)(Actor)
        for _ in range(count):
            one = actor.remote()
            self.workers.append(RayWorker(one, one.prepare.remote(self.work)))

    def send(self, worker: RayWorker, key: str, common: Any, argument: Any) -> None:
        if common is not self.common[0]:
            self.common = (common, self.ray.put(common))
        worker.reply = worker.actor.do.remote(key, self.common[1], argument)

    def receive(self) -> Sequence[tuple[RayWorker, Reply | Death]]:
        workers = {worker.reply: worker for worker in self.workers if worker.key is not None}
        busy = any(worker.key for worker in self.workers)  # and not only waiting to begin
        ready, _ = self.ray.wait(list(workers), timeout=None if busy else START_SECONDS)
        if not ready:
            has = ", ".join(f"{self.ray.cluster_resources().get(name, 0):g} {name}" for name in ("CPU", "GPU"))
            needed = f"1 CPU, {self.options.gpus_per_task:g} GPU"
            raise RunError(f"no worker began within {START_SECONDS:.0f} s: one needs {needed}, the cluster has {has}")
        return [(workers[one], self.read(one)) for one in ready]

    def read(self, reply: Any) -> Reply | Death:
        """A reply, or how the worker died."""
        errors = self.ray.exceptions
        try:
            found: Reply = self.ray.get(reply)
        except errors.RayTaskError as error:
            reason = str(error.cause or error).strip().splitlines()[-1]
            rule = "every machine must have augtree and your own modules, but a worker could not read its work"
            raise RunError(f"{rule} ({reason})") from error
        except errors.RayError as error:
            return Death(str(error).strip().partition("\n")[0])
        return found

    def close(self) -> None:
        for worker in getattr(self, "workers", ()):
            with suppress(Exception):  # it may be gone, or the cluster
                self.ray.kill(worker.actor)
        self.workers = []
        if self.connected:
            self.ray.shutdown()
            self.connected = False


def need_ray() -> ModuleType:
    """Ray, set up to hand tensors over without copies."""
    os.environ.setdefault("RAY_ENABLE_ZERO_COPY_TORCH_TENSORS", "1")
    warnings.filterwarnings("ignore", message="Zero-copy tensor serialization")  # nothing writes to the samples
    return need("ray", "ray")


def connect(ray: ModuleType, options: Ray) -> bool:
    """Connect with the cluster, unless this process has done so: whether the connection is ours to end."""
    if ray.is_initialized():
        return False
    if options.address != LOCAL:
        check_reachable(options.address)
    handler = signal.getsignal(signal.SIGTERM)
    how: dict[str, Any] = (
        {"num_cpus": options.workers, "include_dashboard": False} if options.address == LOCAL else {}
    )
    try:
        ray.init(options.address, log_to_driver=False, logging_level="ERROR", **how)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ArgumentError("address", f"must be a Ray cluster ({reason})", options.address) from error
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has set its own
    return True


def check_reachable(address: str) -> None:
    """Raise where no cluster answers at an address.

    Another process tries to connect: Ray would go on for minutes, and then end the process.
    """
    program = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')"
    command = [sys.executable, "-c", program, address]
    rule = f"must be a Ray cluster that answers within {CONNECT_SECONDS:.0f} s (ray start --head begins one)"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CONNECT_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise ArgumentError("address", rule, address) from None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ArgumentError("address", f"{rule}; {reason[0][:300]}", address)


def is_place(address: str) -> bool:
    """Whether an address is HOST:PORT.

    >>> is_place("10.0.0.1:6379"), is_place("auto")
    (True, False)
    """
    host, _, port = address.rpartition(":")
    return bool(host) and "/" not in host and port.isdecimal()
