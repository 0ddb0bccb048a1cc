"""`reliability.py ray-kills`: 1 to 3 of 4 Ray workers killed at random moments, and the driver; bytes as serially."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import augtree as at
from augtree.runs.executors import Ray
from augtree.runs.executors import ray as ray_executor
from measure import machine, write
from reliability_runs import DIGITS, GROUPED, POLICIES, SHORT, SPACE, TASK, begin, contents, different_bytes, recorded

LONGER = replace(TASK, steps=200)
"""Long enough that workers can be killed while they work."""
WORKERS = 4
KINDS: dict[str, Callable[..., object]] = {
    "search": lambda **how: at.search_tree(DIGITS, LONGER, SPACE, depth=2, **SHORT, **how),
    "forest": lambda **how: at.search_forest(GROUPED, LONGER, SPACE, alpha=20, **SHORT, **how),
    "compare": lambda **how: at.compare(GROUPED, LONGER, POLICIES, seeds=4, **how),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--moments", type=int, default=20, help="runs in which workers are killed")
    parser.add_argument("--drivers", type=int, default=6, help="runs whose driver is killed")
    parser.add_argument("--seed", type=int, default=0)


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Drivers first: they are forked, which a process that uses Ray cannot be."""
    rng, place = random.Random(options.seed), Path(tempfile.mkdtemp())
    ray = ray_executor.need_ray()
    try:
        whole = {}
        for kind, work in KINDS.items():
            work(out=place / kind)
            whole[kind] = contents(place / kind)
        drivers = [killed_driver(list(KINDS)[i % len(KINDS)], place, rng, whole) for i in range(options.drivers)]
        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        rows = {}
        for i, kind in enumerate(KINDS):
            count = options.moments // len(KINDS) + (i < options.moments % len(KINDS))
            rows[kind] = KilledWorkers(kind, place, rng, whole[kind]).counted(count)
            print(kind, rows[kind], flush=True)
    finally:
        ray.shutdown()
        shutil.rmtree(place, ignore_errors=True)
    different = sum(row["different_bytes"] for row in (*rows.values(), *drivers))
    found = {
        "machine": machine(1),
        "seed": options.seed,
        "workers": WORKERS,
        "kinds": rows,
        "moments": sum(row["moments"] for row in rows.values()),
        "killed_workers": sum(row["killed_workers"] for row in rows.values()),
        "drivers": drivers,
        "different_bytes": different,
    }
    write("reliability-ray-kills", found)
    return {**found, "holds": different == 0}


def killed_driver(kind: str, place: Path, rng: random.Random, whole: dict[str, dict[str, bytes]]) -> dict[str, Any]:
    """Kill a driver after some units, and resume without Ray."""
    out, units = place / f"driver-{kind}", rng.randint(1, 6)
    pid = begin(lambda: KINDS[kind](out=out, executor=Ray(workers=2)))
    while not out.exists() or recorded(out) < units:
        time.sleep(0.01)
    time.sleep(rng.random() * 0.1)
    os.kill(pid, signal.SIGKILL)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    before = recorded(out)
    KINDS[kind](out=out)
    row = {
        "kind": kind,
        "killed": killed,
        "units": before,
        "different_bytes": different_bytes(whole[kind], contents(out)),
    }
    shutil.rmtree(out)
    print(row, flush=True)
    return row


class KilledWorkers:
    """Runs of one kind on Ray whose workers are killed."""

    def __init__(self, kind: str, place: Path, rng: random.Random, whole: dict[str, bytes]) -> None:
        self.work, self.out, self.rng, self.whole = KINDS[kind], place / f"ray-{kind}", rng, whole
        self.working, self.began = threading.Event(), 0.0

    def counted(self, moments: int) -> dict[str, Any]:
        """The counts of this kind; a first run, undisturbed, says how long the work takes."""
        send, working = ray_executor.RayPool.send, self.working

        def sent(*arguments: Any) -> None:
            if not working.is_set():
                self.began = time.monotonic()
                working.set()
            send(*arguments)

        setattr(ray_executor.RayPool, "send", sent)  # noqa: B010 - for mypy
        different, seconds = self.run(None)
        done = killed = 0
        while done < moments:
            killer = Killer(self.working, self.rng.random() * seconds, self.rng.randint(1, 3), self.rng)
            bytes_, _ = self.run(killer)
            different += bytes_
            done += killer.killed > 0
            killed += killer.killed
        setattr(ray_executor.RayPool, "send", send)  # noqa: B010
        counts = {"moments": done, "killed_workers": killed, "different_bytes": different}
        return {"work_s": round(seconds, 2), **counts}

    def run(self, killer: Killer | None) -> tuple[int, float]:
        """One run: how many bytes differ, and the seconds from the first job on."""
        self.working.clear()
        if killer is not None:
            killer.start()
        self.work(out=self.out, executor=Ray(workers=WORKERS))
        end = time.monotonic()
        if killer is not None:
            killer.join()
        different = different_bytes(self.whole, contents(self.out))
        shutil.rmtree(self.out)
        return different, end - self.began


class Killer(threading.Thread):
    """Kills some workers, some seconds after the first job was sent."""

    def __init__(self, working: threading.Event, seconds: float, count: int, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self.working, self.seconds, self.count, self.rng, self.killed = working, seconds, count, rng, 0

    def run(self) -> None:
        self.working.wait()
        time.sleep(self.seconds)
        there = workers_of(os.getpid())
        for pid in self.rng.sample(there, min(self.count, len(there))):
            os.kill(pid, signal.SIGKILL)
            self.killed += 1


def workers_of(driver: int) -> list[int]:
    """The processes of our actors on the cluster that a driver has begun."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                title = (path / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if title.startswith(b"ray::Actor") and driver in ancestors(int(path.name)):
                found.append(int(path.name))
    return sorted(found)


def ancestors(pid: int) -> list[int]:
    """The parents of a process, up to the first."""
    found: list[int] = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found
