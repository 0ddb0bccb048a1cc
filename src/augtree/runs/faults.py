"""Named points at which a run can be made to die, so that tests can resume it there.

`AUGTREE_FAULT=unit.recorded:3` kills the process, as a power cut would, when it passes that point the third time;
`unit.recorded:3:SIGINT` interrupts it there, as Ctrl-C would.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

POINTS = ("run.created", "unit.computed", "unit.recorded", "checkpoint.written", "node.built", "result.written")
passed: Counter[str] = Counter()


def point(name: str) -> None:
    """Pass a named point."""
    wanted, count, kind, *_ = [*os.environ.get("AUGTREE_FAULT", "").split(":"), "", ""]
    if wanted != name:
        return
    passed[name] += 1
    if passed[name] == int(count or 1):
        os.kill(os.getpid(), signal.Signals[kind or "SIGKILL"])
