"""What learning the weights costs: weighted training against plain SGD on the same work, time and memory.

    python benchmarks/weighting_speed.py                  # digits, a small CNN; NCI1 with GIN from $AUGTREE_DATA
    python benchmarks/weighting_speed.py --device cuda    # WRN-16-4 too

Both sides take the same number of steps on batches of the same size, in turns; alpha = 50. On the CPU each is a
process of its own; on a GPU all turns share one, and the memory is the most that was taken in the first turn.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data import Dataset
from augtree.forests.algorithm2 import WeightedTraining
from augtree.tasks.trainer import Trainer
from measure import machine, table, write

GROUPS = 4


def task_of(name: str, device: str, steps: int) -> tuple[Dataset, at.tasks.Classification]:
    if name == "digits, cnn":
        data = at.data.load("digits")
        task = at.tasks.Classification(model="cnn", steps=steps, batch_size=64, device=device, options={"width": 32})
    elif name == "NCI1, gin":
        data = at.data.load("NCI1")
        task = at.tasks.Classification(model="gin", steps=steps, batch_size=128, optimizer="adamw", device=device)
    else:
        rng = np.random.default_rng(0)
        x = rng.integers(0, 256, (4000, 3, 32, 32)).astype(np.uint8)
        data = at.data.from_arrays(x, rng.integers(0, 10, 4000))
        task = at.tasks.Classification(model="wrn-16-4", steps=steps, device=device)
    if data.domain == "graph":
        return at.data.group(data, "size-degree:2x2"), task
    parts = iter(np.arange(len(data)) % GROUPS)
    return at.data.group(data, lambda _: f"part {next(parts)}"), task


def ready(name: str, device: str, steps: int) -> tuple[Trainer, at.Forest]:
    data, task = task_of(name, device, steps)
    return task.prepare(data), at.Forest({g: (at.Tree(), 1 / len(data.group_names)) for g in data.group_names})


def one(trainer: Trainer, forest: at.Forest, side: str) -> dict[str, float]:
    """One training, after a short one that warms everything up."""
    took, on_gpu = 0.0, trainer.device.type == "cuda"
    for warm in (True, False):
        options = at.Weighting(alpha=50, eta=0.0 if side == "plain" else 0.1)
        training = WeightedTraining(trainer, forest, options, 0)
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        clock = time.perf_counter if on_gpu else time.process_time  # one thread: a neighbour takes no part
        began = clock()
        training.run(range(min(3, training.rounds) if warm else training.rounds))
        if on_gpu:
            torch.cuda.synchronize()
        took = clock() - began
    most = torch.cuda.max_memory_reserved() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": took, "mebibytes": most / 2**20}


def turns_of(name: str, device: str, steps: int, turns: int) -> dict[str, list[dict[str, Any]]]:
    """Every turn of both sides."""
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "weighted": []}
    trainer, forest = ready(name, device, steps) if device == "cuda" else (None, None)
    for _ in range(turns):
        for side, rows in found.items():
            if trainer is not None and forest is not None:
                rows.append(one(trainer, forest, side))
                continue
            command = [sys.executable, __file__, "--device", device, "--steps", str(steps), "--one", name, side]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--work", nargs="+", help="these models alone: cnn, gin, wrn-16-4")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.one:
        name, side = options.one
        print(json.dumps(one(*ready(name, options.device, options.steps), side)))
        return
    names = ["digits, cnn"] + (["NCI1, gin"] if os.environ.get("AUGTREE_DATA") else [])
    names += ["pictures of 32 px, wrn-16-4"] if options.device == "cuda" else []
    names = [name for name in names if not options.work or name.rpartition(" ")[2] in options.work]
    rows = []
    for name in names:
        if options.device == "cuda":
            torch.cuda.empty_cache()
        found = turns_of(name, options.device, options.steps, options.turns)
        ratios = [w["seconds"] / p["seconds"] for p, w in zip(found["plain"], found["weighted"], strict=True)]
        memory = [found[side][0]["mebibytes"] for side in ("plain", "weighted")]
        rows.append(
            {
                "work": name,
                "plain_s": round(float(np.median([run["seconds"] for run in found["plain"]])), 2),
                "ratio": round(float(np.median(ratios)), 2),
                "ratios": [round(ratio, 2) for ratio in ratios],
                "memory_plain_mib": round(float(memory[0])),
                "memory_weighted_mib": round(float(memory[1])),
            }
        )
    body = [
        [
            str(row["work"]),
            f"{row['ratio']}x",
            f"{row['ratios']}",
            f"{row['memory_plain_mib']} / {row['memory_weighted_mib']}",
        ]
        for row in rows
    ]
    print(table(["work", "time over plain", "each turn", "memory MiB, plain / weighted"], body))
    suffix = "" if options.device == "cpu" else "_gpu"
    content = {"machine": machine(1), "steps": options.steps, "alpha": 50, "groups": GROUPS, "rows": rows}
    print(f"written to {write('weighting_speed' + suffix, content)}")


if __name__ == "__main__":
    main()
