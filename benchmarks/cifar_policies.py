"""Learned policies against the free ones: CIFAR-10, 4,000 labels for training and 4,000 for validation, WRN-16-4.

    python benchmarks/cifar_policies.py write set.npz --root DIR       # the subset, from the official files
    python benchmarks/cifar_policies.py search set.npz --seeds 0 1 2 --out runs/cifar
    python benchmarks/cifar_policies.py search set.npz --scorer density --seeds 0 1 2 --out runs/cifar
    python benchmarks/cifar_policies.py train set.npz --policies none trivialaugment runs/cifar/*/tree.json
    python benchmarks/cifar_policies.py table runs/cifar               # all results there so far; kept as a JSON file
    python benchmarks/cifar_policies.py table benchmarks/results/cifar_policies.json

Flips and crops come before every policy, but for those that a search has found among flips and crops themselves.
Everything is chosen on validation data; `train` reads the test set once, for the table. Searches are runs of augtree
and are resumed where they were stopped; each training is a file, and is not done twice.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree import data as data_sets
from augtree.data import Dataset
from augtree.policies.presets import find
from augtree.runs.store import read_spec
from augtree.search import Density, search_tree
from augtree.tasks import Classification
from augtree.training.schedules import SCHEDULES
from augtree.transforms import Chain, Flip, Identity, PadCrop, RandAugment, SamplePairing
from augtree.transforms.base import Policy
from measure import machine, table, write

CONTROLS: dict[str, Callable[[], Policy]] = {
    "samplepairing": lambda: Chain([(SamplePairing(1.0), 0.5)]),
    "randaugment-samplepairing": lambda: Chain([RandAugment(n=2, m=14), (SamplePairing(1.0), 0.5)]),
    **{f"randaugment-m{m}": lambda m=m: RandAugment(n=2, m=m) for m in (4, 9, 14, 19, 24)},  # type: ignore[misc]
}


def read(path: Path) -> Dataset:
    held = np.load(path)
    split = [("train", "val", "test")[i] for i in held["split"]]
    preprocess = Chain([Flip(), PadCrop(4, fill=0)])
    return data_sets.from_arrays(held["x"], held["y"], split=split, name="cifar10", preprocess=preprocess)


def write_set(path: Path, root: Path, train: int, val: int) -> None:
    data = data_sets.load("cifar10", root, train=train, val=val)
    assert isinstance(data.samples, torch.Tensor)
    np.savez_compressed(path, x=data.samples.numpy(), y=data.labels.numpy(), split=data.split)
    print(data)


def task_of(options: argparse.Namespace) -> Classification:
    return Classification(model=options.model, epochs=options.epochs, schedule=options.schedule)


def search(options: argparse.Namespace) -> None:
    data, asked = read(options.set), arguments_of(options.scorer)
    for seed in options.seeds:
        name = f"{options.scorer}-{seed}"
        result = search_tree(
            data,
            task_of(options),
            depth=options.depth,
            seed=seed,
            out=options.out / name,
            budget=options.budget,
            **asked,
        )
        print(name, result.tree, result.cost, result.verdict(), flush=True)


def arguments_of(scorer: str) -> dict[str, Any]:
    """Of a search: nothing for the default, and for density the paper's space."""
    if scorer == "cooldown":
        return {}
    rule = scorer.partition("-")[2] or "exact"
    return {"space": at.spaces.images(), "scorer": Density(rule=rule), "check": 0.0}


def train(options: argparse.Namespace) -> None:
    data, task = read(options.set), task_of(options)
    trainers = {bare: (replace(task, preprocess=None) if bare else task).prepare(data) for bare in (False, True)}
    (options.out / "trainings").mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for given in options.policies:
            name = Path(given).parent.name if given.endswith(".json") else given
            name += "+val" if options.with_val else ""
            path = options.out / "trainings" / f"{name}.{seed}.json"
            if path.exists():
                continue
            policy = random_tree(int(given[7:])) if given.startswith("random-") else policy_of(given)
            trainer = trainers[searched_bare(given)]
            rows = data.indices("train")
            if options.with_val:
                rows = np.concatenate([rows, data.indices("val")])
            began = time.perf_counter()
            state = trainer.fit(policy, 1000 + seed, rows=rows)
            row = {split: trainer.measures(state, data.indices(split)) for split in ("val", "test")}
            about = {"policy": name, "seed": seed, "seconds": round(time.perf_counter() - began, 2), **row}
            about["schedule"] = task.schedule
            path.write_text(json.dumps({**about, "machine": machine(1)}) + "\n")
            print(name, seed, f"val {row['val']['accuracy']:.4f}", about["seconds"], "s", flush=True)


