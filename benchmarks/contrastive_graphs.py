"""Contrastive learning on graphs by a named protocol: random encoder, GraphCL's four, random trees, learned ones.

    python benchmarks/contrastive_graphs.py run NCI1 PROTEINS --root data --out runs/graphs --workers 8
    python benchmarks/contrastive_graphs.py features COLLAB --rows graphcl tree forest --each 0 1 2 --out runs/graphs
    python benchmarks/contrastive_graphs.py judge runs/graphs       # the SVMs for these features, on any machine
    python benchmarks/contrastive_graphs.py table runs/graphs

`features` trains the encoders of some seeds and keeps what they make of the graphs: several of them run side by side,
where a GPU is, and `judge` may follow elsewhere. The outcome is that of `run`, which does both.

With a judge that needs labels, a share of them (`--labels` of the training samples, and the validation samples) is
for the searches; these samples are in no fold, for no row. Or, with `features --halves 0 1`, half of all labels are
for one search and the other half for another, and five of the ten folds are in each half: what a search with the
labels of one half has found is judged on the folds of the other half alone, so that all samples are in folds and no
search has seen the label that it is judged by. `--search-only` and `--halves 0` do a part of it.

The rows "tree" and "forest" are the policies of a search each, with which encoders are trained like with the others;
`--rows graphcl none random-trees` leaves them out, and `--searched graphcl` takes what was found by that protocol.
Searches and evaluations are runs of augtree: what was stopped goes on, and nothing is done twice. `table` writes
benchmarks/results/contrastive_graphs.json; with that file beside the folders (`table runs/graphs
benchmarks/results/contrastive_graphs.json`) its other rows stay.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

import augtree as at
from augtree.baselines.methods import fit
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import ArgumentError
from augtree.evaluation.evaluate import RANDOM, method_in_words
from augtree.evaluation.protocols import FOLDS, PROTOCOLS, Protocol, folds_of, judge_fold
from augtree.search.scorers import SCORERS, ScorerOptions
from augtree.tasks import Contrastive
from augtree.tasks.base import PRECISIONS
from augtree.tasks.contrastive import JUDGES, LABEL_FREE
from augtree.transforms import Identity
from augtree.transforms.base import Policy
from graph_cooldowns import add_arguments, cooldowns
from measure import machine, table, write

ROWS = ("graphcl", "none", "random-trees", "tree", "forest")
RANDOM_ROWS = ("one random tree", "random trees")
GROUPS = "size-degree:2x2"
KEY, PARTS = ("set", "protocol", "judge", "seen"), ("rows", "policies", "trained_on")
"""What tells evaluations apart, and what they hold by row."""


def read(options: argparse.Namespace, name: str) -> tuple[Dataset, Dataset]:
    """The data, and what a search sees of it: the same samples, few of them with labels."""
    data = at.data.load(
        name, options.root, groups=GROUPS if {"tree", "forest"} & {*options.rows} else None, merge="nearest"
    )
    return data, data.with_labels(max(20, round(options.labels * len(data.indices("train")))), seed=0)


def halves_of(data: Dataset) -> NDArray[np.int64]:
    """0 or 1 for each sample: two halves with as many of each label, the same for every search and evaluation."""
    out, rng = np.zeros(len(data), np.int64), np.random.default_rng(0)
    for label in np.unique(data.labels.numpy()):
        rows = rng.permutation(np.flatnonzero(data.labels.numpy() == label))
        out[rows[::2]] = 1
    return out


def with_half(data: Dataset, half: int) -> Dataset:
    """What the search of a half sees: its labels, every other one to judge by; the rest is unlabelled."""
    split, mine = np.full(len(data), UNLABELLED, data.split.dtype), halves_of(data) == half
    for label in np.unique(data.labels.numpy()):
        rows = np.flatnonzero(mine & (data.labels.numpy() == label))
        split[rows[::2]], split[rows[1::2]] = SPLITS.index("train"), SPLITS.index("val")
    return replace(data, name=f"{data.name}, labels of half {half}", split=split, source=None)


def folds_in_halves(data: Dataset, seed: int) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Five folds in each half: the half, all other samples to fit to, those to judge on."""
    labels, halves = data.labels.numpy(), halves_of(data)
    for half in (0, 1):
        rows = np.flatnonzero(halves == half)
        for _, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(rows, labels[rows]):
            yield half, np.setdiff1d(np.arange(len(data)), rows[test]), rows[test]


