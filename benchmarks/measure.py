"""Timing side by side, how far two rankings agree, and the file that a table comes from."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"


def side_by_side(
    sides: dict[str, Callable[[], object]], repeats: int, cuda: bool = False, block: float = 0.03, most: float = 20
) -> dict[str, list[float]]:
    """Seconds a call, `repeats` times for each side, or three where that takes more than `most` seconds.

    The sides take turns, so that a noisy machine is noisy for all; a turn lasts at least `block` seconds, so that all
    are equally warm. Before the turn of a side that takes less than a second, it is called once more: after a loop of
    many seconds its memory would have to be mapped anew.
    """
    begin = time.perf_counter()
    calls, quick = {}, set()
    for name, side in sides.items():
        side()
        seconds = timed(side, 1, cuda)
        calls[name] = max(1, round(block / seconds))
        if seconds < 1:
            quick.add(name)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats):
        if repeat >= 3 and time.perf_counter() - begin > most:
            break
        for name, side in sides.items():
            if name in quick:
                side()
            times[name].append(timed(side, calls[name], cuda))
    return times


def timed(side: Callable[[], object], calls: int, cuda: bool) -> float:
    """Seconds a call."""
    if cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        side()
    if cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and quartiles in milliseconds."""
    low, middle, high = statistics.quantiles(seconds, n=4)
    return {"ms": round(1e3 * middle, 4), "ms_q1": round(1e3 * low, 4), "ms_q3": round(1e3 * high, 4)}


def machine(threads: int) -> dict[str, Any]:
    """What a figure was measured on."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def cpu_name() -> str:
    """The processor as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def write(name: str, content: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Keep a table's figures."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spearman(one: Array, other: Array) -> float:
    """Spearman's rank correlation."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def ranks(values: Array) -> Array:
    """From 0; equal values share theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    found: Array = (np.cumsum(count) - (count + 1) / 2)[place]
    return found
