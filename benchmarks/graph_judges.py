"""What a judge of encoders can tell: its verdict on twenty policies against their accuracy by the protocol.

    python benchmarks/graph_judges.py train NCI1 --seeds 0 1 --share 0 2 --out runs/judges     # part 0 of 2
    python benchmarks/graph_judges.py table runs/judges

For each policy and seed an encoder is trained as the protocol `graphcl` has it, on all graphs. The judges see the
labels of the validation graphs and of a share of the training graphs; the SVM is fitted to and judged on the others.
`table` gives Spearman's rank correlation over policies (means over seeds) of each judge's loss with the SVM's error,
and the SVM's accuracy with the policy that the judge would choose, beside the mean and the best of all policies.
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
from augtree.tasks.contrastive import JUDGES
from augtree.tasks.evaluation import PROTOCOLS, folds_of, judge_fold
from augtree.tasks.named import find_for
from augtree.transforms.graphs import DropNodes, MaskNodes, PermuteEdges, Subgraph
from contrastive_graphs import random_tree
from measure import Array, machine, spearman, table, write

OPERATIONS = (DropNodes, PermuteEdges, Subgraph, MaskNodes)
MAGNITUDES = (0.1, 0.3, 0.5)
RANDOM_TREES = 6


def policies_of(data: at.data.Dataset) -> dict[str, Any]:
    """Nothing, GraphCL's four, each operation at three strengths, random trees."""
    single = [operation(magnitude) for operation in OPERATIONS for magnitude in MAGNITUDES]
    found: dict[str, Any] = {name: find_for(data, name) for name in ("none", "graphcl")}
    found |= {str(one): one for one in single}
    return found | {f"random tree {i}": random_tree(10 + i, 2) for i in range(RANDOM_TREES)}


def train(options: argparse.Namespace) -> None:
    part, parts = options.share
    protocol = PROTOCOLS["graphcl"]
    for name in options.sets:
        data = at.data.load(name, options.root)
        seen = data.with_labels(max(20, round(options.labels * len(data.indices("train")))), seed=0)
        known = np.concatenate([seen.indices("train"), seen.indices("val")])
        task = protocol.task(samples="all", device=options.device)
        trainers = {judge: replace(task, judge=judge).prepare(seen) for judge in JUDGES}
        jobs = [(policy, seed) for seed in options.seeds for policy in policies_of(data).items()]
        for (row, policy), seed in jobs[part::parts]:
            path = options.out / name / f"{row}.{seed}.json"
            if path.exists():
                continue
            began = time.perf_counter()
            state = trainers["knn"].fit(policy, seed)
            val = seen.indices("val")
            found: dict[str, Any] = {
                judge: float(trainer.calibrated_losses(state, val).mean()) for judge, trainer in trainers.items()
            }
            found["linear"] = trainers["knn"].measures(state, val)["loss"]
            x, labels = trainers["knn"].features(state, np.arange(len(data))).double().cpu().numpy(), data.labels.numpy()
            folds = list(folds_of(protocol, data, known, seed))[: options.folds]
            right = [
                judge_fold(protocol, (x[a], labels[a]), (x[b], labels[b])).accuracy for a, b in folds
            ]
            content = {"set": name, "row": row, "policy": str(policy), "seed": seed, "judges": found}
            content |= {"accuracy": float(np.mean(right)), "folds": len(folds), "labels": len(known)}
            content |= {"seconds": round(time.perf_counter() - began, 1), "machine": machine(1)}
            write(path.stem, content, path.parent)
            print(name, row, seed, f"{content['accuracy']:.4f}", content["seconds"], "s", flush=True)


def tables(place: Path) -> None:
    """From a folder of trainings, or from the file that was made of it."""
    content = gathered(place) if place.is_dir() else json.loads(place.read_text())
    body = []
    for name, found in content["sets"].items():
        error = 1 - np.array([row["accuracy"] for row in found["rows"].values()])
        cells = [name, f"{100 * (1 - error.mean()):.1f}", f"{100 * (1 - error.min()):.1f}"]
        for judge in content["judges"]:
            loss: Array = np.array([row["judges"][judge] for row in found["rows"].values()])
            cells.append(f"{spearman(loss, error):+.2f}, {100 * (1 - error[int(np.argmin(loss))]):.1f}")
        body.append(cells)
    print(table(["set", "mean of all", "best", *content["judges"]], body))
    if place.is_dir():
        print(f"written to {write('graph_judges', content)}")


def gathered(place: Path) -> dict[str, Any]:
    """The means over seeds, by set and policy."""
    sets: dict[str, dict[str, Any]] = {}
    judges: list[str] = []
    for folder in sorted(path for path in place.iterdir() if path.is_dir()):
        each: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(folder.glob("*.json")):
            one = json.loads(path.read_text())
            each.setdefault(one["row"], []).append(one)
            judges = list(one["judges"])
            about = {key: one[key] for key in ("folds", "labels", "machine")}
        rows = {
            row: {
                "policy": found[0]["policy"],
                "seeds": len(found),
                "accuracy": float(np.mean([one["accuracy"] for one in found])),
                "judges": {judge: float(np.mean([one["judges"][judge] for one in found])) for judge in judges},
            }
            for row, found in each.items()
        }
        sets[folder.name] = {**about, "rows": rows}
    return {"judges": judges, "sets": sets}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("sets", nargs="+")
    one.add_argument("--root", type=Path)
    one.add_argument("--out", type=Path, default=Path("runs/judges"))
    one.add_argument("--labels", type=float, default=0.25, help="the share of the training graphs' labels")
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    one.add_argument("--folds", type=int, default=10, help="only the first so many")
    one.add_argument("--share", type=int, nargs=2, default=(0, 1), help="which part of how many")
    one.add_argument("--device", default="auto")
    two = commands.add_parser("table")
    two.add_argument("place", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    torch.set_num_threads(1)
    tables(options.place) if options.command == "table" else train(options)