def task_of(options: argparse.Namespace, protocol: str | None = None, **more: Any) -> Contrastive:
    given = {"epochs": options.epochs} if options.epochs else {}
    return PROTOCOLS[protocol or options.protocol].task(
        device=options.device, precision=options.precision, **given, **more
    )


def scorer_of(options: argparse.Namespace) -> ScorerOptions:
    asked = json.loads(options.options)
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()
    }
    return SCORERS[options.scorer](**given)


def learned(
    options: argparse.Namespace, name: str, searched: Dataset, half: int | None = None
) -> dict[str, Policy | at.Weighted]:
    """The tree for all groups, and the forest: a search each, for the rows that are asked for."""
    samples = "train" if half is None else "all"
    task = task_of(options, options.searched, samples=samples, judge=options.judge)
    part = f"{name}-{options.searched or options.protocol}-{options.judge}{'' if half is None else f'-half{half}'}"
    paper = options.scorer != "cooldown"
    space = at.spaces.graphs() if paper else None
    asked: dict[str, Any] = {"depth": options.depth, "scorer": scorer_of(options), "seed": 0, "check": 0.0}
    asked |= {"budget": options.budget, "workers": options.searchers}
    out: dict[str, Policy | at.Weighted] = {}
    if "tree" in options.rows:
        place, began = options.out / f"tree-{part}", time.perf_counter()
        if not (place / "tree.json").is_file():
            grown = at.search_tree(searched, task, space, **asked, out=place)
            print(name, grown.cost, *grown.notes, f"{time.perf_counter() - began:.0f} s", sep="\n", flush=True)
        out["tree"] = at.load(place / "tree.json")
    if "forest" in options.rows:
        place, began = options.out / f"forest-{part}", time.perf_counter()
        if not (place / "forest.json").is_file():
            found = at.search_forest(searched, task, space, **asked, method="paper" if paper else "shared", out=place)
            print(name, found.cost, *found.notes, f"{time.perf_counter() - began:.0f} s", sep="\n", flush=True)
        forest = at.load(place / "forest.json")
        assert isinstance(forest, at.Forest)
        out["forest"] = at.Weighted(forest)
    print(name, *map(method_in_words, out.values()), sep="\n", flush=True)
    return out


def policies_of(options: argparse.Namespace, name: str, searched: Dataset) -> dict[str, Any]:
    """What encoders are trained with, by row."""
    policies: dict[str, Any] = {row: row for row in options.rows if row in ("graphcl", "none")}
    if "random-trees" in options.rows:
        policies |= {f"random tree {i}": random_tree(i, options.depth) for i in range(options.random)}
    if {"tree", "forest"} & {*options.rows}:
        for half in options.halves or [None]:
            found = learned(options, name, searched if half is None else with_half(searched, half), half)
            named = "" if half is None else f"@{half}"
            policies |= {f"{row}{named}": found[row] for row in options.rows if row in found}
    return policies


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
        policies = policies_of(options, name, searched)
        began = time.perf_counter()
        result = at.evaluate(
            data, task_of(options), policies, protocol=options.protocol, seeds=options.seeds,
            known_labels=seen_of(options, searched), workers=options.workers,
            out=options.out / f"evaluation-{name}-{options.protocol}-{options.judge}{options.suffix}",
        )  # fmt: skip
        print(f"{name}\n{result.to_text()}\n{time.perf_counter() - began:.0f} s", flush=True)


def seen_of(options: argparse.Namespace, searched: Dataset) -> Any:
    """The samples whose labels the searches have seen."""
    free = options.judge in LABEL_FREE or options.halves
    return [] if free else np.concatenate([searched.indices("train"), searched.indices("val")])


