"""Learned trees against the free policies on digits with fifty training labels; minutes on one CPU thread.

    python benchmarks/digits_policies.py          # three search seeds, five trainings with each policy

The task is that of digits_task.py: 50 labels for training, 600 for validation, 357 test pictures. Searches and
trainings are kept in runs/digits and are not done twice. The free policies also get the validation labels to train
on, in rows of their own.
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
from augtree.search import search_tree
from cifar_policies import random_tree
from measure import machine, table, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=3)
    parser.add_argument("--trainings", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/digits"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, task = digits_task.data(), digits_task.task()
    names = ("randaugment", "trivialaugment", "autoaugment-svhn")
    policies: dict[str, Any] = {"none": None} | {name: name for name in names}
    searches = []
    for seed in range(options.searches):
        found = search_tree(data, task, depth=2, seed=seed, out=options.out / f"search-{seed}")
        policies[f"tree, search {seed}"] = found.tree
        searches.append({"seed": seed, "tree": str(found.tree), **vars(found.cost)})
        print(seed, found.tree, found.cost, flush=True)
    pairing = at.spaces.images()["SamplePairing", 1.0]
    policies["SamplePairing, p = 0.5"] = at.Tree().with_node(1, pairing, p=0.5)
    policies |= {f"random tree {i}": random_tree(i, depth=2, fill=0) for i in range(3)}
    seeds = options.trainings
    found_on_train = compare(data, task, policies, seeds=seeds, out=options.out / "compare")
    free = {name: policies[name] for name in ("none", "randaugment", "trivialaugment")}
    with_val = compare(data, task, free, seeds=seeds, train_on="train+val", out=options.out / "compare-with-val")
    rows = [vars(line) for line in found_on_train.lines()]
    rows += [{**vars(line), "policy": f"{line.policy}, validation labels too"} for line in with_val.lines()]
    trees = [row for row in rows if str(row["policy"]).startswith("tree")]
    mean = float(np.mean([row["mean"] for row in trees]))
    body = [[row["policy"], f"{100 * row['mean']:.1f} ± {100 * row['spread']:.1f}"] for row in rows]
    print(table(["policy", "test accuracy"], [*body, ["trees, mean of the searches", f"{100 * mean:.1f}"]]))
    content = {"machine": machine(1), "trainings": seeds, "searches": searches, "rows": rows}
    print(f"best free policy on validation data: {found_on_train.best_free}")
    print(f"written to {write('digits_policies', {**content, 'best_free': found_on_train.best_free})}")


if __name__ == "__main__":
    main()
