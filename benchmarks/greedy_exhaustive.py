"""What greed costs: the tree that Algorithm 1 grows against the best of all trees of two levels, on a small space.

    python benchmarks/greedy_exhaustive.py --seeds 3      # digits with 50 labels, six candidates, one thread

Both score by trainings of half the length (`retrain`), all candidates with the same batches and draws; then each tree
is trained with several seeds. Runs are kept in runs/greedy and are not done twice.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import digits_task
from augtree.comparison import compare
from augtree.search import Retrain, search_tree
from measure import machine, table, write

NAMES = [
    ("Rotate", 0.6),
    ("ShearX", 0.6),
    ("TranslateX", 0.4),
    ("TranslateY", 0.4),
    ("Brightness", 0.8),
    ("Sharpness", 0.8),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trainings", type=int, default=4)
    parser.add_argument("--train", type=float, default=0.5, help="how long the scoring trainings are")
    parser.add_argument("--out", type=Path, default=Path("runs/greedy"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, task = digits_task.data(), digits_task.task()
    everything = at.spaces.images(fill=0)
    space = [everything[which] for which in NAMES]
    rows: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        found = {
            method: search_tree(
                data, task, space, depth=2, scorer=Retrain(train=options.train), seed=seed, method=method, check=0,
                out=options.out / f"{method}-{seed}",
            )
            for method in ("greedy", "exhaustive")
        }  # fmt: skip
        trees = {name: result.tree for name, result in found.items()}
        judged = compare(
            data, task, {"none": None, **trees}, seeds=options.trainings, out=options.out / f"compare-{seed}"
        )
        lines = {line.policy: line for line in judged.lines()}
        row: dict[str, Any] = {"seed": seed, **{f"{name} accuracy": lines[name].mean for name in lines}}
        row |= {f"{name} tree": str(trees[name]) for name in trees}
        row |= {f"{name} scorings": found[name].cost.scorings for name in found}
        rows.append(row)
        print(row, flush=True)
    body = [
        [str(row["seed"]), f"{row['none accuracy']:.4f}"]
        + [f"{row[f'{n} accuracy']:.4f} ({row[f'{n} scorings']} scorings)" for n in ("greedy", "exhaustive")]
        for row in rows
    ]
    print(table(["search seed", "none", "greedy", "exhaustive"], body))
    gap = np.mean([row["exhaustive accuracy"] - row["greedy accuracy"] for row in rows])
    print(f"greed costs {100 * gap:+.2f} points of test accuracy on average")
    content = {"machine": machine(1), "train": options.train, "trainings": options.trainings, "rows": rows}
    print(f"written to {write('greedy_exhaustive', content)}")


if __name__ == "__main__":
    main()
