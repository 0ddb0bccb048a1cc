"""Contrastive learning on pictures from scratch: the free policies against what a search finds.

    python benchmarks/cifar_semisupervised.py write set.npz --root DIR --train 20000 --labels 20000 --test 5000
    python benchmarks/picture_contrastive.py search set.npz --seeds 0 1 2 --out runs/contrastive
    python benchmarks/picture_contrastive.py evaluate set.npz --seeds 0 1 2 --out runs/contrastive
    python benchmarks/picture_contrastive.py evaluate set.npz --policies trees --seeds 0 --out ...    # a part of it
    python benchmarks/picture_contrastive.py search fundus.zip --size 48 --out runs/fundus-contrastive ...
    python benchmarks/picture_contrastive.py evaluate pacs.zip --size 32 --model cnn --batch 128 \
        --task '{"steps": 300, "options": {"width": 16}}' --policies none simclr lisa scale --seeds 0 1 \
        --out runs/pacs
    python benchmarks/picture_contrastive.py table runs/contrastive

DATA is a file that `cifar_semisupervised.py write` made, a folder or zip file with index.csv, or a named set.
Searches are judged by the nearest neighbours of validation samples, or as `--task` says; encoders by a linear
classifier on the training samples' features, on test samples, which nothing else reads. Both are runs of augtree:
what was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.baselines.methods import restore_method
from augtree.data import Dataset
from augtree.data.splits import SPLITS
from augtree.policies.codec import Reader
from augtree.runs.store import Run, read_spec
from augtree.tasks import Contrastive
from contrastive_graphs import percent, summed
from measure import machine, table, write


def read(options: argparse.Namespace) -> Dataset:
    if options.data.endswith(".npz"):
        held = np.load(options.data)
        data = at.data.from_arrays(held["x"], held["y"], split=[SPLITS[i] for i in held["split"]], name="cifar10")
    else:
        data = at.data.load(options.data, **({"size": options.size} if options.size else {}))
    print(data, flush=True)
    return data


def task_of(options: argparse.Namespace) -> Contrastive:
    given = {"model": options.model, "epochs": options.epochs, "batch_size": options.batch, "device": options.device}
    asked: dict[str, Any] = {**given, "preprocess": None, **json.loads(options.task)}
    return Contrastive(**asked)


def search(options: argparse.Namespace) -> None:
    data = read(options)
    for seed in options.seeds:
        place = options.out / f"tree-{seed}"
        found = at.search_tree(
            data, task_of(options), depth=options.depth, seed=seed, out=place, budget=options.budget
        )
        print(seed, found.tree, found.cost, found.verdict(), flush=True)


def evaluate(options: argparse.Namespace) -> None:
    policies: dict[str, Any] = {
        name: None if name == "none" else name for name in options.policies if name != "trees"
    }
    if "trees" in options.policies:
        policies |= {path.parent.name: path for path in sorted(options.out.glob("tree-*/tree.json"))}
    part = "-".join([*options.policies, *map(str, options.seeds)])
    found = at.evaluate(
        read(options), task_of(options), policies, protocol="linear", seeds=options.seeds, known_labels=[],
        out=options.out / f"evaluation-{part}",
    )  # fmt: skip
    print(found.to_text())


def tables(options: argparse.Namespace) -> None:
    """All that the evaluations in a folder have done so far, as one table."""
    place = Path(options.data)
    done: dict[tuple[str, int], dict[str, Any]] = {}  # a random encoder is in each part
    about: dict[str, Any] = {"policies": {}}
    for folder in sorted(place.glob("evaluation-*")):
        spec = read_spec(folder)
        about |= {"data": spec["data"]["name"], "task": spec["task"]}
        with Run.open(folder, write=False) as run:
            for unit in run.units("evaluate/"):
                _, row, seed = unit.key.split("/")
                if "failed" not in unit.value:
                    accuracy = unit.value["folds"][0]["accuracy"]
                    done[row, int(seed)] = {"row": row, "seed": int(seed), "accuracy": accuracy}
        reader = Reader(folder / "spec.json", ())
        about["policies"] |= {name: str(restore_method(held, reader)) for name, held in spec["policies"].items()}
    figures = summed(list(done.values()))
    print(table(["row", "accuracy", "seeds"], [[row, percent(f), str(f["seeds"])] for row, f in figures.items()]))
    for name, policy in about["policies"].items():
        print(f"{name}: {policy}")
    machine_ = json.loads((place / "machine.json").read_text())
    content = {"machine": machine_, **about, "rows": figures, "notes": found_notes(place)}
    print(f"written to {write('picture_contrastive_' + place.name, content)}")


def found_notes(place: Path) -> list[str]:
    """What the searches had to say, and what they cost."""
    out = []
    for path in sorted(place.glob("tree-*/result.json")):
        found = json.loads(path.read_text())
        out += [f"{path.parent.name}: {found['cost']['training_equivalents']} training equivalents", *found["notes"]]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["search", "evaluate", "table"])
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, default=Path("runs/contrastive"))
    parser.add_argument("--size", type=int)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--epochs", type=float, default=50)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--task", default="{}", help="further options of the task, as JSON")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--budget", type=float, help="training equivalents, if not the two of a search")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--policies", nargs="+", default=["none", "simclr", "randaugment", "trees"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what != "table":
        write("machine", machine(1), options.out)
    {"search": search, "evaluate": evaluate, "table": tables}[options.what](options)


if __name__ == "__main__":
    main()
