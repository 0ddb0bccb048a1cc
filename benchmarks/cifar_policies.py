"""Learned trees against the free policies: CIFAR-10, 4,000 labels for training and 4,000 for validation, WRN-16-4.

    python benchmarks/cifar_policies.py write set.npz --root DIR       # the subset, from the official files
    python benchmarks/cifar_policies.py search set.npz --scorer anneal --composites --seeds 0 1 2 --out runs/cifar
    python benchmarks/cifar_policies.py train set.npz --policies none trivialaugment runs/cifar/*/tree.json
    python benchmarks/cifar_policies.py table runs/cifar               # all results there so far; kept as a JSON file
    python benchmarks/cifar_policies.py table benchmarks/results/cifar_policies.json

Everything is chosen on validation data; `train` reads the test set once, for the table. Searches are runs of augtree
and are resumed where they were stopped; each training is a file, and is not done twice.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from itertools import combinations
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
from measure import machine, spearman, table, write

CONTROLS: dict[str, Callable[[], Policy]] = {
    "samplepairing": lambda: Chain([(SamplePairing(1.0), 0.5)]),
    "randaugment-samplepairing": lambda: Chain([RandAugment(n=2, m=14), (SamplePairing(1.0), 0.5)]),
    **{f"randaugment-m{m}": lambda m=m: RandAugment(n=2, m=m) for m in (4, 9, 14, 19, 24)},  # type: ignore[misc]
}
SHARED = {"anneal": (0.5, 0.05), "density": (1.0, 1.0)}
"""Training equivalents of the model that the first node, and each further one, is scored from."""


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
    asked = json.loads(options.options)
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()
    }
    return Anneal(**given)


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


def tables(place: Path) -> None:
    """From a folder of trainings and searches, whose figures are kept as one file, or from such a file."""
    content = gathered(place) if place.is_dir() else json.loads(place.read_text())
    policies = sorted(content["policies"], key=lambda row: -row["test"]["mean"])
    body = [[row["policy"], str(len(row["seeds"])), percent(row["val"]), percent(row["test"])] for row in policies]
    print(table(["policy", "trainings", "validation accuracy", "test accuracy"], body))
    tested = {row["policy"]: percent(row["test"]) for row in policies}
    body = [
        [row["search"], row["tree"], tested.get(row["policy"], ""), *costs_of(row), along(row["curve"])]
        for row in content["searches"]
    ]
    head = ["search", "tree", "test accuracy", "training equivalents", "scorings", "seconds", "gain by cost"]
    print(table(head, body))
    print(f"the first round at the root, one search with another: Spearman {agreement(content['searches']):.2f}")
    if place.is_dir():
        print(f"written to {write('cifar_policies', content)}")


def costs_of(row: dict[str, Any]) -> list[str]:
    return [f"{row['training_equivalents']:.1f}", str(row["scorings"]), f"{row['seconds']:.0f}"]


def gathered(place: Path) -> dict[str, Any]:
    """All trainings by policy, and all searches."""
    rows: dict[str, list[dict[str, Any]]] = {}
    machines = []
    for path in sorted((place / "trainings").glob("*.json")):
        row = json.loads(path.read_text())
        rows.setdefault(row["policy"], []).append(row)
        machines.append(row["machine"])
    policies = [
        {"policy": name, "seeds": [row["seed"] for row in found]}
        | {split: summary(name, split, [row[split]["accuracy"] for row in found]) for split in ("val", "test")}
        for name, found in rows.items()
    ]
    searches = [searched(path.parent) for path in sorted(place.glob("*/result.json"))]
    machines = [found for i, found in enumerate(machines) if found not in machines[:i]]
    return {"machines": machines, "policies": policies, "searches": searches}


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
    more: dict[str, Any] = {"curve": curve(folder, tree, result)}
    more |= {"root": first_round(folder)} if folder.name.startswith("anneal") else {}
    return {**about, **costs, "notes": result["notes"], **more}


def first_round(folder: Path) -> dict[str, list[float]]:
    """What each candidate gained in the first round at the root, with its standard error."""
    rows = csv.DictReader((folder / "history.csv").read_text().splitlines())
    mine = [row for row in rows if (row["node"], row["round"]) == ("1", "0") and row["gain"]]
    return {f"{r['candidate']} p={r['p']}": [round(float(r[what]), 4) for what in ("gain", "gain_se")] for r in mine}


def agreement(searches: list[dict[str, Any]]) -> float:
    """Spearman between two searches of the same kind over the candidates that both have looked at, on average."""
    roots = [s["root"] for s in searches if s["search"].startswith("anneal") and "hurried" not in s["search"]]
    found = []
    for one, other in combinations(roots, 2):
        both = [name for name in one if name in other]
        found.append(spearman(*(np.array([root[name][0] for name in both]) for root in (one, other))))
    return float(np.mean(found))


def curve(folder: Path, tree: at.Tree, result: dict[str, Any]) -> list[dict[str, Any]]:
    """After each node that was decided: the training equivalents so far, and the confirmed gains of what was kept.

    A gain is the mean over the repeats of a confirmation, its standard error that of one repeat.
    """
    rows = list(csv.DictReader((folder / "history.csv").read_text().splitlines()))
    cost, ended_early = result["cost"], any("budget was spent" in note for note in result["notes"])
    one = (cost["forward"] + cost["backward"]) / cost["training_equivalents"]
    first, further = SHARED[folder.name.split("-")[0]]
    spent = gained = 0.0
    points = []
    nodes = list(dict.fromkeys(row["node"] for row in rows))
    for number, node in enumerate(nodes):
        mine = [row for row in rows if row["node"] == node]
        spent += (first if number == 0 else further) + sum(int(r["forward"]) + int(r["backward"]) for r in mine) / one
        kept = tree.nodes.get(int(node))
        tried = [row for row in mine if row["round"] == "confirm" and row["candidate"] != "yardstick"]
        if not tried or (ended_early and kept is None and node == nodes[-1]):
            continue  # the budget was spent before it was decided
        last = [row for row in tried if row["candidate"] == (str(kept.transform) if kept else tried[0]["candidate"])]
        gain, error = (float(np.mean([float(row[what]) for row in last])) for what in ("gain", "gain_se"))
        gained += gain if kept else 0.0
        about = {"node": int(node), "candidate": last[0]["candidate"], "kept": kept is not None}
        about |= {"gain": round(gain, 4), "gain_se": round(error, 4)}
        points.append({"training_equivalents": round(spent, 2), "gain_so_far": round(gained, 4), **about})
    return points


def along(points: list[dict[str, Any]]) -> str:
    return ", ".join(f"{point['gain_so_far']:.3f} at {point['training_equivalents']:.1f}" for point in points)


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
        tables(options.set)
    else:
        {"search": search, "train": train}[options.what](options)


if __name__ == "__main__":
    main()
