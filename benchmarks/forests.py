"""Forests against free policies and one tree, on data in groups: PACS, fundus, proteins; also with few labels.

    python benchmarks/forests.py search pacs.zip --size 48 --seeds 0 1 2 --out runs/pacs   # forests, one tree each
    python benchmarks/forests.py train pacs.zip --size 48 --seeds 0 1 2 --out runs/pacs     # everything side by side
    python benchmarks/forests.py table runs/pacs
    python benchmarks/forests.py trees runs/pacs                     # what was found in which group; kept as JSON
    python benchmarks/forests.py train pacs.zip --trees benchmarks/results/forest_trees_pacs.json ...  # those again
    python benchmarks/forests.py search pacs.zip --only one-tree ...  # one tree for all groups, and no others
    python benchmarks/forests.py search human-proteins --limit 2000 --terms 50 --groups size-degree:2x2 --metric auroc

`--share 0.1` keeps a tenth of the training labels; `--repeats 3` trains three times with what each search found.
Searches are runs of augtree and go on where they were stopped;
each training is a file with every metric in every group, and is not done twice. Only `train` reads the test data.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data import Dataset
from augtree.policies.codec import Reader
from augtree.policies.named import NAMED
from augtree.runs.store import VERSION, Run
from augtree.search import Anneal
from augtree.search.scorers import Bench
from augtree.tasks.trainer import Trainer
from augtree.transforms import Identity
from augtree.weighting.common import Common
from augtree.weighting.result import measured, worst_of
from augtree.weighting.trees import silent
from measure import machine, table, write


def read(options: argparse.Namespace) -> Dataset:
    own: dict[str, Any] = {name: getattr(options, name) for name in ("limit", "terms") if getattr(options, name)}
    if options.size:
        own["size"] = options.size
    data = at.data.load(options.data, groups=options.groups, merge=options.merge, **own)
    if options.share < 1:
        data = data.few(train=round(options.share * data.counts["train"]))
    print(data, flush=True)
    return data


def task_of(options: argparse.Namespace) -> at.tasks.Classification:
    optimizer = "adamw" if options.model == "gin" else "sgd"
    given = {"model": options.model, "epochs": options.epochs, "metric": options.metric, "optimizer": optimizer}
    asked: dict[str, Any] = {**given, "device": options.device, **json.loads(options.task)}
    return at.tasks.Classification(**asked)


def scorer_of(options: argparse.Namespace) -> Anneal:
    asked = json.loads(options.scorer)
    given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in asked.items()}
    return Anneal(**given)


def search(options: argparse.Namespace) -> None:
    data, task, scorer = read(options), task_of(options), scorer_of(options)
    write("machine", machine(1), options.out)
    for seed in options.seeds:
        began = time.perf_counter()
        if options.only == "one-tree":
            place = options.out / f"forest-{seed}" / "one-tree"
            one = at.search_tree(
                data, task, depth=options.depth, scorer=scorer, seed=seed, check=0, budget=options.budget, out=place
            )
            print(seed, one.tree, f"{time.perf_counter() - began:.0f} s", flush=True)
            continue
        result = at.search_forest(
            data, task, depth=options.depth, scorer=scorer, seed=seed, check=0, budget=options.budget, one_tree=True,
            plain=False, out=options.out / f"forest-{seed}", alpha=options.alpha, eta=options.eta,
            workers=options.workers,
        )  # fmt: skip
        print(seed, result.forest.to_text(), dict(result.weights), f"{time.perf_counter() - began:.0f} s", flush=True)
        print({group: {n: str(v) for n, v in found.importances.items()} for group, found in result.trees.items()})


def ways(options: argparse.Namespace, trainer: Trainer, seed: int) -> dict[str, Any]:
    """What is compared with what one search found: by name."""
    data, search = trainer.data, searches(options).get(str(seed), {"groups": {}})
    free = ("none", "randaugment", "trivialaugment") if data.domain == "image" else ("none",)
    found: dict[str, Any] = {name: NAMED[name](data.fill) if name != "none" else Identity() for name in free}
    learned = at.Weighting(alpha=options.alpha, eta=options.eta)
    if "one tree" in search:
        found["one tree"] = whole = tree_of(search["one tree"])
    if len(search["groups"]) == len(data.group_names):  # else not all groups have been searched yet
        trees = [tree_of(content) for content in search["groups"].values()]
        own = dict(zip(data.group_names, trees, strict=True))
        paper = at.Weighting(start="uniform", d="raw", alpha=options.alpha, eta=options.eta)
        found["own trees, uniform weights"] = weighted(own, replace(paper, eta=0.0))
        found["own trees, learned weights (the paper's)"] = weighted(own, paper)
        found["own trees, groups' proportions"] = weighted(own, replace(learned, eta=0.0))
        if "one tree" in search and any(name.startswith("forest") for name in options.ways or ["forest"]):
            forest = held(options, trainer, seed, own, whole)
            found["forest, uniform weights"] = weighted(forest, replace(paper, eta=0.0))
            found["forest"] = weighted(forest, learned)
            found["forest, worst group"] = weighted(forest, replace(learned, target="worst"))
    return {name: found[name] for name in options.ways or found if name in found}


def weighted(trees: dict[str, at.Tree], weighting: at.Weighting) -> at.Weighted:
    return at.Weighted(at.Forest({group: (tree, 1 / len(trees)) for group, tree in trees.items()}), weighting)


def held(
    options: argparse.Namespace, trainer: Trainer, seed: int, own: dict[str, at.Tree], whole: at.Tree
) -> dict[str, at.Tree]:
    """Each group's own tree, or the one for all, as `search_forest` chooses; kept beside the trainings."""
    path = options.out / f"held-{seed}.json"  # a folder has one search of each seed
    if not path.exists():
        began = time.perf_counter()
        with Run.begin(None, {"version": VERSION, "kind": "forest"}) as run:
            found = Common(Bench(trainer, [], (1.0,), seed, run), scorer_of(options), whole).held(own, silent)
        took = round(time.perf_counter() - began, 2)
        rows = {group: one._asdict() for group, one in found.items()}
        path.write_text(json.dumps({"groups": rows, "seconds": took, "machine": machine(1)}) + "\n")
        print(seed, *(f"{group}: {one}" for group, one in found.items()), sep="\n", flush=True)
    kept = json.loads(path.read_text())["groups"]
    return {group: tree if kept[group]["own"] else whole for group, tree in own.items()}