def searched_bare(given: str) -> bool:
    """Whether a policy is of a search without the data's own flips and crops, which were searched instead."""
    return given.endswith(".json") and read_spec(Path(given).parent)["task"]["preprocess"] is None


def policy_of(given: str) -> Policy:
    return CONTROLS[given]() if given in CONTROLS else find(given) if given != "none" else Identity()


def random_tree(seed: int, depth: int = 3, fill: int = 128) -> Policy:
    """A tree with candidates and probabilities at random."""
    rng, space = np.random.default_rng(seed), list(at.spaces.images(composites=False, fill=fill))
    tree = at.Tree()
    for index in range(1, 2**depth):
        p = round(float(rng.integers(1, 11)) / 10, 1) if index == 1 or index % 2 == 0 else None
        if p is None and tree[index - 1].p == 1:
            continue
        if index > 1 and index // 2 not in tree.nodes:
            continue
        tree = tree.with_node(index, space[int(rng.integers(1, len(space)))], p)
    return tree


def tables(place: Path) -> None:
    """From a folder of trainings and searches, whose figures are kept as one file, or from such a file."""
    content = gathered(place) if place.is_dir() else json.loads(place.read_text())
    policies = sorted(content["policies"], key=lambda row: -row["test"]["mean"])
    body = [[row["policy"], str(len(row["seeds"])), percent(row["val"]), percent(row["test"])] for row in policies]
    print(table(["policy", "trainings", "validation accuracy", "test accuracy"], body))
    tested = {row["policy"]: percent(row["test"]) for row in policies}
    body = [
        [row["search"], row["tree"], tested.get(row["policy"], ""), *costs_of(row)] for row in content["searches"]
    ]
    head = ["search", "tree", "test accuracy", "training equivalents", "scorings", "seconds"]
    print(table(head, body))
    if place.is_dir():
        print(f"written to {write('cifar_policies', content)}")


def costs_of(row: dict[str, Any]) -> list[str]:
    return [f"{row['training_equivalents']:.1f}", str(row["scorings"]), f"{row['seconds']:.0f}"]


def gathered(place: Path) -> dict[str, Any]:
    """All trainings by policy, and all searches."""
    rows: dict[str, list[dict[str, Any]]] = {}
    machines, schedules = [], set()
    for path in sorted((place / "trainings").glob("*.json")):
        row = json.loads(path.read_text())
        rows.setdefault(row["policy"], []).append(row)
        machines.append(row["machine"])
        schedules.add(row["schedule"])
    policies = [
        {"policy": name, "seeds": [row["seed"] for row in found]}
        | {split: summary(name, split, [row[split]["accuracy"] for row in found]) for split in ("val", "test")}
        for name, found in rows.items()
    ]
    searches = [searched(path.parent) for path in sorted(place.glob("*/result.json"))]
    machines = [found for i, found in enumerate(machines) if found not in machines[:i]]
    return {"machines": machines, "schedules": sorted(schedules), "policies": policies, "searches": searches}


def summary(name: str, split: str, values: list[float]) -> dict[str, Any] | None:
    """Mean and standard deviation; none for samples that were trained on."""
    if split == "val" and name.endswith("+val"):
        return None
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "sd": spread, "each": values}


def percent(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    return f"{100 * found['mean']:.1f}" + ("" if found["sd"] is None else f" ± {100 * found['sd']:.1f}")


def searched(folder: Path) -> dict[str, Any]:
    """What a search found and what it cost; an empty tree is the policy "none"."""
    result, tree = json.loads((folder / "result.json").read_text()), at.load(folder / "tree.json")
    costs = {name: result["cost"][name] for name in ("training_equivalents", "seconds", "scorings")}
    about = {"search": folder.name, "tree": result["tree"], "policy": folder.name if len(tree) else "none"}
    return {**about, **costs, "notes": result["notes"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "search", "train", "table"])
    parser.add_argument("set", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/cifar"))
    parser.add_argument("--model", default="wrn-16-4")
    parser.add_argument("--epochs", type=float, default=80)
    parser.add_argument("--schedule", choices=SCHEDULES, default="constant-linear")
    parser.add_argument("--scorer", choices=["cooldown", "density", "density-sampled"], default="cooldown")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--budget", type=float, help="training equivalents, if another than the scorer's own")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--policies", nargs="+", default=["none", "randaugment", "trivialaugment"])
    parser.add_argument("--with-val", action="store_true", help="train on the validation samples too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "write":
        write_set(options.set, options.root, 4000, 4000)
    elif options.what == "table":
        tables(options.set)
    else:
        {"search": search, "train": train}[options.what](options)


if __name__ == "__main__":
    main()
