"""Search cost against quality: every supervised method of `augtree compare`.

    python benchmarks/suite.py prepare runs/sets --root $AUGTREE_DATA --cifar FOLDER
    python benchmarks/methods.py run runs/sets/pacs.npz runs/sets/cifar10.npz --workers 8       # again to go on
    python benchmarks/methods.py table                                                   # writes results/methods.json

A set is an NPZ (x uint8 [N,H,W,C], y, split, and g for groups). What chooses, chooses by validation data. The two
controls that train some thirty times choose by trainings of 0.3.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import measure
from augtree.baselines.exhaustive import Exhaustive
from augtree.baselines.greedy_sequence import GreedySequence
from augtree.runs.events import RowTrained

METHODS: dict[str, Any] = {
    "exhaustive": Exhaustive(length=0.3),
    "greedy-sequence": GreedySequence(length=0.3),
    **{name: name for name in ("paper", "fast-autoaugment", "randaugment-tuned", "search", "longer", "soup")},
    **{name: name for name in ("scale", "group-dro", "lisa", "mixup", "cutmix", "random-tree")},
    **{name: name for name in ("none", "flip-crop", "randaugment", "trivialaugment", "autoaugment")},
    "flip-crop-trivialaugment": "flip-crop-trivialaugment",
}
"""What takes longest comes first, so that workers end at about the same time."""
GROUPED = {"lisa", "group-dro"}
"""Methods for data in groups."""


def read(path: Path) -> Any:
    """The set, in its groups where it has some."""
    found = np.load(path)
    grouped = "g" in found and len(set(found["g"].tolist())) > 1
    groups = [str(g) for g in found["g"]] if grouped else None
    split = [str(s) for s in found["split"]]
    return at.data.from_arrays(found["x"], found["y"], split=split, groups=groups, name=path.stem), grouped


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    about = {name: getattr(options, name) for name in ("model", "steps", "batch_size", "precision")}
    for path in options.sets:
        data, grouped = read(path)
        methods = {name: METHODS[name] for name in options.methods if grouped or name not in GROUPED}
        for seed in options.seeds:

            def told(event: object, name: str = path.stem) -> None:
                if isinstance(event, RowTrained):
                    print(name, *event.describe(), flush=True)

            folder, task = options.out / path.stem / str(seed), at.tasks.Classification(**about)
            at.compare(data, task, methods, seeds=[seed], out=folder, workers=options.workers, watch=told)
            (folder / "about.json").write_text(json.dumps({**about, "machine": measure.machine(1)}, indent=1))


def table(options: argparse.Namespace) -> None:
    """Mean and spread over seeds in percent, and the cost in trainings, of each method on each set."""
    found: dict[str, Any] = {}
    for folder in sorted(each for each in options.out.iterdir() if each.is_dir()):
        rows: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(folder.glob("*/comparison.json")):
            about = json.loads((path.parent / "about.json").read_text())
            for row in json.loads(path.read_text())["rows"]:
                rows.setdefault(row["policy"], []).append(row)
        if rows:
            found[folder.name] = {
                "about": about,
                "methods": {name: summary(each) for name, each in rows.items() if not failures(each)},
                "failed": {name: failures(each)[0] for name, each in rows.items() if failures(each)},
            }
    if not found:
        raise SystemExit(f"{options.out} has no finished comparison")
    lines = []
    for name in METHODS:
        cells = []
        for each in found.values():
            row = each["methods"].get(name)
            cells += [f"{row['mean']:.1f} ± {row['spread']:.1f}", f"{row['cost']:.1f}"] if row else ["", ""]
        lines.append([name, *cells])
    print(measure.table(["method", *(title for name in found for title in (name, "trainings"))], lines))
    print(measure.write("methods", found))


def failures(rows: list[dict[str, Any]]) -> list[str]:
    return [row["failed"] for row in rows if "failed" in row]


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    values = [100 * row["test"] for row in rows]
    out = {
        "mean": statistics.mean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else 0.0,
        "cost": statistics.mean(row["cost"] for row in rows),
        "seeds": len(values),
    }
    worst = [100 * row["worst_group"] for row in rows if "worst_group" in row]
    return {**out, **({"worst group": statistics.mean(worst)} if worst else {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="what", required=True)
    first = does.add_parser("run")
    first.add_argument("sets", type=Path, nargs="+")
    first.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    first.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    first.add_argument("--model", default="wrn-16-2")
    first.add_argument("--workers", type=int, default=1)
    first.add_argument("--steps", type=int, default=1500)
    first.add_argument("--batch-size", type=int, default=128)
    first.add_argument("--precision", default="bfloat16")
    second = does.add_parser("table")
    for each in (first, second):
        each.add_argument("--out", type=Path, default=Path("runs/methods"))
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
