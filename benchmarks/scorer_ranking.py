"""How well a scorer ranks candidates: short branches and density against whole trainings, at the root.

    python benchmarks/scorer_ranking.py truth set.npz --out DIR      # a whole training for each candidate
    python benchmarks/scorer_ranking.py short set.npz --out DIR      # branches for several trunk ages and lengths; density
    python benchmarks/scorer_ranking.py table DIR                    # Spearman, top-3 agreement, relative RSS

The set is that of cifar_policies.py. Candidates are applied to 90 % of the samples (the root's p in the early rounds).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from augtree import transforms as t
from augtree.policies import Tree
from augtree.search.scorers.base import halves
from augtree.tasks import Classification
from augtree.tasks.trainer import Trainer, seed_of
from augtree.transforms import Transform
from cifar_policies import read
from measure import machine, table

P = 0.9
CANDIDATES: list[Transform] = [
    t.TrivialAugment(), t.RandAugment(n=2, m=9), t.Rotate(0.4), t.Rotate(1.0), t.ShearY(1.0), t.TranslateX(1.0), t.Cutout(1.0),
    t.SamplePairing(1.0), t.Invert(0.2), t.Equalize(0.2), t.Solarize(1.0), t.Posterize(0.2), t.Color(1.0), t.Brightness(0.6),
    t.Sharpness(0.6), t.Contrast(1.0),
]  # fmt: skip


def trees() -> dict[str, Tree]:
    return {"none": Tree()} | {str(candidate): Tree().with_node(1, candidate, P) for candidate in CANDIDATES}


def summary(trainer: Trainer, state: Any, rows: NDArray[np.int64]) -> dict[str, float]:
    found = trainer.measures(state, rows)
    return {"loss": found["loss"], "accuracy": found["accuracy"]}


def truth(trainer: Trainer, options: argparse.Namespace) -> None:
    rows = trainer.data.indices("val")
    for seed in options.seeds:
        for name, tree in trees().items():
            path = options.out / f"truth.{name}.{seed}.json"
            if not path.exists():
                path.write_text(json.dumps(summary(trainer, trainer.fit(tree, seed), rows)))
                print(name, path.read_text(), flush=True)


def short(trainer: Trainer, options: argparse.Namespace) -> None:
    rows, rate = halves(trainer.data.indices("val"), 0)[0], trainer.task.rate
    state, age = trainer.fresh(0), 0.0
    warm = trainer.task.rates(trainer.total_steps)
    warm = warm[: warm.index(max(warm))]
    for wanted in options.ages:
        steps = round((wanted - age) * trainer.total_steps)
        rates = [*warm, *[rate] * (steps - len(warm))] if age == 0 else [rate] * steps
        state, age = trainer.train(state, Tree(), rates, seed_of(0, "trunk")), wanted
        for length in options.lengths:
            path = options.out / f"short.{wanted}.{length}.json"
            if path.exists():
                continue
            found = {}
            for name, tree in trees().items():
                down = [rate * (1 - i / length) for i in range(length)]
                found[name] = summary(trainer, trainer.train(state, tree, down, seed_of(0, length)), rows)
            path.write_text(json.dumps(found))
            print(path.name, {name: round(row["loss"], 4) for name, row in found.items()}, flush=True)
    path = options.out / "density.json"
    if not path.exists():
        model = trainer.fit(Tree(), 0)
        path.write_text(
            json.dumps(
                {n: {"loss": float(trainer.losses(model, rows, tree, 1).mean())} for n, tree in trees().items()}
            )
        )


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.argsort(np.argsort(values)).astype(float)


def tables(folder: Path) -> None:
    names = list(trees())
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob("truth.*.json")):
        name = path.name[6:].rsplit(".", 2)[0]
        found.setdefault(name, []).append(json.loads(path.read_text())["loss"])
    true = np.array([np.mean(found[name]) for name in names])
    body = []
    for path in sorted([*folder.glob("short.*.json"), *folder.glob("density.json")]):
        rows = json.loads(path.read_text())
        scores = np.array([rows[name]["loss"] for name in names])
        spearman = float(np.corrcoef(ranks(true), ranks(scores))[0, 1])
        top = len({*np.argsort(true)[:3]} & {*np.argsort(scores)[:3]})
        residual = float(((scores - true) ** 2).sum() / (true**2).sum())
        body.append(
            [path.stem, f"{spearman:.2f}", f"{top} of 3", f"{100 * residual:.1f} %", names[int(np.argmin(scores))]]
        )
    print(table(["scorer", "Spearman", "top 3 in common", "relative RSS", "its best"], body))
    print("by whole trainings:", ", ".join(f"{names[i]} {true[i]:.3f}" for i in np.argsort(true)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["truth", "short", "table"])
    parser.add_argument("set", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--ages", type=float, nargs="+", default=[0.3, 0.6, 1.0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[30, 120])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=float, default=80)
    parser.add_argument("--model", default="wrn-16-4")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "table":
        return tables(options.set)
    options.out.mkdir(parents=True, exist_ok=True)
    trainer = Classification(model=options.model, epochs=options.epochs).prepare(read(options.set))
    (truth if options.what == "truth" else short)(trainer, options)
    (options.out / "machine.txt").write_text(json.dumps(machine(1)))
    return None


if __name__ == "__main__":
    main()