def features(options: argparse.Namespace) -> None:
    """What encoders of some seeds make of the graphs, a file each."""
    for name in options.sets:
        data, searched = read(options, name)
        policies: dict[str, Any] = {RANDOM: None}
        for row, asked in policies_of(options, name, data if options.halves else searched).items():
            policies[row] = find_for(data, asked) if isinstance(asked, str) else asked
        if options.search_only:
            continue
        trainer = task_of(options, samples="all").prepare(data)
        same = {
            row: next(one for one in policies if alike(policies[one]) == alike(policy))
            for row, policy in policies.items()
        }
        for seed, (row, policy) in product(options.each, policies.items()):
            part = f"{name}-{options.protocol}-{options.judge}{'-halves' if options.halves else ''}"
            path = options.out / f"features-{part}" / f"{row}.{seed}.npz"
            told = "" if policy is None else method_in_words(policy)
            wanted = {"policy": told, "task": task_of(options, samples="all").spec()}
            if path.exists():
                check_same(path, wanted)
                continue
            began = time.perf_counter()
            known = path.with_name(f"{same[row]}.{seed}.npz")
            if known.exists():  # the same policy, and so the same encoder, under another name
                found, about = np.load(known)["features"], json.loads(str(np.load(known)["about"]))
            else:
                state = trainer.fresh(seed) if policy is None else fit(trainer, policy, seed, "train")[0]
                found = trainer.features(state, np.arange(len(data))).float().cpu().numpy()
                about = {"set": name, "protocol": options.protocol, "seed": seed, "machine": machine(1)}
                about |= {"device": trainer.device.type, "seconds": round(time.perf_counter() - began, 2)}
            about |= {"row": row, **wanted, "seen": list(map(int, seen_of(options, searched)))}
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, features=found, about=json.dumps(about))
            print(name, row, seed, about["seconds"], "s", flush=True)


def alike(policy: Any) -> Any:
    """What a training depends on: not the weights that a forest had, which are learned anew."""
    if isinstance(policy, at.Weighted):
        return {group: str(tree) for group, (tree, _) in policy.forest.groups.items()}
    return None if policy is None else str(at.Tree()) if isinstance(policy, Identity) else str(policy)


def check_same(path: Path, asked: dict[str, Any]) -> None:
    """Raise where the features are of another policy or training of the same name."""
    about = json.loads(str(np.load(path)["about"]))
    if {part: about[part] for part in asked} != asked:
        rule = f"must be a folder of its own: {path} is of {about['policy']}, or of another task, not of"
        raise ArgumentError("--out", rule, asked["policy"])


def judge(options: argparse.Namespace) -> None:
    """The classifiers for features that are there, each outcome beside them."""
    known = cache(lambda name: at.data.load(name, options.root))
    for path in sorted(place for folder in options.places for place in folder.glob("features-*/*.npz")):
        if path.with_suffix(".json").exists():
            continue
        held = np.load(path)
        about = json.loads(str(held["about"]))
        if options.sets and about["set"] not in options.sets:
            continue
        data = known(about["set"])
        protocol, labels, x = PROTOCOLS[about["protocol"]], data.labels.numpy(), held["features"].astype(np.float64)
        rows, row = [], row_of(about)
        for fold, (train, test) in folds_for(path, protocol, data, about):
            one = judge_fold(protocol, (x[train], labels[train]), (x[test], labels[test]), options.workers)
            rows.append({"row": row, "seed": about["seed"], "fold": fold, "accuracy": one.accuracy, "c": one.c})
        write(path.stem, {**about, "rows": rows}, path.parent)
        print(about["set"], about["row"], about["seed"], f"{np.mean([r['accuracy'] for r in rows]):.4f}", flush=True)


