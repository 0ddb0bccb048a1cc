"""Learned trees against the free policies: CIFAR-10, 4,000 labels for training and 4,000 for validation, WRN-16-4.

    python benchmarks/cifar_policies.py write set.npz --root DIR       # the subset, from the official files
    python benchmarks/cifar_policies.py search set.npz --scorer anneal --composites --seeds 0 1 2 --out runs/cifar
    python benchmarks/cifar_policies.py train set.npz --policies none trivialaugment runs/cifar/*/tree.json
    python benchmarks/cifar_policies.py table runs/cifar               # all results there so far

Everything is chosen on validation data; `train` reads the test set once, for the table. Searches are runs of augtree
and are resumed where they were stopped; each training is a file, and is not done twice.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree import data as data_sets
from augtree.data import Dataset
from augtree.policies.named import find
from augtree.search import Anneal, Density, search_tree
from augtree.tasks import Classification
from augtree.transforms import Chain, Flip, Identity, PadCrop, RandAugment, SamplePairing
from augtree.transforms.base import Policy
from measure import machine, table

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
    return Classification(model=options.model, epochs=options.epochs)


def scorer_of(options: argparse.Namespace) -> Any:
    if options.scorer.startswith("density"):
        return Density(rule=options.scorer.partition("-")[2] or "exact")
    given = json.loads(options.options)
    return Anneal(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def search(options: argparse.Namespace) -> None:
    data = read(options.set)
    space = at.spaces.images(composites=options.composites)
    for seed in options.seeds:
        name = f"{options.name or options.scorer + ('-composites' if options.composites else '')}-{seed}"
        began = time.perf_counter()
        result = search_tree(
            data, task_of(options), space, depth=options.depth, scorer=scorer_of(options), seed=seed,
            out=options.out / name, check=options.check, budget=options.budget,
        )  # fmt: skip
        found = {"seconds": round(time.perf_counter() - began, 1), "verdict": result.verdict()}
        print(name, result.tree, result.cost, found, flush=True)


def train(options: argparse.Namespace) -> None:
    data = read(options.set)
    task = task_of(options)
    trainer = task.prepare(data)
    (options.out / "trainings").mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for given in options.policies:
            name = Path(given).parent.name if given.endswith(".json") else given
            name += "+val" if options.with_val else ""
            path = options.out / "trainings" / f"{name}.{seed}.json"
            if path.exists():
                continue
            policy = random_tree(int(given[7:])) if given.startswith("random-") else policy_of(given)
            rows = data.indices("train")
            if options.with_val:
                rows = np.concatenate([rows, data.indices("val")])
            began = time.perf_counter()
            state = trainer.fit(policy, 1000 + seed, rows=rows)
            row = {split: trainer.measures(state, data.indices(split)) for split in ("val", "test")}
            about = {"policy": name, "seed": seed, "seconds": round(time.perf_counter() - began, 2), **row}
            path.write_text(json.dumps({**about, "machine": machine(1)}) + "\n")
            print(name, seed, f"val {row['val']['accuracy']:.4f}", about["seconds"], "s", flush=True)


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


def tables(options: argparse.Namespace) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((options.out / "trainings").glob("*.json")):
        row = json.loads(path.read_text())
        rows.setdefault(row["policy"], []).append(row)
    body = []
    for name, found in rows.items():
        test, val = (np.array([100 * row[split]["accuracy"] for row in found]) for split in ("test", "val"))
        spread = test.std(ddof=1) if len(test) > 1 else 0.0
        body.append([name, str(len(test)), f"{val.mean():.2f}", f"{test.mean():.2f} ± {spread:.2f}"])
    print(table(["policy", "trainings", "validation accuracy", "test accuracy"], sorted(body, key=lambda r: r[3])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "search", "train", "table"])
    parser.add_argument("set", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/cifar"))
    parser.add_argument("--model", default="wrn-16-4")
    parser.add_argument("--epochs", type=float, default=80)
    parser.add_argument("--scorer", default="anneal")
    parser.add_argument("--options", default="{}", help="options of the scorer, as JSON")
    parser.add_argument("--composites", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--budget", type=float, default=12, help="training equivalents")
    parser.add_argument("--check", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--policies", nargs="+", default=["none", "randaugment", "trivialaugment"])
    parser.add_argument("--with-val", action="store_true", help="train on the validation samples too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "write":
        write_set(options.set, options.root, 4000, 4000)
    elif options.what == "table":
        options.out = options.set
        tables(options)
    else:
        {"search": search, "train": train}[options.what](options)


if __name__ == "__main__":
    main()