def searches(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The trees of each search, from the file that `trees` wrote, and from the run folders."""
    found: dict[str, dict[str, Any]] = json.loads(options.trees.read_text())["searches"] if options.trees else {}
    for folder in sorted(options.out.glob("forest-*")):
        seed = folder.name.rpartition("-")[2]
        found.setdefault(seed, {"groups": {}, "cost": {}, "importances": {}})
        places = {path.name.split("-", 1)[1]: path for path in sorted(folder.glob("groups/*"))}
        for group, place in {**places, "one tree": folder / "one-tree"}.items():
            if not (place / "tree.json").is_file():
                continue
            tree, result = (
                json.loads((place / "tree.json").read_text()),
                json.loads((place / "result.json").read_text()),
            )
            if group == "one tree":
                found[seed][group] = tree
            else:
                found[seed]["groups"][group] = tree
            found[seed]["cost"][group] = result["cost"]["training_equivalents"]
            found[seed]["importances"][group] = result["importances"]
    return found


def tree_of(content: dict[str, Any]) -> at.Tree:
    found = Reader(Path("trees"), ()).policy(json.dumps(content))
    assert isinstance(found, at.Tree)
    return found


def trees(options: argparse.Namespace) -> None:
    """Which operations gained most at the root of each group: the better magnitude of the first round."""
    found = searches(options)
    gains: dict[str, dict[str, list[float]]] = json.loads(options.trees.read_text())["gains"] if options.trees else {}
    for path in sorted(
        [*options.out.glob("forest-*/groups/*/history.csv"), *options.out.glob("forest-*/one-tree/history.csv")]
    ):
        group = "one tree" if path.parent.name == "one-tree" else path.parent.name.split("-", 1)[1]
        best: dict[str, float] = {}
        for row in csv.DictReader(path.read_text().splitlines()):
            if row["node"] == "1" and row["round"] == "0" and row["p"] and row["gain"]:
                name = row["candidate"].split("(")[0]
                best[name] = max(best.get(name, -np.inf), float(row["gain"]))
        for name, gain in best.items():
            gains.setdefault(group, {}).setdefault(name, []).append(gain)
    body = []
    for group, named in gains.items():
        first = sorted(named, key=lambda name: -np.mean(named[name]))
        cells = [
            f"{name} {np.mean(named[name]):.3f} ± {deviation(named[name]):.3f}" for name in (*first[:4], first[-1])
        ]
        body.append([group, *cells])
    print(table(["group", "gains most", "second", "third", "fourth", "least"], body))
    for seed, search in found.items():
        for group, content in {**search["groups"], "one tree": search.get("one tree", {})}.items():
            print(seed, group, tree_of(content) if content else "", search["cost"].get(group))
    spec = json.loads(next(options.out.glob("forest-*/**/spec.json")).read_text())
    about = {"data": spec["data"]["name"], "task": spec["task"], "scorer": spec["scorer"], "depth": spec["depth"]}
    about["machine"] = json.loads((options.out / "machine.json").read_text())
    print(f"written to {write('forest_trees_' + options.out.name, {**about, 'searches': found, 'gains': gains})}")


def train(options: argparse.Namespace) -> None:
    data, task = read(options), task_of(options)
    trainer = task.prepare(data)
    (options.out / "trainings").mkdir(parents=True, exist_ok=True)
    for repeat, seed in product(range(options.repeats), options.seeds):
        for name, way in ways(options, trainer, seed).items():
            path = options.out / "trainings" / f"{name}.{seed}.{repeat}.json"
            if path.exists():
                continue
            began = time.perf_counter()
            start = 1000 * (1 + repeat) + seed
            if isinstance(way, at.Weighted):
                at_end = way.fit(trainer, start)
                state, weights = at_end.theta, dict(zip(data.group_names, at_end.w.tolist(), strict=True))
            else:
                state, weights = trainer.fit(way, start), None
            took = round(time.perf_counter() - began, 2)
            about = {
                "policy": name,
                "seed": seed,
                "repeat": repeat,
                "seconds": took,
                "weights": weights,
                "data": str(data),
            }
            about |= {"task": task.spec(), "tested": {g: len(data.indices("test", g)) for g in data.group_names}}
            path.write_text(json.dumps({**about, "measures": measured(trainer, state), "machine": machine(1)}) + "\n")
            print(name, seed, took, "s", flush=True)


def tables(options: argparse.Namespace) -> None:
    """Mean and standard deviation over searches and trainings: average and worst group, accuracy and macro F1."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((options.out / "trainings").glob("*.json")):
        row = json.loads(path.read_text())
        rows.setdefault(row["policy"], []).append(row)
    body, kept = [], []
    for name, found in rows.items():
        tests = [row["measures"]["test"] for row in found]
        cells = {}
        for metric in (m for m in ("accuracy", "f1", "auroc") if m in tests[0]["all"]):
            cells[metric] = [test["all"][metric] for test in tests]
            cells[f"worst {metric}"] = [worst_of(test, metric)[1] for test in tests]
        for group in (g for g in tests[0] if g != "all"):
            cells[group] = [test[group].get(options.metric, float("nan")) for test in tests]
        figures = {what: [round(100 * f(v), 2) for f in (np.mean, deviation)] for what, v in cells.items()}
        weights = {"weights": [row["weights"] for row in found]} if found[0]["weights"] else {}
        kept.append({"policy": name, "trainings": len(found), **figures, **weights})
        body.append([name, str(len(found)), *(f"{mean:.1f} ± {sd:.1f}" for mean, sd in figures.values())])
    print(table(["policy", "trainings", *figures], body))
    about = {"machine": next(iter(rows.values()))[0]["machine"], "data": next(iter(rows.values()))[0]["data"]}
    searches = [
        {"search": folder.name, **{key: json.loads((folder / "result.json").read_text())[key] for key in KEPT}}
        for folder in sorted(options.out.glob("forest-*"))
        if (folder / "result.json").is_file()
    ]
    about |= {path.stem: json.loads(path.read_text()) for path in sorted(options.out.glob("held-*.json"))}
    print(f"written to {write('forests_' + options.out.name, {**about, 'rows': kept, 'searches': searches})}")


KEPT = ("forest", "importances", "effective_size", "cost")


def deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["search", "train", "table", "trees"])
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, default=Path("runs/forests"))
    parser.add_argument("--trees", type=Path, help="the file with the trees to train with")
    parser.add_argument("--size", type=int)
    parser.add_argument("--limit", type=int, help="proteins: so many graphs")
    parser.add_argument("--terms", type=int, help="proteins: so many functions")
    parser.add_argument("--groups")
    parser.add_argument("--merge")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--model", default="wrn-16-2")
    parser.add_argument("--epochs", type=float, default=40)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--task", default="{}", help="further options of the task, as JSON")
    parser.add_argument("--scorer", default="{}", help="options of the scorer anneal, as JSON")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument(
        "--budget", default="40", help="of each group's search: training equivalents, or a time (90s)"
    )
    parser.add_argument("--alpha", type=int, default=50)
    parser.add_argument("--eta", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=1, help="searches of groups side by side")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--repeats", type=int, default=1, help="trainings with each policy and search")
    parser.add_argument("--ways", nargs="+", help="train: these rows of the table alone")
    parser.add_argument("--only", choices=["one-tree"], help="search: nothing else")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what in ("table", "trees"):
        options.out = Path(options.data)
    {"search": search, "train": train, "table": tables, "trees": trees}[options.what](options)


if __name__ == "__main__":
    main()