def folds_for(path: Path, protocol: Protocol, data: Dataset, about: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """The folds that features may be judged on, with their numbers."""
    if not path.parent.name.endswith("-halves"):
        yield from enumerate(folds_of(protocol, data, np.array(about["seen"], np.int64), about["seed"]))
        return
    searched = int(about["row"].split("@")[1]) if "@" in about["row"] else None
    for fold, (half, train, test) in enumerate(folds_in_halves(data, about["seed"])):
        if half != searched:
            yield fold, (train, test)


def tables(places: list[Path]) -> None:
    """All evaluations of some folders, of a file that was made of such, or of both."""
    for place in places:
        if not place.exists():
            raise ArgumentError("table", "must be given folders of runs, or a file of results", str(place))
    folders, files = [place for place in places if place.is_dir()], [place for place in places if place.is_file()]
    content = gathered(folders) if folders else json.loads(files.pop().read_text())
    for file in files:
        content["evaluations"] = merged(content["evaluations"], json.loads(file.read_text())["evaluations"])
    for protocol in sorted({found["protocol"] for found in content["evaluations"]}):
        mine = [found for found in content["evaluations"] if found["protocol"] == protocol]
        rows = list(dict.fromkeys(row for found in mine for row in found["rows"]))
        body = [[row, *[percent(found["rows"].get(row)) for found in mine]] for row in rows]
        heads = [f"{found['set']}, {found['judge']}, {found['seen']} labels left out" for found in mine]
        print(f"{protocol}\n{table(['row', *heads], body)}")
    if folders:
        print(f"written to {write('contrastive_graphs', content)}")


def gathered(places: list[Path]) -> dict[str, Any]:
    """Every evaluation, whole or from features, with the mean over random trees as one row."""
    parts: dict[tuple[str, str, str, int], dict[str, Any]] = {}
    for path in sorted(path for place in places for path in place.glob("evaluation-*/evaluation.json")):
        found, spec = json.loads(path.read_text()), json.loads((path.parent / "spec.json").read_text())
        judge = next(judge for judge in JUDGES if judge in path.parent.name)
        part = parts.setdefault((spec["data"]["name"], found["protocol"], judge, found["seen"]), empty())
        part["rows"] += found["rows"]
        part["policies"] |= found["policies"]
    for path in sorted(path for place in places for path in place.glob("features-*/*.json")):
        one = json.loads(path.read_text())
        judge = next(judge for judge in JUDGES if judge in path.parent.name)
        judge += ", by halves" if path.parent.name.endswith("-halves") else ""
        part = parts.setdefault((one["set"], one["protocol"], judge, len(one["seen"])), empty())
        part["rows"] += one["rows"]
        part["policies"] |= {one["row"]: one["policy"]} if one["policy"] else {}
        part["trained_on"].setdefault(row_of(one), set()).add(told_machine(one))
    about = [dict(zip(KEY, key, strict=True)) for key in parts]
    out = []
    for key, part in zip(about, parts.values(), strict=True):
        rows = summed(complete(part["rows"]))
        if str(key["judge"]).endswith("halves"):
            for row, means in in_halves(part["rows"]).items():
                rows[row] = {"mean": None, **rows.get(row, {}), "halves": means}
        trained_on = {row: sorted(machines) for row, machines in part["trained_on"].items()}
        out.append({**key, **part, "trained_on": trained_on, "rows": rows})
    return {"machine": machine(1), "evaluations": out}


def merged(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Old evaluations with the rows of new ones; of two rows of the same name, that of more seeds."""
    out, left = [], {tuple(one[part] for part in KEY): one for one in new}
    for one in old:
        found = left.pop(tuple(one[part] for part in KEY), None)
        if found is None:
            out.append(one)
            continue
        better = {row for row in found["rows"] if seeds_of(found["rows"][row]) >= seeds_of(one["rows"].get(row))}
        for row in better & {*one["rows"]}:
            fill(found["rows"][row], one["rows"][row])
        parts = {part: {k: v for k, v in found[part].items() if rows_of(k) & better} for part in PARTS}
        out.append({**one, **{part: {**(one[part] or {}), **parts[part]} for part in PARTS}})
    return [*out, *left.values()]


def fill(summary: dict[str, Any], older: dict[str, Any]) -> None:
    """Of a row that has no whole seed, the half that is known from before."""
    if summary["mean"] is None:
        pairs = zip(summary["halves"], older["halves"], strict=True)
        summary["halves"] = [before if now is None else now for now, before in pairs]


def seeds_of(summary: dict[str, Any] | None) -> int:
    """The seeds with all folds; -1 for no row."""
    return -1 if summary is None else 0 if summary["mean"] is None else int(summary.get("seeds") or 1)


def told_machine(about: dict[str, Any]) -> str:
    """What encoders were trained on, and how, where that was asked for."""
    precision = about["task"].get("precision")
    where = about["machine"]["gpu" if about["device"] == "cuda" else "cpu"]
    return f"{where}, {precision}" if precision else str(where)


def rows_of(name: str) -> set[str]:
    """The rows of a table that a policy, or an encoder of such a name, is part of."""
    name = name.split("@")[0]
    return {*RANDOM_ROWS} if name.startswith("random tree ") else {name}


def row_of(about: dict[str, Any]) -> str:
    """The row that features belong to, whichever half their policy was searched with."""
    return str(about["row"]).split("@")[0]


def complete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each fold once, and without the seeds of a row that have not all ten folds."""
    each = {(row["row"], row["seed"], row["fold"]): row for row in reversed(rows)}
    count = Counter((row["row"], row["seed"]) for row in each.values())
    return [row for row in reversed(each.values()) if count[row["row"], row["seed"]] == FOLDS]


def in_halves(rows: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """The mean over the five folds of each half, by row."""
    out = {}
    for name in dict.fromkeys(row["row"] for row in rows if not row["row"].startswith("random tree ")):
        both = [[r["accuracy"] for r in rows if r["row"] == name and r["fold"] // 5 == half] for half in (0, 1)]
        out[name] = [float(np.mean(found)) if found else None for found in both]
    return out


def empty() -> dict[str, Any]:
    return {"rows": [], "policies": {}, "trained_on": {}}


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread over seeds of the means over folds; random trees as one row."""
    each: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        each.setdefault(row["row"], {}).setdefault(row["seed"], []).append(row["accuracy"])
    out: dict[str, Any] = {}
    for name, seeds in each.items():
        means = [float(np.mean(folds)) for folds in seeds.values()]
        sd = float(np.std(means, ddof=1)) if len(means) > 1 else None
        by_seed = dict(zip(map(str, seeds), means, strict=True))
        out[name] = {"mean": float(np.mean(means)), "sd": sd, "seeds": len(means), "by_seed": by_seed}
    trees = [out.pop(row) for row in list(out) if row.startswith("random tree ")]
    if len(trees) == 1:
        out[RANDOM_ROWS[0]] = trees[0]
    elif trees:
        means = [tree["mean"] for tree in trees]
        sd, seeds = float(np.std(means, ddof=1)), trees[0]["seeds"]
        out[RANDOM_ROWS[1]] = {"mean": float(np.mean(means)), "sd": sd, "seeds": seeds, "each": means}
    return out


def percent(found: dict[str, Any] | None) -> str:
    if found is None or found["mean"] is None:
        return ""
    return f"{100 * found['mean']:.2f}" + ("" if found["sd"] is None else f" ± {100 * found['sd']:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("run", "features"):
        one = commands.add_parser(command)
        one.add_argument("sets", nargs="+")
        one.set_defaults(halves=[], search_only=False)
        if command == "features":
            one.add_argument(
                "--halves", type=int, nargs="+", choices=(0, 1), help="a search for each half of the labels"
            )
            one.add_argument("--search-only", action="store_true", help="no encoders yet")
        one.add_argument("--root", type=Path)
        one.add_argument("--out", type=Path, required=True)
        one.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
        one.add_argument("--protocol", choices=("graphcl", "tree-paper"), default="graphcl")
        one.add_argument("--judge", choices=JUDGES, default="knn")
        one.add_argument("--labels", type=float, default=0.125, help="the share of the training samples' labels")
        one.add_argument("--seeds", type=int, default=5, help="run: so many")
        one.add_argument("--each", type=int, nargs="+", default=[0], help="features: these seeds")
        one.add_argument("--random", type=int, default=3, help="random trees")
        one.add_argument("--epochs", type=float, help="instead of the protocol's")
        one.add_argument("--depth", type=int, default=2)
        one.add_argument("--searched", choices=("graphcl", "tree-paper"), help="by which protocol, if another")
        one.add_argument("--scorer", choices=SCORERS, default="cooldown")
        one.add_argument("--options", default="{}", help="of the scorer, as JSON")
        one.add_argument("--budget", type=float, help="of each search, in training equivalents")
        one.add_argument("--device", default="auto")
        one.add_argument("--precision", choices=PRECISIONS, default="auto")
        one.add_argument("--workers", type=int, default=1, help="classifiers at once")
        one.add_argument("--searchers", type=int, default=1, help="cool-downs of a search at once")
        one.add_argument("--suffix", default="", help="of the evaluation's folder, for further rows")
    two = commands.add_parser("judge")
    two.add_argument("places", type=Path, nargs="+")
    two.add_argument("--sets", nargs="+")
    two.add_argument("--root", type=Path)
    two.add_argument("--workers", type=int, default=1)
    three = commands.add_parser("table")
    three.add_argument("places", type=Path, nargs="+")
    add_arguments(commands.add_parser("cooldowns"))
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    torch.set_num_threads(1)
    if options.command == "table":
        tables(options.places)
    else:
        {"run": run, "features": features, "judge": judge, "cooldowns": cooldowns}[options.command](options)
