"""What a search ends with, against the free policies, on digits with fifty training labels; minutes on a CPU thread.

    python benchmarks/digits_policies.py          # three search seeds, five trainings with each policy

The task is that of digits_task.py: 50 labels for training, 600 for validation, 357 test pictures. The policies of the
searches are trained with like the others, in one training; the searches' finished models (each a whole search) stand
beside what else could be had for their cost. All is kept in runs/digits and not done twice. The free policies also
get the validation labels to train on, in rows of their own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

import augtree as at
import digits_task
from augtree.baselines.controls import Longer, Searched, Soup
from augtree.comparison import compare
from augtree.search import search_tree
from augtree.search.scorers.cooldown import BUDGET
from augtree.transforms import Chain, Flip, PadCrop, TrivialAugment
from cifar_policies import percent, random_tree
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
    usual = Chain([Flip(), PadCrop(1, fill=0), TrivialAugment(fill=0)])
    policies |= {
        "flip, crop, TrivialAugment, for as long as a search": Longer(BUDGET, usual),
        "best free policy, for as long as a search": Longer(BUDGET),
        "best free policy, average of cool-downs": Soup(BUDGET),
        "search, finished model": Searched(at.spaces.auto(data)),
    }
    searches = []
    for seed in range(options.searches):
        found = search_tree(data, task, seed=seed, out=options.out / f"search-{seed}")
        policies[f"policy of search {seed}"] = found.tree
        cost = vars(found.cost)
        searches.append({"seed": seed, "tree": str(found.tree), "out_of_play": list(found.out_of_play), **cost})
        print(seed, found.tree, found.cost, found.verdict(), sep="\n", flush=True)
    policies["SamplePairing, p = 0.5"] = at.Tree().with_node(1, at.spaces.images()["SamplePairing", 1.0], p=0.5)
    policies |= {f"random tree {i}": random_tree(i, depth=2, fill=0) for i in range(3)}
    seeds = options.trainings
    found_on_train = compare(data, task, policies, seeds=seeds, out=options.out / "compare")
    free = {name: policies[name] for name in ("none", "randaugment", "trivialaugment")}
    with_val = compare(data, task, free, seeds=seeds, train_on="train+val", out=options.out / "compare-with-val")
    rows = [vars(line) for line in found_on_train.lines()]
    rows += [{**vars(line), "policy": f"{line.policy}, validation labels too"} for line in with_val.lines()]
    body = [
        [row["policy"], percent({"mean": row["mean"], "sd": row["spread"]}), f"{row['cost']:.1f}"] for row in rows
    ]
    print(table(["policy", "test accuracy", "training equivalents"], body))
    content = {"machine": machine(1), "trainings": seeds, "searches": searches, "rows": rows}
    print(f"best free policy on validation data: {found_on_train.best_free}")
    print(f"written to {write('digits_policies', {**content, 'best_free': found_on_train.best_free})}")


if __name__ == "__main__":
    main()
