"""What executors cost: an empty job, the first job, the bytes of a cool-down, and what a second worker gains.

    python benchmarks/executors.py             # three minutes on two idle cores; needs augtree[ray]
    python benchmarks/executors.py --no-ray

Figures are kept in results/executors.json; docs/cluster.md reckons with them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data import Dataset, from_arrays
from augtree.runs.executors import Executor, Processes, Ray, Serial
from augtree.runs.executors.base import Reply
from augtree.runs.executors.messages import pack
from augtree.runs.executors.ray import need_ray
from augtree.runs.workers import TrainerWork
from augtree.search import Cooldown, Density
from augtree.search.branches import Branch, run_branch
from augtree.tasks import Classification
from augtree.tasks.trainer import Trainer
from augtree.transforms import Flip, Posterize, Rotate, Space
from measure import machine, write

JOBS = 2000
"""The number of empty jobs."""
REPEATS = 3
TASK = Classification(model="cnn", steps=400, device="cpu")
SPACE = Space([Posterize(0.2), Rotate(0.2)], basics=[Flip()])
POLICIES = {"none": None, "ra": "randaugment"}


def nothing(common: Any, argument: Any) -> None:
    """An empty job."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-ray", action="store_true", help="leave out what needs Ray")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many empty jobs")
    parser.add_argument("--steps", type=int, default=TASK.steps, help="the length of a training in the speed-up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    executors: dict[str, Executor] = {"serial": Serial(), "processes": Processes(2)}
    executors |= {} if options.no_ray else {"ray": Ray(workers=2)}
    digits = at.data.load("digits")
    found: dict[str, Any] = {"machine": machine(1), "load_before": round(os.getloadavg()[0], 1)}
    found["empty_job_us"] = {name: empty_job(executor, options.jobs) for name, executor in executors.items()}
    print(found, flush=True)
    if not options.no_ray:
        found["thousand_workers"] = many_workers(1000, 3000)
        print(found["thousand_workers"], flush=True)
    found["first_job_s"] = {name: first_job(executor, digits) for name, executor in executors.items()}
    print(found["first_job_s"], flush=True)
    found["bytes"] = {
        "digits, cnn": sizes(digits, "cnn"),
        "50,000 pictures of 32 px, wrn-16-4": sizes(pictures(50_000, 32), "wrn-16-4"),
        "5,000 pictures of 224 px, resnet18": sizes(pictures(5_000, 224), "resnet18"),
    }
    found["bytes"]["digits, cnn"]["a group's search by density, back"] = group_result(digits)
    print(found["bytes"], flush=True)
    found["steps"] = options.steps
    found["seconds"] = speed_ups(digits, options.steps)
    print(json.dumps(found, indent=1))
    write("executors", found)


def empty_job(executor: Executor, jobs: int) -> dict[str, float]:
    """Microseconds a job, with two workers that are ready."""
    with executor.pool(nothing) as pool:
        list(pool.run({str(i): i for i in range(100)}))
        times = [timed(lambda: list(pool.run({str(i): i for i in range(jobs)}))) / jobs for _ in range(REPEATS)]
    return {"median": round(1e6 * statistics.median(times), 1), "least": round(1e6 * min(times), 1)}


def many_workers(workers: int, jobs: int) -> dict[str, float]:
    """What a driver pays where it waits for many workers, two of which there is room for: the others are awaited."""
    ray = need_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        pool = Ray(workers=workers).pool(nothing)
        begin = time.perf_counter()
        values = pool.run({str(i): i for i in range(jobs)})
        next(values)
        first = time.perf_counter() - begin
        seconds = timed(lambda: list(values))
        closing = timed(pool.close)
    finally:
        ray.shutdown()
    job_us = round(1e6 * seconds / jobs, 1)
    return {"workers": workers, "begin_s": round(first, 2), "job_us": job_us, "close_s": round(closing, 2)}


def first_job(executor: Executor, data: Dataset) -> dict[str, float]:
    """Seconds until the value of a first job that needs a trainer, and with workers that are ready."""
    work = TrainerWork(TASK.prepare(data), untrained)

    def first() -> float:
        begin = time.perf_counter()
        with executor.pool(work) as pool:
            list(pool.run({"a": (False, 0)}))
            return time.perf_counter() - begin

    times = [first() for _ in range(REPEATS)]
    return {"median": round(statistics.median(times), 2), "least": round(min(times), 2)}


def untrained(trainer: Trainer, common: None, argument: int) -> int:  # noqa: ARG001
    """A job that trains nothing."""
    return argument


def sizes(data: Dataset, model: str) -> dict[str, int]:
    """The bytes of what moves: once a worker or a machine, once a look, once a cool-down."""
    trainer = Classification(model=model, batch_size=2, device="cpu").prepare(data)
    state, rows = trainer.fresh(0), np.sort(data.indices("val"))
    branch = Branch(SPACE[0], tuple([0.1] * 100), 0, rows)
    losses = np.zeros(len(rows))
    return {
        "work, once": len(pack(TrainerWork(trainer, run_branch))),
        "model, once a look": len(pack(state)),
        "cool-down, there": len(pack((False, branch))),
        "cool-down of a look, back": len(pack(Reply("look/0/0", (losses, None, None)))),
        "last cool-down, back": len(pack(Reply("cool/0", (losses, state, 0.5)))),
    }


def group_result(data: Dataset) -> int:
    """The bytes of what a group's search by density sends back."""
    task = Classification(model="cnn", steps=20, device="cpu")
    result = at.search_tree(data, task, SPACE, depth=2, scorer=Density(train=0.5), check=0)
    return len(pack(Reply("group", result)))


def pictures(count: int, side: int) -> Dataset:
    """Empty pictures, a tenth of them for validation."""
    samples = np.zeros((count, 3, side, side), np.uint8)
    split = np.where(np.arange(count) % 10 == 0, "val", "train").tolist()
    return from_arrays(samples, np.arange(count) // 10 % 10, split=split, name="empty")


def speed_ups(data: Dataset, steps: int) -> dict[str, dict[str, float]]:
    """Seconds of a search, of the cool-downs alone and of a comparison, serially and with two workers."""
    task = Classification(model="cnn", steps=steps, device="cpu")
    scorer = Cooldown(look=0.1, cool=0.2, last=3)
    trainer = task.prepare(data)
    start, rows = trainer.fresh(0), np.sort(data.indices("val"))
    branches = {str(i): Branch(SPACE[1], (0.05,) * (steps // 5), i, rows) for i in range(8)}

    def cool(executor: Executor) -> float:
        with executor.pool(TrainerWork(trainer, run_branch)) as pool:
            jobs = {key: (False, branch) for key, branch in branches.items()}
            list(pool.run(jobs, start))  # until all workers are ready
            return timed(lambda: list(pool.run(jobs, start)))

    def search(executor: Executor) -> float:
        with tempfile.TemporaryDirectory() as place:
            how: dict[str, Any] = {"scorer": scorer, "budget": 5, "out": Path(place) / "run", "executor": executor}
            return timed(lambda: at.search_tree(data, task, SPACE, depth=1, **how))

    def compare(executor: Executor) -> float:
        return timed(lambda: at.compare(data, task, POLICIES, seeds=2, executor=executor))

    works: dict[str, Callable[[Executor], float]] = {"8 cool-downs": cool, "search": search, "comparison": compare}
    rows_ = {}
    for name, work in works.items():
        serial, two = work(Serial()), work(Processes(2))
        rows_[name] = {"serial": round(serial, 2), "two": round(two, 2), "speed_up": round(serial / two, 2)}
        print(name, rows_[name], flush=True)
    return rows_


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
