"""Work in processes of this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from augtree.errors import ArgumentError, whole_number
from augtree.runs.executors.base import Death, Executor, Reply, Work, Worker, WorkerPool, do
from augtree.runs.executors.messages import pack, sendable_error, unpack

CONTEXT = get_context("spawn")
NOT_BEGUN = 'must be 1 where a worker cannot begin (see above); a script needs `if __name__ == "__main__":`'
FROM_INPUT = "must be 1 in a script from standard input, which workers cannot read again"
PATIENCE = 5.0
"""Seconds that a worker has to end."""


@dataclass(frozen=True)
class Processes(Executor):
    """Work in processes of this machine, side by side.

    Examples
    --------
    >>> import augtree as at
    >>> at.executors.Processes(workers=2)
    Processes(workers=2, retries=3)

    """

    workers: int | None = None
    """The number of processes (default: one a core)."""
    retries: int = 3
    """How often a job is begun again whose worker has died."""

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole_number("workers", self.workers, 1, 1024)
        whole_number("retries", self.retries, 0, 1000)

    @property
    def most(self) -> int:
        """The number of processes."""
        return self.workers or os.cpu_count() or 1

    def pool(self, work: Work) -> ProcessPool:
        return ProcessPool(self.packed("the task or the data", work), self.most, self.retries)

    def check_sendable(self, what: str, *values: object) -> None:
        self.packed(what, values)

    def packed(self, what: str, value: object) -> bytes:
        """A value as it is sent, or an ArgumentError."""
        try:
            return pack(value)
        except Exception as error:
            rule = f"must be 1 where {what} cannot be sent to another process ({error})"
            raise ArgumentError("workers", rule, self.most) from error


class Process(Worker):
    """A process, and the connection to it."""

    def __init__(self) -> None:
        self.connection, theirs = CONTEXT.Pipe()
        self.common: Any = None
        self.process: BaseProcess = CONTEXT.Process(target=serve, args=(theirs,), name="augtree worker")
        self.process.start()
        theirs.close()

    def send(self, key: str, content: bytes) -> None:
        """Send a message; a process that has died is found when its reply is read."""
        with suppress(OSError):
            self.connection.send_bytes(key.encode())
            self.connection.send_bytes(content)

    def end(self) -> int | None:
        """End the process, whatever it does: its exit code."""
        self.process.terminate()
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        return self.process.exitcode


class ProcessPool(WorkerPool[Process]):
    """Processes of this machine."""

    def __init__(self, work: bytes, most: int, retries: int) -> None:
        super().__init__(most, retries)
        self.work = work
        self.common: tuple[Any, bytes] = (None, b"")

    def begin(self, count: int) -> None:
        begun = []
        for _ in range(count):
            begun.append(Process())
            self.workers.append(begun[-1])
        for worker in begun:  # all of them import torch meanwhile
            worker.send("", self.work)

    def send(self, worker: Process, key: str, common: Any, argument: Any) -> None:
        if common is not worker.common:
            if common is not self.common[0]:
                self.common = (common, pack(common))
            worker.send("", self.common[1])
            worker.common = common
        worker.send(key, pack(argument))

    def receive(self) -> Sequence[tuple[Process, Reply | Death]]:
        ready = connection.wait([worker.connection for worker in self.workers])
        return [(worker, self.read(worker)) for worker in self.workers if worker.connection in ready]

    def read(self, worker: Process) -> Reply | Death:
        """What a process has sent, or how it has died."""
        try:
            reply: Reply = unpack(worker.connection.recv_bytes())
        except (EOFError, OSError):
            worker.process.join(PATIENCE)
            code = worker.end() or 0
            if not worker.key and code > 0:
                from_input = getattr(sys.modules["__main__"], "__file__", "<stdin>") == "<stdin>"
                raise ArgumentError("workers", FROM_INPUT if from_input else NOT_BEGUN, self.most) from None
            return Death(signal.Signals(-code).name if code < 0 else f"exit code {code}")
        return reply

    def close(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.end()
        self.workers = []


def serve(parent: Connection) -> None:
    """Do the jobs of a parent until it is gone; Ctrl-C is for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        parent.recv_bytes()
        work, reply = prepared(parent.recv_bytes())
        parent.send_bytes(pack(reply))
        common = None
        while True:
            key, content = parent.recv_bytes().decode(), parent.recv_bytes()
            if key:
                parent.send_bytes(answer(work, key, common, content))
            else:
                common = unpack(content)


def end_with_parent() -> None:
    """End this process, whatever it does, as soon as its parent is gone: a resumed run may begin the same job."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def prepared(content: bytes) -> tuple[Work, Reply]:
    """The work as it arrives, and the reply that says so."""
    try:
        return unpack(content), Reply("")
    except Exception as error:
        return no_work, Reply("", error=sendable_error(error))


def no_work(common: Any, argument: Any) -> Any:
    """The work of a worker that could not prepare itself: its parent ends it."""


def answer(work: Work, key: str, common: Any, content: bytes) -> bytes:
    """The reply to a job, packed."""
    reply = do(lambda _, packed: work(common, unpack(packed)), key, None, content)
    try:
        return pack(reply)
    except Exception as error:
        return pack(Reply(key, error=sendable_error(error)))
