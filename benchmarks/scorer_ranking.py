"""How well a scorer ranks candidates: short branches and density against whole trainings, at the root and below it.

    python benchmarks/scorer_ranking.py truth set.npz --out DIR      # a whole training for each candidate
    python benchmarks/scorer_ranking.py short set.npz --out DIR      # branches of several ages and lengths; density
    python benchmarks/scorer_ranking.py table DIR_OR_JSON            # Spearman, top-3 agreement, relative RSS

    python benchmarks/scorer_ranking.py truth --data digits --seeds 0 1 2 3 4 5 --out DIR [--below]     # on a CPU
    python benchmarks/scorer_ranking.py short --data digits --ages 0.25 0.5 1 --lengths 60 150 300 --out DIR [--below]

The set is that of cifar_policies.py, or the digits of digits_policies.py. At the root, candidates are applied to 60 %
of the samples; with `--below` they stand under a tree that helps (CIFAR-10: RandAugment(m=14), p = 1; digits:
TranslateX(0.6), p = 0.4) and are applied to half of the samples: as before the last round of a search.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import digits_task
from augtree import transforms as t
from augtree.policies import Tree
from augtree.search.scorers.base import halves
from augtree.tasks import Classification
from augtree.tasks.trainer import Trainer, seed_of
from augtree.transforms import Transform
from cifar_policies import read
from measure import Array, machine, spearman, table, write

P_ROOT, P_BELOW = 0.6, 0.5
STATISTICS = ("loss", "calibrated", "accuracy")
CANDIDATES: list[Transform] = [
    t.TrivialAugment(), t.RandAugment(n=2, m=9), t.Rotate(0.4), t.Rotate(1.0), t.ShearY(1.0), t.TranslateX(1.0),
    t.Cutout(1.0), t.SamplePairing(1.0), t.Invert(0.2), t.Equalize(0.2), t.Solarize(1.0), t.Posterize(0.2),
    t.Brightness(0.6), t.Sharpness(0.6), t.Contrast(1.0), t.RandAugment(n=2, m=14), t.Rotate(0.2), t.ShearX(0.4),
    t.Color(0.6), t.Color(1.0), t.Cutout(0.4),
]  # fmt: skip
DIGITS: list[Transform] = [
    t.TrivialAugment(fill=0), t.RandAugment(n=2, m=9, fill=0), t.RandAugment(n=2, m=14, fill=0),
    t.Rotate(0.4, fill=0), t.Rotate(1.0, fill=0), t.ShearX(0.4, fill=0), t.ShearX(1.0, fill=0), t.ShearY(1.0, fill=0),
    t.TranslateX(0.4, fill=0), t.TranslateX(1.0, fill=0), t.TranslateY(0.6, fill=0), t.Cutout(0.4, fill=0),
    t.Cutout(1.0, fill=0), t.SamplePairing(1.0), t.Invert(0.2), t.Equalize(0.2), t.Solarize(1.0), t.Posterize(0.2),
    t.Brightness(0.6), t.Brightness(1.0), t.Sharpness(0.6), t.Contrast(1.0),
]  # fmt: skip
"""Without Color, which leaves grey pictures alone."""


def base(options: argparse.Namespace) -> Tree:
    """The tree that a candidate is added to."""
    if not options.below:
        return Tree()
    if options.data == "digits":
        return Tree().with_node(1, t.TranslateX(0.6, fill=0), 0.4)
    return Tree().with_node(1, t.RandAugment(n=2, m=14), 1.0)


def trees(options: argparse.Namespace) -> dict[str, Tree]:
    """By the name of the candidate; "none" is the tree without any."""
    node, p = (2, P_BELOW) if options.below else (1, P_ROOT)
    candidates = DIGITS if options.data == "digits" else CANDIDATES
    return {"none": base(options)} | {str(found): base(options).with_node(node, found, p) for found in candidates}


def trainer_of(options: argparse.Namespace) -> Trainer:
    """The task of digits_policies.py, or that of cifar_policies.py."""
    if options.data == "digits":
        return digits_task.task().prepare(digits_task.data())
    return Classification(model=options.model, epochs=options.epochs).prepare(read(options.set))


def summary(trainer: Trainer, state: Any, rows: NDArray[np.int64]) -> dict[str, float]:
    found = trainer.measures(state, rows)
    calibrated = float(trainer.calibrated_losses(state, rows).mean())
    return {"loss": found["loss"], "calibrated": calibrated, "accuracy": found["accuracy"]}


def truth(trainer: Trainer, options: argparse.Namespace) -> None:
    rows = trainer.data.indices("val")
    for seed in options.seeds:
        for name, tree in trees(options).items():
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
        state, age = trainer.train(state, base(options), rates, seed_of(0, "trunk")), wanted
        for length in options.lengths:
            path = options.out / f"short.{wanted}.{length}.json"
            if path.exists():
                continue
            found = {}
            for name, tree in trees(options).items():
                down = [rate * (1 - i / length) for i in range(length)]
                found[name] = summary(trainer, trainer.train(state, tree, down, seed_of(0, length)), rows)
            path.write_text(json.dumps(found))
            print(path.name, {name: round(row["loss"], 4) for name, row in found.items()}, flush=True)
    path = options.out / "density.json"
    if not path.exists():
        model = trainer.fit(base(options), 0)
        losses = {name: trainer.losses(model, rows, tree, 1).mean() for name, tree in trees(options).items()}
        path.write_text(json.dumps({name: {"loss": float(loss)} for name, loss in losses.items()}))


def tables(place: Path) -> None:
    """From a folder of runs, whose content is kept as one file, or from such a file."""
    if place.is_dir():
        raw = {path.stem: json.loads(path.read_text()) for path in sorted(place.glob("*.json"))}
        about = json.loads((place / "about.txt").read_text())
    else:
        raw = json.loads(place.read_text())["raw"]
    whole: dict[str, list[dict[str, float]]] = {}
    for key in (key for key in raw if key.startswith("truth.")):
        whole.setdefault(key.removeprefix("truth.").rsplit(".", 1)[0], []).append(raw[key])
    names = list(whole)
    statistics = [what for what in STATISTICS if what in whole[names[0]][0]]
    trained = {what: np.array([[row[what] for row in whole[name]] for name in names]) for what in statistics}
    true = {what: values.mean(1) for what, values in trained.items()}
    itself = with_themselves(trained["accuracy"])
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
    for what, found in itself.items():
        print(f"whole trainings with themselves, {what}: Spearman {found:.2f}")
    print("by whole trainings:", ", ".join(f"{names[i]} {true['accuracy'][i]:.3f}" for i in order))
    if place.is_dir():
        name = "_".join(["scorer_ranking", *["digits"] * (about["data"] == "digits"), *["below"] * about["below"]])
        print(f"written to {write(name, {**about, 'truth_with_itself': itself, 'rows': rows, 'raw': raw})}")


def with_themselves(values: Array) -> dict[str, float]:
    """How far whole trainings (a column a seed) agree: one with the mean of the others, and two halves of them.

    On average over all seeds, and over all ways to halve them.
    """
    seeds = range(values.shape[1])
    halves_ = [list(half) for half in combinations(seeds, len(seeds) // 2)]
    two = [(values[:, half].mean(1), np.delete(values, half, 1).mean(1)) for half in halves_ if half]
    one = [(values[:, seed], np.delete(values, seed, 1).mean(1)) for seed in seeds if len(seeds) > 1]
    pairs = {"one seed with the mean of the others": one, f"two halves of {len(seeds)} seeds": two}
    return {
        what: round(float(np.mean([spearman(*pair) for pair in some])), 3) for what, some in pairs.items() if some
    }


def agreement(values: Array, true: dict[str, Array], what: str, names: list[str]) -> dict[str, Any]:
    """How well scores (lower is better) agree with whole trainings: their accuracy, and for the RSS the same loss."""
    top = len({*np.argsort(-true["accuracy"])[:3]} & {*np.argsort(values)[:3]})
    residual = float(((values - true[what]) ** 2).sum() / (true[what] ** 2).sum())
    return {
        "spearman": f"{spearman(true['accuracy'], -values):.2f}",
        "top_3": top,
        "relative_rss": f"{100 * residual:.1f} %",
        "best": names[int(np.argmin(values))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["truth", "short", "table"])
    parser.add_argument("set", type=Path, nargs="?", help="set.npz of cifar_policies.py; for table, what to read")
    parser.add_argument("--data", choices=["cifar10", "digits"], default="cifar10")
    parser.add_argument("--out", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--ages", type=float, nargs="+", default=[0.4, 0.8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200, 400])
    parser.add_argument("--below", action="store_true", help="one level below the root")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=float, default=80)
    parser.add_argument("--model", default="wrn-16-4")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if (options.set is None) == (options.what == "table" or options.data == "cifar10"):
        parser.error("a set or a place for the table must be given; for --data digits none")
    if options.what == "table":
        return tables(options.set)
    options.out.mkdir(parents=True, exist_ok=True)
    (truth if options.what == "truth" else short)(trainer_of(options), options)
    about = {"machine": machine(1), "data": options.data, "below": options.below}
    (options.out / "about.txt").write_text(json.dumps(about))
    return None


if __name__ == "__main__":
    main()
