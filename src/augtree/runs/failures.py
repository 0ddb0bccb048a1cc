"""The rule for failures.

A candidate, a policy or a training that raises is recorded with its reason, and the run goes on. Only a spent budget,
a lack of memory, a GPU that fails or an error of the disk ends a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from augtree.errors import DeviceError, RunError, device_failed, lacks_memory

Value = TypeVar("Value")
LONGEST_REASON = 300


class BudgetSpentError(Exception):
    """There is nothing left to spend: the result stays as it is."""


def attempt(work: Callable[[], Value]) -> tuple[Value | None, str]:
    """Call a function: its value and no reason, or no value and the reason why it failed.

    Parameters
    ----------
    work
        The function; it has no arguments.

    Examples
    --------
    >>> attempt(lambda: 6 / 3), attempt(lambda: 1 / 0)
    ((2.0, ''), (None, 'ZeroDivisionError: division by zero'))

    """
    try:
        return work(), ""
    except (BudgetSpentError, OSError, RunError, DeviceError):
        raise
    except Exception as error:
        if lacks_memory(error):
            raise
        if device_failed(error):
            what = " ".join(str(error).splitlines()[0].split())
            rule = "nothing more can be computed in this process; what is finished is kept, so resume the run"
            raise DeviceError(f"the GPU failed ({what}): {rule}") from error
        return None, " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
