"""`reliability.py kills`: SIGKILL at random moments and at every named point, then resumed until done."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import augtree as at
from augtree.runs import faults
from measure import machine, write
from reliability_runs import KINDS, Meter, begin, contents, different_bytes, killed, recorded

AGAIN = 0.3
"""The chance that a resumed run is killed once more."""


class Loss(NamedTuple):
    """What a kill cost."""

    units: int
    """Units that were begun and not recorded."""
    seconds: float
    """How long the last of them had been worked on."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=200, help="how many kills at random moments")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, help="the kinds of runs")
    parser.add_argument("--passes", type=int, default=3, help="how many passes of each fault point: first, last, ...")


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Kill and resume, kind by kind."""
    rng, rows, place = random.Random(options.seed), {}, Path(tempfile.mkdtemp())
    share = [options.kills // len(options.kinds)] * len(options.kinds)
    share = [count + (i < options.kills % len(options.kinds)) for i, count in enumerate(share)]
    try:
        for kind, kills in zip(options.kinds, share, strict=True):
            rows[kind] = Kills(kind, place / kind.replace(", ", "-"), rng).measured(kills, options.passes)
            print(kind, rows[kind], flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    totals = {name: sum(row[name] for row in rows.values()) for name in ("kills", "faults", "different_bytes")}
    most = max(row["lost_units_most"] for row in rows.values())
    found = {"machine": machine(1), "seed": options.seed, "kinds": rows, **totals, "lost_units_most": most}
    write("reliability-kills", found)
    return {**found, "holds": totals["different_bytes"] == 0 and most <= 1}


class Kills:
    """The kills of one kind of run."""

    def __init__(self, kind: str, place: Path, rng: random.Random) -> None:
        self.data, self.work = KINDS[kind]
        self.place, self.rng = place, rng
        self.losses: list[Loss] = []
        self.different = 0

    def measured(self, kills: int, passes: int) -> dict[str, Any]:
        """The counts of this kind."""
        self.place.mkdir(parents=True)
        times = []
        for name in ("whole", "control"):
            since = time.monotonic()
            if killed(begin(lambda name=name: self.work(self.place / name))):  # type: ignore[misc]
                raise RuntimeError("nobody should have killed this")
            times.append(time.monotonic() - since)
        self.whole, self.seconds = contents(self.place / "whole"), min(times)
        self.compare("control")
        done = 0
        while done < kills:
            done += self.killed_at_random(f"kill-{done}", kills - done)
        points = list(self.points(passes))
        for fault in points:
            self.killed_at(fault)
        lost = [loss.seconds for loss in self.losses if loss.units]
        return {
            "run_s": round(self.seconds, 2),
            "kills": done,
            "faults": len(points),
            "different_bytes": self.different,
            "lost_units_most": max((loss.units for loss in self.losses), default=0),
            "lost_s_median": round(statistics.median(lost), 3) if lost else 0,
            "lost_s_most": round(max(lost), 3) if lost else 0,
        }

    def resumed(self, out: Path) -> Callable[[], object]:
        """How the run is continued: by `resume`, where there is a run to resume, or by the same call."""
        if (out / "spec.json").exists() and self.rng.random() < 0.5:
            return lambda: at.resume(out, data=self.data)
        return lambda: self.work(out)

    def killed_at_random(self, name: str, most: int) -> int:
        """Kill a run, and perhaps its continuation; let it end. The number of kills."""
        out, count = self.place / name, 0
        while count < most and (count == 0 or self.rng.random() < AGAIN):
            meter, before = Meter(), recorded(out)
            pid = begin(self.resumed(out), meter=meter)
            time.sleep(self.rng.random() * self.seconds * (1 if count == 0 else 0.5))
            os.kill(pid, signal.SIGKILL)
            at_time = time.monotonic()
            if not killed(pid):  # it was done before
                break
            self.note(meter, recorded(out) - before, at_time)
            count += 1
        self.finish(name)
        return count

    def killed_at(self, fault: str) -> None:
        """Kill a run at a named point; let it end."""
        out, meter = self.place / fault.replace(":", "-"), Meter()
        if not killed(begin(lambda: self.work(out), fault, meter)):
            raise RuntimeError(f"the point {fault} was not passed")
        self.note(meter, recorded(out), time.monotonic())
        self.finish(out.name)

    def note(self, meter: Meter, finished: int, at_time: float) -> None:
        """Note what a kill cost."""
        lost = meter.units - finished
        self.losses.append(Loss(lost, at_time - meter.last if lost else 0.0))

    def finish(self, name: str) -> None:
        """Resume until the end; compare; tidy up."""
        killed(begin(self.resumed(self.place / name)))
        self.compare(name)
        shutil.rmtree(self.place / name)

    def compare(self, name: str) -> None:
        """Count the bytes that differ from the run that nobody stopped."""
        found = contents(self.place / name)
        self.different += different_bytes(self.whole, found)
        for file in sorted({*self.whole, *found}):
            before, after = self.whole.get(file), found.get(file)
            if before != after:
                print(f"{name}: {file} differs: {before!r} became {after!r}"[:2000], flush=True)

    def points(self, passes: int) -> Iterator[str]:
        """The named points that this kind passes: the first pass of each, the last, and some between."""
        log, point = self.place / "passed", faults.point

        def noted(name: str) -> None:
            with log.open("a") as file:
                file.write(f"{name}\n")
            point(name)

        def work() -> None:
            setattr(faults, "point", noted)  # noqa: B010 - for mypy
            self.work(self.place / "count")

        killed(begin(work))
        shutil.rmtree(self.place / "count")
        for name, count in Counter(log.read_text().split()).items():
            chosen = {1 + round(i * (count - 1) / max(1, passes - 1)) for i in range(passes)}
            yield from (f"{name}:{number}" for number in sorted(chosen))
