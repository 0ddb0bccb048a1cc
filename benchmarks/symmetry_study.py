"""Which flips and turns pictures bear, as the predictions of a model tell, and what follows for a trunk.

    python benchmarks/symmetry_study.py run FOLDER --out runs/symmetry --workers 14 --minutes 9
    python benchmarks/symmetry_study.py table --out runs/symmetry

FOLDER has sets as NAME.npz (x uint8 [N,H,W,C], y, split). Only validation data is read. A line of JSON a job:

    tests    how much of its information a model that never saw flips or turns keeps on validation samples that are
             flipped or turned, and how much it overfits, at several lengths of its trunk
    shares   trunks of 2 trainings with their cool-down, with different shares of samples that are left alone
    factors  the same with more or fewer flips and turns in the mixture
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

import augtree as at
import measure
from augtree.search.symmetries import symmetry, uninformed_losses, ways
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates
from augtree.training.state import seed_of
from augtree.transforms import Chain, Cutout, OneOf, RandAugment, TrivialAugment
from looks_study import basics, level, mixture, read

BORNE = {
    "digits": "c",
    "esc50_spec": "fc",
    "fsdd_spec": "c",
    "fundus": "fvqc",
    "gtsrb": "c",
    "ham10000": "fvqc",
    "magnetic_tile": "fvqc",
    "mixed": "c",
    "neu_steel": "fvc",
    "omniglot": "c",
    "pacs": "fc",
    "quickdraw6": "fc",
    "usps": "c",
}
"""The flips, turns and crops of the trunks of `shares`: those whose tests in a small model (500 steps) keep 0.9."""
OTHERS = {
    "esc50_spec": ("c", "fvc"),
    "gtsrb": ("fc",),
    "neu_steel": ("c", "fvqc"),
    "fundus": ("c", "fc"),
    "pacs": ("c", "fvc"),
    "magnetic_tile": ("c", "fc"),
    "quickdraw6": ("c", "fvc"),
    "mixed": ("fc",),
    "omniglot": ("fc",),
    "ham10000": ("c", "fc"),
}
SHARES = ("half until 0.6", "none alone", "half alone", "strong styles")
TURNS = ("Flip", "VerticalFlip", "QuarterTurn")
AT = (0.05, 0.1, 0.2, 0.3, 0.5)
COOL, LENGTH = 0.6, 2.0


def tests(trainer: Trainer, seed: int) -> dict[str, Any]:
    """What the test of a search says at several lengths of its trunk, after cool-downs of several lengths."""
    rows, steps = trainer.data.indices("val"), trainer.total_steps
    labels = trainer.data.labels[torch.from_numpy(rows)]
    everything = np.ones(len(rows), bool)
    _, _, height, width = cast(Tensor, trainer.data.samples).shape
    policy, prior = mixture(width, "c", alone=0.5), uninformed_losses(labels, [everything])
    train_rows = trainer.rows[:: -(-len(trainer.rows) // len(rows))]
    state, found, done = trainer.fresh(seed), [], 0
    for place in AT:
        end = round(place * steps)
        state = trainer.train(state, policy, level(trainer, done, end - done), seed_of(seed, "trunk"))
        done = end
        for cool in (0.0, 0.04):
            model = state
            if cool:
                down = [trainer.task.rate * share for share in cooldown_rates(max(10, round(cool * steps)))]
                model = trainer.train(state, policy, down, seed_of(seed, "cool"))
            plain = trainer.calibrated_losses(model, rows)
            row: dict[str, Any] = {"at": place, "cool": cool, "accuracy": trainer.measures(model, rows)["accuracy"]}
            row["information"] = float((prior - plain).mean())
            row["gap"] = float(1 - trainer.calibrated_losses(model, train_rows).mean() / plain.mean())
            for name in TURNS:
                each = [trainer.calibrated_losses(model, rows, way) for way in ways(name, square=height == width)]
                said = symmetry(prior - plain, np.mean(each, axis=0) - plain, {"": everything}, 0.9)
                row[name] = None if said is None else [said.kept[""], said.common.se / row["information"]]
            found.append(row)
    return {"tests": found}


def trunk(trainer: Trainer, seed: int, on: str, share: str) -> dict[str, Any]:
    """A trunk on one mixture and its cool-down."""
    side, steps = cast(Tensor, trainer.data.samples).shape[-1], trainer.total_steps
    plain, half = mixture(side, on), mixture(side, on, alone=0.5)
    if share == "strong styles":
        cut = Chain([RandAugment(m=14), Cutout(1.0, share=0.5)])
        some = OneOf([RandAugment(), RandAugment(m=14), TrivialAugment(), cut])
        plain = Chain([*((basic, 0.5 * (name in on)) for name, basic in basics(side).items()), some])
    parts = {
        "half until 0.6": [(half, 0.6), (plain, LENGTH - COOL)],
        "half alone": [(half, LENGTH - COOL)],
    }.get(share, [(plain, LENGTH - COOL)])
    state, done = trainer.fresh(seed), 0
    for policy, end in parts:
        last = round(end * steps)
        state = trainer.train(state, policy, level(trainer, done, last - done), seed_of(seed, "trunk"))
        done = last
    down = [trainer.task.rate * each for each in cooldown_rates(round(COOL * steps))]
    state = trainer.train(state, parts[-1][0], down, seed_of(seed, "cool"))
    measures = trainer.measures(state, trainer.data.indices("val"))
    return {"accuracy": measures["accuracy"], "loss": measures["loss"]}


def job(work: tuple[Path, str, int, tuple[str, str]], options: argparse.Namespace, until: float) -> Any:
    path, kind, seed, what = work
    torch.set_num_threads(1)
    if time.time() > until:
        return None
    began, data = time.perf_counter(), read(path)
    task = at.tasks.Classification(model=options.model, steps=options.steps, precision=options.precision)
    trainer: Trainer = task.prepare(data)
    ready = time.perf_counter() - began
    found = tests(trainer, seed) if kind == "tests" else trunk(trainer, seed, *what)
    about = {"set": path.stem, "kind": kind, "seed": seed, "on": what[0], "share": what[1], **found}
    return {**about, "ready": round(ready, 1), "seconds": round(time.perf_counter() - began, 1)}


def run(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    until = time.time() + 60 * options.minutes
    paths = [p for p in sorted(options.folder.glob("*.npz")) if not options.sets or p.stem in options.sets]
    jobs: list[Any] = []
    for seed in options.seeds:
        for kind in options.kinds:
            if kind == "tests":
                jobs += [(p, kind, seed, ("c", "")) for p in paths]
            if kind == "shares":
                jobs += [(p, kind, seed, (BORNE[p.stem], share)) for share in options.shares for p in paths]
            if kind == "factors":
                jobs += [(p, kind, seed, (on, "none alone")) for p in paths for on in OTHERS.get(p.stem, ())]
    file = (options.out / "all.jsonl").open("a")
    with file, ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(job, each, options, until) for each in jobs]):
            row = done.result()
            if row is None:
                continue
            file.write(json.dumps(row) + "\n")
            file.flush()


def table(options: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in (options.out / "all.jsonl").read_text().splitlines()]
    lines = []
    for row in rows:
        for test in row.get("tests", ()):
            if test["cool"] == options.cool and (not options.at or test["at"] in options.at):
                kept = [f"{test[n][0]:.2f} ± {test[n][1]:.2f}" if test[n] else "?" for n in TURNS]
                figures = [f"{test[name]:.2f}" for name in ("at", "accuracy", "information", "gap")]
                lines.append([row["set"], str(row["seed"]), *figures, *kept])
    lines.sort()
    if lines:
        print(measure.table(["set", "seed", "at", "accuracy", "information", "gap", *TURNS], lines))
    trunks = [row for row in rows if "tests" not in row]
    names = list(dict.fromkeys((row["share"] if row["kind"] == "shares" else "factors") for row in trunks))
    lines = []
    for name in dict.fromkeys(row["set"] for row in trunks):
        mine = [row for row in trunks if row["set"] == name]
        cells = []
        for share in names:
            if share != "factors":
                cells.append(
                    " ".join(
                        f"{100 * r['accuracy']:.1f}" for r in mine if r["share"] == share and r["kind"] == "shares"
                    )
                )
            else:
                cells.append(
                    "; ".join(f"{r['on']} {100 * r['accuracy']:.1f}" for r in mine if r["kind"] == "factors")
                )
        lines.append([name, BORNE.get(name, ""), *cells])
    if lines:
        print(measure.table(["set", "in play", *names], lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="what", required=True)
    first = does.add_parser("run")
    first.add_argument("folder", type=Path)
    first.add_argument("--sets", nargs="+")
    first.add_argument("--kinds", nargs="+", default=["tests", "shares", "factors"])
    first.add_argument("--shares", nargs="+", default=SHARES)
    first.add_argument("--seeds", type=int, nargs="+", default=[0])
    first.add_argument("--workers", type=int, default=1)
    first.add_argument("--minutes", type=float, default=1e6)
    first.add_argument("--steps", type=int, default=1500)
    first.add_argument("--model", default="wrn-16-2")
    first.add_argument("--precision", default="auto")
    second = does.add_parser("table")
    second.add_argument("--cool", type=float, default=0.04)
    second.add_argument("--at", type=float, nargs="+", help="the lengths of the trunk to show")
    for each in (first, second):
        each.add_argument("--out", type=Path, default=Path("runs/symmetry"))
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
