"""Forests against one policy for all groups, the paper's method and the free policies: PACS, fundus, proteins.

    python benchmarks/forests.py train pacs.zip --size 32 --epochs 60 --seeds 0 1 2 --out runs/pacs
    python benchmarks/forests.py train pacs.zip ... --rows forest "the paper's" --seeds 1 --out runs/pacs     # a part
    python benchmarks/forests.py table runs/pacs                                          # all of it; kept as JSON
    python benchmarks/forests.py train human-proteins --limit 2000 --terms 50 --groups size-degree:2x2 --metric auroc

Each seed has whole searches of its own: one policy for all groups, forests, and the paper's trees, grown for each
group from its own samples, with which a model is then trained by Algorithm 2. They stand beside the free policies, in
one training and in as many as a search costs. All are runs of augtree, a folder a row and seed: what was stopped goes
on, what is done is not done twice, and several may run side by side. `--share 0.1` keeps a tenth of the training
labels.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.baselines.controls import Longer, Searched
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.search.scorers.cooldown import BUDGET
from measure import machine, table, write

FREE = {"image": ("none", "randaugment", "trivialaugment"), "graph": ("none", "graphcl")}
PAPER = "the paper's"


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


def methods_of(options: argparse.Namespace, data: Dataset) -> dict[str, Any]:
    """The methods of the table, by row; all but the paper's."""
    space, budget = at.spaces.auto(data), options.budget or BUDGET
    found: dict[str, Any] = {name: find_for(data, name) for name in FREE[data.domain]}
    if data.domain == "image":
        usual = find_for(data, "flip-crop-trivialaugment")
        found["flip, crop, TrivialAugment, as long as a search"] = Longer(budget, usual)
        found["RandAugment, as long as a search"] = Longer(budget, find_for(data, "randaugment"))
    found["one policy for all"] = Searched(space, budget)
    learned = {"alpha": options.alpha, "eta": options.eta}
    found["forest"] = Searched(space, budget, weighting=at.Weighting(**learned))
    found["forest, groups' proportions"] = Searched(space, budget, weighting=at.Weighting(alpha=options.alpha, eta=0))
    found["forest, worst group"] = Searched(space, budget, weighting=at.Weighting(target="worst", **learned))
    return found


def paper(options: argparse.Namespace, data: Dataset, task: at.tasks.Classification, seed: int) -> at.Weighted:
    """The paper's trees, and how it learns the weights."""
    space = at.spaces.images(fill=data.fill) if data.domain == "image" else at.spaces.graphs()
    how: dict[str, Any] = {"start": "uniform", "d": "raw", "alpha": options.alpha, "eta": options.eta}
    place = options.out / f"paper-{seed}"
    found = at.search_forest(
        data, task, space, method="paper", depth=options.depth, seed=seed, out=place, workers=options.workers, **how
    )
    trainer = task.prepare(data)
    spent = sum(search.passes.total for search in found.trees.values())
    cost = round(spent / (trainer.total_steps * trainer.passes_per_step), 3)
    write("searched", {"training_equivalents": cost}, place)
    print(seed, found.forest.to_text(), cost, flush=True)
    return at.Weighted(found.forest, at.Weighting(**how))


def train(options: argparse.Namespace) -> None:
    data, task = read(options), task_of(options)
    known = methods_of(options, data)
    write("machine", machine(1), options.out)
    for seed, row in product(options.seeds, options.rows or [*known, PAPER]):
        method = paper(options, data, task, seed) if row == PAPER else known[row]
        done = at.compare(data, task, {row: method}, seeds=[seed], out=options.out / "rows" / f"{row}.{seed}")
        print(done.to_text(), flush=True)


def tables(options: argparse.Namespace) -> None:
    """Mean and standard deviation over seeds: all, the worst group, each group, and the cost."""
    place = Path(options.data)
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(place.glob("rows/*/comparison.json"), key=lambda path: path.parent.stat().st_ctime):
        for row in json.loads(path.read_text())["rows"]:
            cost = row["cost"] + (searched_for(place, row["seed"]) if row["policy"] == PAPER else 0)
            rows.setdefault(row["policy"], []).append({**row, "cost": cost})
    body, kept = [], []
    for name, found in rows.items():
        shown = [what for what in found[0] if what in ("test", "worst_group") or what.startswith("group ")]
        figures = {what: spread([100 * row[what] for row in found]) for what in shown}
        cost = float(np.mean([row["cost"] for row in found]))
        weights = [{what[7:]: w for what, w in row.items() if what.startswith("weight ")} for row in found]
        kept.append({"policy": name, "seeds": [row["seed"] for row in found], **figures, "cost": round(cost, 2)})
        kept[-1] |= {"weights": weights} if weights[0] else {}
        body.append([name, *(f"{mean:.1f} ± {sd:.1f}" for mean, sd in figures.values()), f"{cost:.1f}"])
    spec = json.loads(next(place.glob("rows/*/spec.json")).read_text())
    print(table(["policy", *(what.removeprefix("group ") for what in figures), "training equivalents"], body))
    about = {"machine": json.loads((place / "machine.json").read_text()), "data": spec["data"]["name"]}
    print(f"written to {write('forests_' + place.name, {**about, 'task': spec['task'], 'rows': kept})}")


def searched_for(place: Path, seed: int) -> float:
    """What the paper's trees cost, in trainings on all groups; the training with them apart."""
    found: dict[str, float] = json.loads((place / f"paper-{seed}" / "searched.json").read_text())
    return found["training_equivalents"]


def spread(values: list[float]) -> list[float]:
    """Mean and standard deviation."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return [round(float(np.mean(values)), 2), round(deviation, 2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "table"])
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, default=Path("runs/forests"))
    parser.add_argument("--rows", nargs="+", help="train: these rows of the table alone")
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
    parser.add_argument("--device", default="auto")
    parser.add_argument("--depth", type=int, default=2, help="of the paper's trees")
    parser.add_argument("--budget", type=float, help="training equivalents, if not the two of a search")
    parser.add_argument("--alpha", type=int, default=50)
    parser.add_argument("--eta", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=1, help="the paper's searches of groups side by side")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    {"train": train, "table": tables}[options.what](options)


if __name__ == "__main__":
    main()
