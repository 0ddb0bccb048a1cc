"""What a judge of encoders can tell, and when: its verdicts on some policies against their accuracy by the protocol.

    python benchmarks/judges.py train NCI1 --seeds 0 1 --share 0 2 --out runs/judges     # part 0 of 2
    python benchmarks/judges.py train set.npz --epochs 20 --out runs/judges              # pictures, see below
    python benchmarks/judges.py table runs/judges

For each policy and seed an encoder is trained as the protocol `graphcl` has it, on all graphs, and judged three
times: after the whole training, after a quarter of one, and after a branch as long as that from a shared trunk of
half a training without augmentation. The judges see the labels of the validation graphs and of a share of the
training graphs; the SVM is fitted to and judged on the others, at the end of the whole training. Pictures are those
of `picture_contrastive.py`, judged by a linear classifier on the test pictures.

`table` gives Spearman's rank correlation over policies (means over seeds) of each judge's loss with the error, and
the accuracy with the policy that the judge would choose, beside the mean and the best of all policies.
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
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError
from augtree.evaluation.protocols import PROTOCOLS, folds_of, judge_fold
from augtree.tasks import Contrastive
from augtree.tasks.contrastive import JUDGES, ContrastiveTrainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of
from augtree.transforms import Identity
from augtree.transforms.graphs import FOUR
from contrastive_graphs import random_tree
from measure import Array, machine, spearman, table, write
from picture_contrastive import read as read_pictures

MAGNITUDES = (0.1, 0.3, 0.5)
RANDOM_TREES = 6
USUAL_P = 0.6
"""Of a picture's operation: as in the first round of a search."""
WHEN = ("whole", "quarter", "branch")


def policies_of(data: Dataset) -> dict[str, Any]:
    """Nothing, the usual policies, each operation; for graphs at three strengths, and random trees."""
    if data.domain == "image":
        found: dict[str, Any] = {name: find_for(data, name) for name in ("none", "simclr", "randaugment")}
        operations = [one for one in at.spaces.simclr() if not isinstance(one, Identity)]
        return found | {one.name: at.Tree().with_node(1, one, USUAL_P) for one in operations}
    found = {name: find_for(data, name) for name in ("none", "graphcl")}
    found |= {str(one): one for one in (operation(m) for operation in FOUR for m in MAGNITUDES)}
    return found | {f"random tree {i}": random_tree(10 + i, 2) for i in range(RANDOM_TREES)}


def prepared(options: argparse.Namespace, name: str) -> tuple[Dataset, Contrastive, Rows]:
    """The data as the judges see it, the task, and the samples whose labels they have seen."""
    if name.endswith(".npz"):
        data = read_pictures(argparse.Namespace(data=name))
        asked = {"model": "resnet18", "epochs": options.epochs, "preprocess": None}
        return data, Contrastive(**asked, device=options.device), np.empty(0, np.int64)
    data = at.data.load(name, options.root)
    data = data.with_labels(max(20, round(options.labels * len(data.indices("train")))), seed=0)
    seen = np.concatenate([data.indices("train"), data.indices("val")])
    return data, PROTOCOLS["graphcl"].task(samples="all", device=options.device), seen


