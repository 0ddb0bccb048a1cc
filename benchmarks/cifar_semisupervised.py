"""Consistency training with few labels: CIFAR-10, 1,000 labels, WRN-28-2, the policy as the strong view.

    python benchmarks/cifar_semisupervised.py write set.npz --root DIR              # from the official files
    python benchmarks/cifar_semisupervised.py search set.npz --seeds 0 --out runs/few
    python benchmarks/cifar_semisupervised.py train set.npz --policies none randaugment runs/few/*/tree.json
    python benchmarks/cifar_semisupervised.py train set.npz --task classification   # the same labels alone
    python benchmarks/cifar_semisupervised.py table runs/few        # all results there so far; kept as a JSON file
    python benchmarks/cifar_semisupervised.py table benchmarks/results/cifar_semisupervised.json
    python benchmarks/cifar_semisupervised.py search digits --labels 30 --model cnn --steps 400 --out runs/few-digits

The labels of unlabelled pictures are not in set.npz. `--train` and `--test` make it smaller: so many training
pictures before all but 1,000 lose their labels, so many test pictures. Everything is chosen on validation data;
`train` reads the test set once, for the table. Searches are runs of augtree and are resumed where they were stopped;
each training is a file, and is not done twice.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree import data as data_sets
from augtree.data import Dataset
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import ArgumentError
from augtree.files import write_atomically
from augtree.search import search_tree
from augtree.tasks import Classification
from augtree.tasks.semisupervised import SemiSupervised
from augtree.transforms import Chain, Flip, PadCrop
from cifar_policies import percent, policy_of, searched_bare, summary
from measure import machine, table, write

TASKS = {"semisupervised": SemiSupervised, "classification": Classification}


def write_set(options: argparse.Namespace) -> None:
    """The pictures with the split, and the labels of those that have one."""
    data = data_sets.load(
        "cifar10", options.root, train=options.train, val=options.val, labels=options.labels, seed=options.set_seed
    )
    test = data.indices("test")
    left_out = test[len(test) if options.test is None else options.test :]
    data = data.take(np.delete(np.arange(len(data)), left_out))
    assert isinstance(data.samples, torch.Tensor)
    labels = np.where(data.split == UNLABELLED, 0, data.labels.numpy())
    np.savez_compressed(options.place, x=data.samples.numpy(), y=labels, split=data.split)
    print(data)


def read(options: argparse.Namespace) -> Dataset:
    if options.place.suffix != ".npz":
        return data_sets.load(str(options.place), labels=options.labels, seed=options.set_seed)
    held = np.load(options.place)
    split = [SPLITS[i] for i in held["split"]]
    preprocess = Chain([Flip(), PadCrop(4, fill=0)])
    return data_sets.from_arrays(held["x"], held["y"], split=split, name="cifar10", preprocess=preprocess)


def task_of(options: argparse.Namespace) -> Classification:
    given = {"model": options.model, "steps": options.steps, "batch_size": 64, "lr": 0.03, "device": options.device}
    asked: dict[str, Any] = {**given, **json.loads(options.options)}
    return TASKS[options.task](**asked)


def search(options: argparse.Namespace) -> None:
    data = read(options)
    for seed in options.seeds:
        place = options.out / f"tree-{seed}"
        result = search_tree(data, task_of(options), depth=options.depth, seed=seed, out=place, budget=options.budget)
        print(seed, result.tree, result.cost, result.verdict(), flush=True)


def train(options: argparse.Namespace) -> None:
    data, task = read(options), task_of(options)
    trainers = {bare: (replace(task, preprocess=None) if bare else task).prepare(data) for bare in (False, True)}
    folder = options.out / "trainings"
    folder.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for given in options.policies:
            policy = Path(given).parent.name if given.endswith(".json") else given
            name = policy if options.task == "semisupervised" else f"labels alone, {policy}"
            path = folder / f"{name.replace(', ', '-').replace(' ', '-')}.{seed}.json"
            trainer = trainers[searched_bare(given)]
            about = {"policy": name, "seed": seed, "task": trainer.task.spec(), "data": data.fingerprint}
            if path.exists():
                check_same(path, about)
                continue
            began = time.perf_counter()
            state = trainer.fit(policy_of(given), 1000 + seed)
            row = {split: trainer.measures(state, data.indices(split)) for split in ("val", "test")}
            seconds = round(time.perf_counter() - began, 2)
            content = {**about, "seconds": seconds, **row, "machine": machine(1)}
            write_atomically(path, (json.dumps(content) + "\n").encode())
            print(name, seed, f"val {row['val']['accuracy']:.4f}", seconds, "s", flush=True)


def check_same(path: Path, about: dict[str, Any]) -> None:
    """Raise where a training of other data or of another task has this name."""
    held = json.loads(path.read_text())
    for what in ("task", "data"):
        if held[what] != json.loads(json.dumps(about[what])):
            rule = f"must be a folder of its own for each set and task, but another {what} is in"
            raise ArgumentError("--out", rule, str(path))


def tables(place: Path) -> None:
    """From a folder of trainings, whose figures are kept as one file, or from such a file."""
    content = gathered(place) if place.is_dir() else json.loads(place.read_text())
    rows = sorted(content["policies"], key=lambda row: -row["test"]["mean"])
    body = [[row["policy"], str(len(row["seeds"])), percent(row["val"]), percent(row["test"])] for row in rows]
    print(table(["strong view", "trainings", "validation accuracy", "test accuracy"], body))
    if place.is_dir():
        print(f"written to {write(name_of(place), content)}")


def name_of(place: Path) -> str:
    """Of the file for a folder of trainings: runs/few is CIFAR-10's, runs/few-NAME that of another set."""
    return "cifar_semisupervised" + place.name.removeprefix("few").replace("-", "_")


def gathered(place: Path) -> dict[str, Any]:
    """All trainings by policy, with the trees that were found."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((place / "trainings").glob("*.json")):
        row = json.loads(path.read_text())
        found.setdefault(row["policy"], []).append(row)
    policies = [
        {"policy": name, "seeds": [row["seed"] for row in rows], "seconds": [row["seconds"] for row in rows]}
        | {"task": rows[0]["task"]}
        | {split: summary(name, split, [row[split]["accuracy"] for row in rows]) for split in ("val", "test")}
        for name, rows in found.items()
    ]
    machines = [row["machine"] for rows in found.values() for row in rows]
    machines = [one for i, one in enumerate(machines) if one not in machines[:i]]
    trees = {path.parent.name: str(at.load(path)) for path in sorted(place.glob("*/tree.json"))}
    return {"machines": machines, "policies": policies, "trees": trees}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "search", "train", "table"])
    parser.add_argument("place", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--train", type=int)
    parser.add_argument("--val", type=int, default=4000)
    parser.add_argument("--test", type=int)
    parser.add_argument("--set-seed", type=int, default=0, help="which pictures keep their labels")
    parser.add_argument("--out", type=Path, default=Path("runs/few"))
    parser.add_argument("--task", choices=TASKS, default="semisupervised")
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--options", default="{}", help="further options of the task, as JSON")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--budget", type=float, help="training equivalents, if not the two of a search")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--policies", nargs="+", default=["none", "randaugment", "trivialaugment"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "write":
        write_set(options)
    elif options.what == "table":
        tables(options.place)
    else:
        {"search": search, "train": train}[options.what](options)


if __name__ == "__main__":
    main()
