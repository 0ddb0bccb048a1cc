"""How well a scorer ranks candidates: short branches and density against whole trainings, at the root and below it.

    python benchmarks/scorer_ranking.py truth set.npz --out DIR      # a whole training for each candidate
    python benchmarks/scorer_ranking.py short set.npz --out DIR      # branches of several ages and lengths; density
    python benchmarks/scorer_ranking.py table DIR_OR_JSON            # Spearman, top-3 agreement, relative RSS

The set is that of cifar_policies.py. At the root, candidates are applied to 60 % of the samples; with `--below` they
stand under a RandAugment(m=14), p = 1, and are applied to half of the samples: as before the last round of a search.
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
from measure import machine, table, write

P_ROOT, P_BELOW = 0.6, 0.5
STATISTICS = ("loss", "calibrated", "accuracy")
Array = NDArray[np.float64]
CANDIDATES: list[Transform] = [
    t.TrivialAugment(), t.RandAugment(n=2, m=9), t.Rotate(0.4), t.Rotate(1.0), t.ShearY(1.0), t.TranslateX(1.0),
    t.Cutout(1.0), t.SamplePairing(1.0), t.Invert(0.2), t.Equalize(0.2), t.Solarize(1.0), t.Posterize(0.2),
    t.Brightness(0.6), t.Sharpness(0.6), t.Contrast(1.0), t.RandAugment(n=2, m=14), t.Rotate(0.2), t.ShearX(0.4),
    t.Color(0.6), t.Color(1.0), t.Cutout(0.4),
]  # fmt: skip


def base(below: bool) -> Tree:
    """The tree that a candidate is added to."""
    return Tree().with_node(1, t.RandAugment(n=2, m=14), 1.0) if below else Tree()


def trees(below: bool) -> dict[str, Tree]:
    node, p = (2, P_BELOW) if below else (1, P_ROOT)
    return {"none": base(below)} | {str(found): base(below).with_node(node, found, p) for found in CANDIDATES}


def summary(trainer: Trainer, state: Any, rows: NDArray[np.int64]) -> dict[str, float]:
    found = trainer.measures(state, rows)
    calibrated = float(trainer.calibrated_losses(state, rows).mean())
    return {"loss": found["loss"], "calibrated": calibrated, "accuracy": found["accuracy"]}


def truth(trainer: Trainer, options: argparse.Namespace) -> None:
    rows = trainer.data.indices("val")
    for seed in options.seeds:
        for name, tree in trees(options.below).items():
            path = options.out / f"truth.{name}.{seed}.json"
            if not path.exists():
                path.write_text(json.dumps(summary(trainer, trainer.fit(tree, seed), rows)))
                print(name, path.read_text(), flush=True)


def short(trainer: Trainer, options: argparse.Namespace) -> None:
    rows, rate = halves(trainer.data.indices("val"), 0, trainer.data.labels.numpy())[0], trainer.task.rate
    state, age = trainer.fresh(0), 0.0
    warm = trainer.task.rates(trainer.total_steps)
    warm = warm[: warm.index(max(warm))]
    for wanted in options.ages:
        steps = round((wanted - age) * trainer.total_steps)
        rates = [*warm, *[rate] * (steps - len(warm))] if age == 0 else [rate] * steps
        state, age = trainer.train(state, base(options.below), rates, seed_of(0, "trunk")), wanted
        for length in options.lengths:
            path = options.out / f"short.{wanted}.{length}.json"
            if path.exists():
                continue
            found = {}
            for name, tree in trees(options.below).items():
                down = [rate * (1 - i / length) for i in range(length)]
                found[name] = summary(trainer, trainer.train(state, tree, down, seed_of(0, length)), rows)
            path.write_text(json.dumps(found))
            print(path.name, {name: round(row["loss"], 4) for name, row in found.items()}, flush=True)
    path = options.out / "density.json"
    if not path.exists():
        model = trainer.fit(base(options.below), 0)
        path.write_text(
            json.dumps(
                {n: {"loss": float(trainer.losses(model, rows, tree, 1).mean())} for n, tree in trees(options.below).items()}
            )
        )


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.argsort(np.argsort(values)).astype(float)


def tables(place: Path) -> None:
    """From a folder of runs, whose content is kept as one file, or from such a file."""
    if place.is_dir():
        raw = {path.stem: json.loads(path.read_text()) for path in sorted(place.glob("*.json"))}
        about = json.loads((place / "machine.txt").read_text())
    else:
        raw = json.loads(place.read_text())["raw"]
    whole: dict[str, list[dict[str, float]]] = {}
    for key in (key for key in raw if key.startswith("truth.")):
        whole.setdefault(key.removeprefix("truth.").rsplit(".", 1)[0], []).append(raw[key])
    names = list(whole)
    statistics = [what for what in STATISTICS if what in whole[names[0]][0]]
    true = {what: np.array([np.mean([row[what] for row in whole[name]]) for name in names]) for what in statistics}
    rows = []
    for key, found in raw.items():
        if key.startswith("truth."):
            continue
        for what in (what for what in statistics if what in found["none"] and what != "accuracy"):
            values = np.array([found[name][what] for name in names])
            rows.append({"scorer": key, "statistic": what, **agreement(values, true, what, names)})
    body = [[str(cell) for cell in row.values()] for row in rows]
    print(table(["scorer", "statistic", "Spearman", "top 3 in common", "relative RSS", "its best"], body))
    order = np.argsort(-true["accuracy"])
    print("by whole trainings:", ", ".join(f"{names[i]} {true['accuracy'][i]:.3f}" for i in order))
    if place.is_dir():
        print(f"written to {write('scorer_ranking', {'machine': about, 'rows': rows, 'raw': raw})}")


def agreement(values: Array, true: dict[str, Array], what: str, names: list[str]) -> dict[str, Any]:
    """How well scores (lower is better) agree with whole trainings: their accuracy, and for the RSS the same loss."""
    spearman = float(np.corrcoef(ranks(true["accuracy"]), ranks(-values))[0, 1])
    top = len({*np.argsort(-true["accuracy"])[:3]} & {*np.argsort(values)[:3]})
    residual = float(((values - true[what]) ** 2).sum() / (true[what] ** 2).sum())
    return {
        "spearman": round(spearman, 2),
        "top_3": top,
        "relative_rss": f"{100 * residual:.1f} %",
        "best": names[int(np.argmin(values))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["truth", "short", "table"])
    parser.add_argument("set", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--ages", type=float, nargs="+", default=[0.4, 0.8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200, 400])
    parser.add_argument("--below", action="store_true", help="one level below the root")
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
