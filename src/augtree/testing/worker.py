"""Runs a function in another process, to see whether it gives the same result."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

SECONDS = 60.0


class WorkerError(Exception):
    """What went wrong in the other process, or between the two."""


def elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), done in another process.

    It goes to a process started afresh. Only what is defined in the main script, which such a process does not have,
    goes to a copy of this one.
    """
    try:
        cargo = pickle.dumps((function, arguments))
    except Exception as error:
        raise WorkerError(f"it cannot be pickled ({error})") from error
    ask = in_copy if b"__main__" in cargo else in_fresh
    done, result = pickle.loads(ask(cargo))  # noqa: S301 - our own process wrote it
    if not done:
        raise WorkerError(result)
    return result


def answer(cargo: bytes) -> bytes:
    """What comes back: whether it could be done, and the result or the reason."""
    try:
        function, arguments = pickle.loads(cargo)  # noqa: S301 - our own process wrote it
        return pickle.dumps((True, function(*arguments)))
    except Exception as error:
        return pickle.dumps((False, f"it raised {type(error).__name__} there: {error}"))


# ---- a process started afresh ------------------------------------------------------------------------------------

_running: list[subprocess.Popen[bytes]] = []


def in_fresh(cargo: bytes) -> bytes:
    """An answer from a process that inherits nothing; it stays for the next question."""
    process = _running[0] if _running and _running[0].poll() is None else _started()
    box: list[bytes | None] = []
    thread = threading.Thread(target=lambda: box.append(_exchanged(process, cargo)), daemon=True)
    thread.start()
    try:
        thread.join(SECONDS)
    finally:
        if not box or box[0] is None:  # it must not give this answer to the next question
            process.kill()
            process.wait()
    if not box or box[0] is None:
        raise WorkerError("it ended the process there" if box else f"there was no answer within {SECONDS:g} seconds")
    return box[0]


def _started() -> subprocess.Popen[bytes]:
    code = "from augtree.testing.worker import serve; serve()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}  # noqa: PTH109
    process = subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    _running[:] = [process]
    atexit.register(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    with process:  # closes its pipes and waits
        process.kill()


def _exchanged(process: subprocess.Popen[bytes], cargo: bytes) -> bytes | None:
    try:
        if process.stdin is None or process.stdout is None:
            return None
        _send(process.stdin, cargo)
        return _received(process.stdout)
    except OSError:
        return None


def serve() -> None:
    """Answer until the input ends; what is printed goes to stderr."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (cargo := _received(questions)) is not None:
        _send(answers, answer(cargo))


def _send(stream: BinaryIO | Any, content: bytes) -> None:
    stream.write(struct.pack("<Q", len(content)) + content)
    stream.flush()


def _received(stream: BinaryIO | Any) -> bytes | None:
    head = stream.read(8)
    return stream.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else None


# ---- a copy of this process --------------------------------------------------------------------------------------


def in_copy(cargo: bytes) -> bytes:
    """An answer from a fork of this process, as a DataLoader's workers are."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise WorkerError("it is defined in the main script: put it into a module that can be imported")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=lambda: theirs.send_bytes(answer(cargo)), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forking beside threads
        process.start()
    theirs.close()
    try:
        if ours.poll(SECONDS):
            return ours.recv_bytes()
    except EOFError as error:
        raise WorkerError("it ended the process there") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    raise WorkerError(f"there was no answer within {SECONDS:g} seconds")
