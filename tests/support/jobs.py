"""Jobs for workers: quick to import, so that processes begin at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def add(common, argument):
    """The sum, later for smaller arguments; 13 raises."""
    time.sleep(max(0, 3 - argument) / 50)
    if argument == 13:
        raise ValueError("13 is no number of mine")
    return (common or 0) + argument


def sleep(_, seconds):
    """Do nothing for a while."""
    time.sleep(seconds)


def meet(folder: Path, other):
    """Wait until the other is here."""
    (folder / f"not {other}").touch()
    ends = time.monotonic() + 30
    while len(list(folder.iterdir())) < 2:
        if time.monotonic() > ends:
            raise TimeoutError
        time.sleep(0.01)
    return other


def dies(marker: Path, times):
    """Its worker dies some times, then it does its work; the marker counts."""
    with marker.open("a") as file:
        file.write("x")
    if len(marker.read_text()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def own_error(_, argument):
    raise BrokenPipeline(argument, "a")


class BrokenPipeline(Exception):
    """Pickled, it cannot be read again."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


class Unreadable:
    """Sent, but not received."""

    def __reduce__(self):
        return int, ("no number",)

    def __call__(self, common, argument):
        return argument
