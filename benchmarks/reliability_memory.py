"""`reliability.py memory`: how memory and open files grow over many cool-downs and candidates, each in a process."""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import augtree as at
from augtree.runs.events import Event
from augtree.search import Cooldown, Density
from augtree.search.scorers.base import Scored
from augtree.search.trunk_events import CooledDown
from augtree.transforms import Brightness, Contrast, Flip, Space
from measure import machine, write
from reliability_runs import DIGITS, TASK, begin, killed

MOST_MB = 1.0
"""Memory may grow by this much over 100 cool-downs or scored candidates."""
WARM_UP = 0.25
"""The share of a run in which caches fill, and which is left out."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=200, help="how many cool-downs, and about as many candidates")


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure both, each in a process of its own."""
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        for name, work in (("cool-downs", cooldowns), ("candidates", candidates)):
            log = Path(place) / f"{name}.txt"
            killed(begin(lambda work=work, log=log: work(options.count, log)))  # type: ignore[misc]
            rows[name] = growth(np.loadtxt(log))
            print(name, rows[name], flush=True)
    found = {"machine": machine(1), "runs": rows}
    write("reliability-memory", found)
    return {**found, "holds": all(row["mb_per_100"] < MOST_MB and not row["files_grew"] for row in rows.values())}


def cooldowns(count: int, log: Path) -> None:
    """A search with this many last cool-downs: two nodes below the root, a quarter of the candidates of each kind."""
    each = count // 4
    styles, own = ([kind((i + 1) / each) for i in range(each)] for kind in (Contrast, Brightness))
    scorer = Cooldown(last=count, cool=0.2, look=0.1, renew=0)
    space, folder = Space(styles, basics=[Flip()], own=own), log.parent / "a"
    watch = recorder(CooledDown, log)
    at.search_tree(DIGITS, TASK, space, depth=2, scorer=scorer, budget=count, out=folder, watch=watch)


def candidates(count: int, log: Path) -> None:
    """Searches by density one after the other, until this many candidates are scored."""
    space = [kind((i + 1) / 20) for kind in (Brightness, Contrast) for i in range(20)]
    options: dict[str, Any] = {"scorer": Density(train=0.1, sure=0), "probabilities": (0.5, 1.0), "check": 0}
    seed, watch = 0, recorder(Scored, log)
    while seed == 0 or len(log.read_text().splitlines()) < count:
        out = log.parent / f"b{seed}"
        at.search_tree(DIGITS, TASK, space, depth=6, seed=seed, out=out, watch=watch, **options)
        seed += 1


def recorder(kind: type[Event], log: Path) -> Callable[[Event], None]:
    """Write down memory (MB) and open files at every event of a kind."""

    def watch(event: Event) -> None:
        if isinstance(event, kind):
            gc.collect()
            with log.open("a") as file:
                file.write(f"{memory()} {sum(1 for _ in Path('/proc/self/fd').iterdir())}\n")

    return watch


def memory() -> float:
    """The memory that this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def growth(rows: Any) -> dict[str, float]:
    """How much there is at the end, and the slope after the warm-up."""
    kept = rows[int(len(rows) * WARM_UP) :]
    slope = float(np.polyfit(np.arange(len(kept)), kept[:, 0], 1)[0])
    files = kept[:, 1]
    return {
        "events": len(rows),
        "mb_at_end": round(float(rows[-1, 0]), 1),
        "mb_per_100": round(100 * slope, 3),
        "files": int(files[-1]),
        "files_grew": int(files.max() - files.min()),
    }
