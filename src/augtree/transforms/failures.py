"""How transforms fail: a limit for the time of a call, and one kind of error for whatever a transform raises."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from augtree.errors import AugtreeError, TransformError, lacks_memory
from augtree.transforms.base import Policy, Transform

Value = TypeVar("Value")
HAS_TIMER = hasattr(signal, "setitimer")


class TimeLimitError(Exception):
    """A call took longer than it may."""


class _Expired(BaseException):
    """Raised within the call, by itself as the timer's handler; `except Exception` in there does not catch it."""

    def __call__(self, *_: Any) -> None:
        raise self


def within(seconds: float, function: Callable[[], Value]) -> Value:
    """The value of function(), or a TimeLimitError where it takes longer.

    In the main thread a timer's signal ends the call, even while it sleeps or waits, unless it stays in compiled code
    and never comes back to Python. Elsewhere, on systems without such timers, and where the signal's handler was not
    set from Python and so could not be put back, the call is made in a thread of its own, which is abandoned.

    >>> within(5, lambda: 6 * 7)
    42
    >>> within(0.01, lambda: time.sleep(5))
    Traceback (most recent call last):
    ...
    augtree.transforms.failures.TimeLimitError: it took longer than 0.01 seconds
    """
    if not HAS_TIMER or threading.current_thread() is not threading.main_thread():
        return in_a_thread(seconds, function)
    before = signal.getsignal(signal.SIGALRM)
    if before is None:
        return in_a_thread(seconds, function)
    delay, interval = signal.getitimer(signal.ITIMER_REAL)
    if isinstance(before, _Expired) and 0 < delay <= seconds:  # a limit around this one ends first
        return function()
    expired, begin = _Expired(), time.monotonic()
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)  # so that no signal of the caller's timer ends the call
            signal.signal(signal.SIGALRM, expired)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return function()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Expired as error:
        if error is not expired:
            raise
        raise TimeLimitError(f"it took longer than {seconds:g} seconds") from None
    finally:
        signal.signal(signal.SIGALRM, before)
        if delay:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, delay - (time.monotonic() - begin)), interval)


def in_a_thread(seconds: float, function: Callable[[], Value]) -> Value:
    """The value of function(), called in a thread that is abandoned where it takes longer."""
    values: list[Value] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            values.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="augtree: a call with a time limit", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not values:
        raise TimeLimitError(f"it took longer than {seconds:g} seconds")
    return values[0]


def applied(policy: Policy, batch: Any, **where: Any) -> Any:
    """A batch after a policy; what a transform raises becomes a TransformError that names it.

    Errors of ours, a lack of memory and errors of the disk outside a user's own transforms stay what they are.
    """
    try:
        return policy(batch, **where)
    except AugtreeError:
        raise
    except Exception as error:
        if lacks_memory(error):
            raise
        name = innermost(error.__traceback__)
        if isinstance(error, OSError) and not name:
            raise
        name = name or f"a transform of {policy}"
        raise TransformError(f"{name} raised {type(error).__name__}: {error}") from error


def innermost(traceback: TracebackType | None) -> str:
    """The name of the last transform of a user's own that a traceback passes through; empty where there is none."""
    name = ""
    while traceback is not None:
        owner = traceback.tb_frame.f_locals.get("self")
        if isinstance(owner, Transform) and not type(owner).__module__.startswith("augtree."):
            name = str(owner)
        traceback = traceback.tb_next
    return name