def trunk_of(trainer: ContrastiveTrainer, seed: int) -> State:
    """Half a training without augmentation, at the full rate: what the branches begin with."""
    rates = trainer.task.rates(trainer.total_steps)
    rise = rates.index(max(rates))
    level = [*rates[:rise], *[trainer.task.rate] * (trainer.total_steps // 2 - rise)]
    return trainer.train(trainer.fresh(seed), Identity(), level, seed_of(seed, "trunk"))


def encoders(trainer: ContrastiveTrainer, trunk: State, policy: Any, seed: int) -> dict[str, State]:
    """Trained for the whole time, for a quarter of it, and from the trunk on with a rate that falls to zero."""
    quarter = -(-trainer.total_steps // 4)
    falling = [trainer.task.rate * (1 - i / quarter) for i in range(quarter)]
    return {
        "whole": trainer.fit(policy, seed),
        "quarter": trainer.fit(policy, seed, quarter),
        "branch": trainer.train(trunk, policy, falling, seed_of(seed, "branch")),
    }


def train(options: argparse.Namespace) -> None:
    part, parts = options.share
    for name in options.sets:
        data, task, seen = prepared(options, name)
        protocol = PROTOCOLS["linear" if data.domain == "image" else "graphcl"]
        trainers = {judge: replace(task, judge=judge).prepare(data) for judge in JUDGES}
        first, labels, val = trainers["knn"], data.labels.numpy(), data.indices("val")
        whole = data if data.domain == "image" else at.data.load(name, options.root)
        jobs = [(policy, seed) for seed in options.seeds for policy in policies_of(data).items()]
        trunks: dict[int, State] = {}
        asked = {"folds": options.folds, "labels": len(data.indices("train")) + len(val), "steps": first.total_steps}
        for (row, policy), seed in jobs[part::parts]:
            path = options.out / Path(name).stem / f"{row}.{seed}.json"
            if path.exists():
                check_same(path, asked)
                continue
            began = time.perf_counter()
            if seed not in trunks:
                trunks[seed] = trunk_of(first, seed)
            states = encoders(first, trunks[seed], policy, seed)
            found = {
                f"{judge}, {when}": float(trainer.calibrated_losses(states[when], val).mean())
                for judge, trainer in trainers.items()
                for when in WHEN
            }
            x = first.features(states["whole"], np.arange(len(data))).double().cpu().numpy()
            folds = list(folds_of(protocol, whole, seen, seed))[: options.folds]
            right = [judge_fold(protocol, (x[a], labels[a]), (x[b], labels[b])).accuracy for a, b in folds]
            content = {"set": data.name, "row": row, "policy": str(policy), "seed": seed, "judges": found}
            content |= {"accuracy": float(np.mean(right)), "asked": asked}
            content |= {"seconds": round(time.perf_counter() - began, 1), "machine": machine(1)}
            write(path.stem, content, path.parent)
            print(name, row, seed, f"{content['accuracy']:.4f}", content["seconds"], "s", flush=True)


def check_same(path: Path, asked: dict[str, int]) -> None:
    """Raise where what is there was asked for otherwise."""
    held = json.loads(path.read_text())["asked"]
    if held != asked:
        raise ArgumentError("--out", f"must be a folder of its own: {path} is of {held}, not of", asked)


def tables(place: Path) -> None:
    """From a folder of trainings, or from the file that was made of it."""
    content = gathered(place) if place.is_dir() else json.loads(place.read_text())
    names = list(content["sets"])
    errors = [1 - np.array([row["accuracy"] for row in content["sets"][name]["rows"].values()]) for name in names]
    body = [["mean of all", *[f"{100 * (1 - error.mean()):.1f}" for error in errors]]]
    body.append(["best", *[f"{100 * (1 - error.min()):.1f}" for error in errors]])
    for judge in content["judges"]:
        cells = [judge]
        for name, error in zip(names, errors, strict=True):
            loss: Array = np.array([row["judges"][judge] for row in content["sets"][name]["rows"].values()])
            cells.append(f"{spearman(loss, error):+.2f}, {100 * (1 - error[int(np.argmin(loss))]):.1f}")
        body.append(cells)
    print(table(["judge", *names], body))
    if place.is_dir():
        print(f"written to {write('judges', content)}")


def gathered(place: Path) -> dict[str, Any]:
    """The means over seeds, by set and policy."""
    sets: dict[str, dict[str, Any]] = {}
    judges: list[str] = []
    for folder in sorted(path for path in place.iterdir() if path.is_dir()):
        each: dict[str, list[dict[str, Any]]] = {}
        about: dict[str, Any] = {}
        for path in sorted(folder.glob("*.json")):
            one = json.loads(path.read_text())
            each.setdefault(one["row"], []).append(one)
            judges, about = list(one["judges"]), {key: one[key] for key in ("asked", "machine")}
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
    one.add_argument("--epochs", type=float, default=20, help="of pictures")
    one.add_argument("--share", type=int, nargs=2, default=(0, 1), help="which part of how many")
    one.add_argument("--device", default="auto")
    two = commands.add_parser("table")
    two.add_argument("place", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    torch.set_num_threads(1)
    tables(options.place) if options.command == "table" else train(options)
