import os
import signal
import subprocess
import sys

import pytest

from augtree.runs import faults

PROGRAM = """
import os, runpy, sys
point = runpy.run_path(sys.argv[1])["point"]
for i in range(4):
    point("unit.computed")
    point("unit.recorded")
    os.write(1, str(i).encode())
"""


def passed(fault):
    """What the program wrote, and how it ended."""
    surroundings = {name: value for name, value in os.environ.items() if name != "AUGTREE_FAULT"}
    surroundings |= {} if fault is None else {"AUGTREE_FAULT": fault}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, faults.__file__], env=surroundings, capture_output=True, timeout=60
    )
    return done.stdout.decode(), done.returncode


@pytest.mark.parametrize(
    ("fault", "written"),
    [
        ("unit.recorded:3", "01"),
        ("unit.computed", ""),
        ("unit.recorded:9", "0123"),
        ("node.built:1", "0123"),
        (None, "0123"),
    ],
)
def test_a_process_dies_at_the_pass_that_was_asked_for(fault, written):
    assert passed(fault) == (written, 0 if written == "0123" else -signal.SIGKILL)


def test_a_process_can_be_interrupted_too():
    written, code = passed("unit.recorded:3:SIGINT")
    assert (written, code) == ("01", -signal.SIGINT)  # nothing in the program catches a KeyboardInterrupt


def test_only_the_named_point_counts(monkeypatch):
    monkeypatch.setattr(faults, "passed", type(faults.passed)())
    monkeypatch.setenv("AUGTREE_FAULT", "unit.recorded:2")
    faults.point("unit.computed")
    faults.point("unit.recorded")
    faults.point("unit.computed")
    assert faults.passed == {"unit.recorded": 1}
