"""Methods in the settings that methods.py does not have: supervised graphs, and semi-supervised pictures.

    python benchmarks/other_methods.py run human-proteins PROTEINS digits --root $AUGTREE_DATA     # again to go on
    python benchmarks/other_methods.py table                                       # writes results/other_methods.json

human-proteins: 1,000 proteins, their 20 most frequent terms, in groups by average degree, AUROC. PROTEINS: 1,113
graphs in groups by size, accuracy. digits: 40 labels, the other training images unlabelled, accuracy.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import augtree as at
import measure
from augtree.baselines.graphaug import GraphAug
from augtree.baselines.greedy_sequence import GreedySequence
from augtree.data import Dataset
from augtree.runs.events import RowTrained
from methods import failures, summary

FREE = {name: name for name in ("none", "graphcl", "randaugment")}
CONTROLS = {name: name for name in ("random-tree", "group-dro", "paper", "longer", "soup", "search")}


def proteins(root: Path) -> Dataset:
    data = at.data.load("human-proteins", root=str(root), limit=1000, terms=20)
    return at.data.group(data, "degree:2")


def small_proteins(root: Path) -> Dataset:
    return at.data.group(at.data.load("PROTEINS", root=str(root)), "size:2")


def digits(root: Path) -> Dataset:  # noqa: ARG001 - they come with scikit-learn
    return at.data.load("digits", labels=40)


@dataclass(frozen=True)
class Job:
    """A data set, a task, and its methods."""

    data: Any
    task: Any
    methods: dict[str, Any]


JOBS = {
    "human-proteins": Job(
        proteins,
        at.tasks.Classification(model="gin", metric="auroc", optimizer="adamw", lr=0.005, steps=300, batch_size=32),
        {**FREE, "greedy-sequence": GreedySequence(length=0.3), **CONTROLS},
    ),
    "PROTEINS": Job(
        small_proteins,
        at.tasks.Classification(model="gin", optimizer="adamw", lr=0.005, steps=400, batch_size=64),
        {**FREE, "greedy-sequence": GreedySequence(), **CONTROLS, "lisa": "lisa", "graphaug": GraphAug()},
    ),
    "digits": Job(
        digits,
        at.tasks.SemiSupervised(model="cnn", steps=400, batch_size=32),
        {name: name for name in ("none", "randaugment", "trivialaugment", "uda", "longer", "search")},
    ),
}


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    for name in options.sets:
        job, folder = JOBS[name], options.out / name

        def told(event: object, name: str = name) -> None:
            if isinstance(event, RowTrained):
                print(name, *event.describe(), flush=True)

        data = job.data(options.root)
        at.compare(data, job.task, job.methods, seeds=options.seeds, out=folder, workers=options.workers, watch=told)
        about = {"data": repr(data), "steps": job.task.steps, "batch_size": job.task.batch_size}
        about |= {"model": job.task.model, "metric": job.task.metric, "machine": measure.machine(1)}
        (folder / "about.json").write_text(json.dumps(about, indent=1))


def table(options: argparse.Namespace) -> None:
    """Mean and spread over seeds in percent, and the cost in trainings, of each method."""
    found: dict[str, Any] = {}
    for path in sorted(options.out.glob("*/comparison.json")):
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in json.loads(path.read_text())["rows"]:
            rows.setdefault(row["policy"], []).append(row)
        found[path.parent.name] = {
            "about": json.loads((path.parent / "about.json").read_text()),
            "methods": {name: summary(each) for name, each in rows.items() if not failures(each)},
            "failed": {name: failures(each)[0] for name, each in rows.items() if failures(each)},
        }
    for name, each in found.items():
        lines = [[m, f"{r['mean']:.1f} ± {r['spread']:.1f}", f"{r['cost']:.1f}"] for m, r in each["methods"].items()]
        print(measure.table([name, str(each["about"]["metric"]), "trainings"], lines))
    print(measure.write("other_methods", found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="what", required=True)
    first = does.add_parser("run")
    first.add_argument("sets", nargs="+", choices=JOBS)
    first.add_argument("--root", type=Path, default=Path("data"))
    first.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    first.add_argument("--workers", type=int, default=1)
    second = does.add_parser("table")
    for each in (first, second):
        each.add_argument("--out", type=Path, default=Path("runs/other_methods"))
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
