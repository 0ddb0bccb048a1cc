"""Contrastive learning on graphs by a named protocol: random encoder, GraphCL's four, random trees, learned ones.

    PYTHONPATH=src python benchmarks/contrastive_graphs.py run NCI1 PROTEINS --root data --out runs/graphs --workers 8
    PYTHONPATH=src python benchmarks/contrastive_graphs.py table runs/graphs

A share of the labels (`--labels` of the training samples, and the validation samples) is for the searches; these
samples are in no fold, for no row. Searches and evaluations are runs of augtree: what was stopped goes on, and
nothing is done twice. `table` writes benchmarks/results/contrastive_graphs.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import augtree as at
from augtree.data import Dataset
from augtree.search import Anneal, Density
from augtree.tasks import Contrastive
from augtree.tasks.evaluation import PROTOCOLS
from augtree.transforms.base import Policy
from measure import machine, table, write

ROWS = ("graphcl", "none", "random-trees", "tree", "forest")
GROUPS = "size-degree:2x2"


def read(options: argparse.Namespace, name: str) -> tuple[Dataset, Dataset]:
    """The data, and what a search sees of it: the same samples, few of them with labels."""
    data = at.data.load(name, options.root, groups=GROUPS if "forest" in options.rows else None, merge="nearest")
    return data, data.with_labels(max(20, round(options.labels * len(data.indices("train")))), seed=0)


def task_of(options: argparse.Namespace, **more: Any) -> Contrastive:
    given = {"epochs": options.epochs} if options.epochs else {}
    return PROTOCOLS[options.protocol].task(device=options.device, **given, **more)


def scorer_of(options: argparse.Namespace) -> Any:
    if options.scorer == "density":
        return Density()
    asked = json.loads(options.options)
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()
    }
    return Anneal(**given)


def learned(options: argparse.Namespace, name: str, searched: Dataset, what: str) -> Policy | at.Weighted:
    """The tree, or the forest, of one search."""
    task = task_of(options, samples="all" if what == "tree" else "train", judge=options.judge)
    asked: dict[str, Any] = {"depth": options.depth, "scorer": scorer_of(options), "seed": 0, "check": 0.0}
    asked |= {"out": options.out / f"{what}-{name}-{options.protocol}-{options.judge}", "budget": options.budget}
    began = time.perf_counter()
    if what == "tree":
        found: Policy | at.Weighted = at.search_tree(searched, task, at.spaces.graphs(), **asked).tree
    else:
        found = at.Weighted(at.search_forest(searched, task, at.spaces.graphs(), **asked).forest)
    print(name, what, found, f"{time.perf_counter() - began:.0f} s", flush=True)
    return found


def random_tree(seed: int, depth: int) -> at.Tree:
    """Candidates and probabilities at random."""
    rng, space = np.random.default_rng(seed), list(at.spaces.graphs())
    tree = at.Tree()
    for index in range(1, 2**depth):
        left = tree.nodes.get(index - 1) if index % 2 and index > 1 else None
        if (index > 1 and index // 2 not in tree.nodes) or (left is not None and left.p == 1):
            continue
        p = None if left is not None else round(float(rng.integers(1, 11)) / 10, 1)
        tree = tree.with_node(index, space[int(rng.integers(1, len(space)))], p)
    return tree


def run(options: argparse.Namespace) -> None:
    for name in options.sets:
        data, searched = read(options, name)
        policies: dict[str, Any] = {row: row for row in options.rows if row in ("graphcl", "none")}
        if "random-trees" in options.rows:
            policies |= {f"random tree {i}": random_tree(i, options.depth) for i in range(options.random)}
        policies |= {row: learned(options, name, searched, row) for row in ("tree", "forest") if row in options.rows}
        free = options.judge != "knn"
        seen: Any = [] if free else np.concatenate([searched.indices("train"), searched.indices("val")])
        began = time.perf_counter()
        result = at.evaluate(
            data, task_of(options), policies, protocol=options.protocol, seeds=options.seeds, seen=seen,
            workers=options.workers, out=options.out / f"evaluation-{name}-{options.protocol}-{options.judge}",
        )  # fmt: skip
        print(f"{name}\n{result.to_text()}\n{time.perf_counter() - began:.0f} s", flush=True)


def tables(places: list[Path]) -> None:
    """All evaluations of some folders, or of the file that was made of them."""
    from_runs = places[0].is_dir()
    content = gathered(places) if from_runs else json.loads(places[0].read_text())
    for protocol in sorted({found["protocol"] for found in content["evaluations"]}):
        mine = [found for found in content["evaluations"] if found["protocol"] == protocol]
        rows = list(dict.fromkeys(row for found in mine for row in found["rows"]))
        body = [[row, *[percent(found["rows"].get(row)) for found in mine]] for row in rows]
        heads = [f"{found['set']}, {found['seen']} labels left out" for found in mine]
        print(f"{protocol}\n{table(['row', *heads], body)}")
    if from_runs:
        print(f"written to {write('contrastive_graphs', content)}")


def gathered(places: list[Path]) -> dict[str, Any]:
    """Every evaluation, with the mean over random trees as one row."""
    out = []
    for path in sorted(path for place in places for path in place.glob("evaluation-*/evaluation.json")):
        found, spec = json.loads(path.read_text()), json.loads((path.parent / "spec.json").read_text())
        rows = {line["row"]: {"mean": line["mean"], "sd": line["over_seeds"]} for line in found["lines"]}
        trees = [rows.pop(row) for row in list(rows) if row.startswith("random tree ")]
        if len(trees) == 1:
            rows["one random tree"] = trees[0]
        elif trees:
            each = [tree["mean"] for tree in trees]
            rows["random trees"] = {"mean": float(np.mean(each)), "sd": float(np.std(each, ddof=1)), "each": each}
        about = {"set": spec["data"]["name"], "protocol": found["protocol"], "run": path.parent.name}
        more = {"seeds": spec["seeds"], "seen": found["seen"], "policies": found["policies"], "notes": found["notes"]}
        out.append({**about, "rows": rows, **more})
    return {"machine": machine(1), "evaluations": out}


def percent(found: dict[str, Any] | None) -> str:
    if found is None or found["mean"] is None:
        return ""
    return f"{100 * found['mean']:.2f}" + ("" if found["sd"] is None else f" ± {100 * found['sd']:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("sets", nargs="+")
    one.add_argument("--root", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS[:4]))
    one.add_argument("--protocol", choices=("graphcl", "tree-paper"), default="graphcl")
    one.add_argument("--judge", choices=("knn", "alignment-uniformity", "contrastive"), default="knn")
    one.add_argument("--labels", type=float, default=0.125, help="the share of the training samples' labels")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--random", type=int, default=3, help="random trees")
    one.add_argument("--epochs", type=float, help="instead of the protocol's")
    one.add_argument("--depth", type=int, default=2)
    one.add_argument("--scorer", choices=("anneal", "density"), default="anneal")
    one.add_argument("--options", default="{}", help="of the scorer, as JSON")
    one.add_argument("--budget", help="of the search")
    one.add_argument("--device", default="auto")
    one.add_argument("--workers", type=int, default=1)
    two = commands.add_parser("table")
    two.add_argument("places", type=Path, nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    if options.command == "run":
        run(options)
    else:
        tables(options.places)
