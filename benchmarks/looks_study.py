"""What cool-downs from one trunk can tell, and how a trunk is best ended: the study behind the search's defaults.

    python benchmarks/looks_study.py looks FOLDER --out runs/looks --workers 6   # harm seen from the trunk, and true
    python benchmarks/looks_study.py ends FOLDER --out runs/ends --workers 6     # cool-downs, their lengths, averages
    python benchmarks/looks_study.py divide FOLDER --out runs/divide --workers 6 # 1.4 trainings, divided
    python benchmarks/looks_study.py table --out runs/divide                     # of `divide`

FOLDER has sets as NAME.npz (x uint8 [N,H,W,C], y, split). Only validation data is read. One JSON a set and seed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import measure
from augtree.search.cooldowns import average_of
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates, rates
from augtree.training.state import State, seed_of
from augtree.transforms import (
    AutoAugment,
    Chain,
    Cutout,
    Flip,
    Identity,
    OneOf,
    PadCrop,
    QuarterTurn,
    RandAugment,
    RandGeometry,
    RandTones,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
    VerticalFlip,
)

BEARS = {
    "esc50_spec": "c",
    "fsdd_spec": "c",
    "gtsrb": "c",
    "ham10000": "fvqc",
    "magnetic_tile": "fvqc",
    "neu_steel": "fvqc",
    "omniglot": "c",
    "quickdraw6": "fc",
    "usps": "c",
    "pacs": "fc",
}
"""What a person would say each set can bear: flips left-right, up-down, quarter turns, crops."""


AVERAGES = (
    *("mix mix2", "ra9 ra92", "mix ra9", "ra9 ra14", "mix ra9 ta", "ra9 ra14 ta"),
    *("mix ra9 ra14 ta", "mix full ra9 ra14 ta"),
)
"""Of which cool-downs the models are averaged."""


def basics(side: int) -> dict[str, Any]:
    return {"f": Flip(), "v": VerticalFlip(), "q": QuarterTurn(), "c": PadCrop(side // 8)}


def styles() -> dict[str, tuple[Any, str]]:
    return {
        "none": (Identity(), ""),
        "ra5": (RandAugment(m=5), "gt"),
        "ra9": (RandAugment(m=9), "gt"),
        "ra14": (RandAugment(m=14), "gt"),
        "ta": (TrivialAugment(), "gt"),
        "rg9": (RandGeometry(m=9), "g"),
        "rg14": (RandGeometry(m=14), "g"),
        "tg": (TrivialGeometry(), "g"),
        "rt9": (RandTones(m=9), "t"),
        "rt14": (RandTones(m=14), "t"),
        "tt": (TrivialTones(), "t"),
        "aa": (AutoAugment(), "gt"),
        "ra9cut": (Chain([RandAugment(), Cutout(1.0, share=0.5)]), "gt"),
    }


def mixture(side: int, on: str, without: str = "", alone: float = 0.0) -> Any:
    """Each basic for half of the samples, and any style that has nothing of `without`."""
    steps: list[Any] = [(basic, 0.5 * (name in on)) for name, basic in basics(side).items()]
    chosen = [style for style, what in styles().values() if not set(without) & set(what)]
    mixed: Any = Chain([*steps, OneOf(chosen)])
    return Chain([(mixed, 1 - alone)]) if alone else mixed


def over(side: int, on: str, style: Any) -> Any:
    return Chain([*[basic for name, basic in basics(side).items() if name in on], style])


def read(path: Path) -> Any:
    found = np.load(path)
    name = path.stem.removeprefix("h_")
    return at.data.from_arrays(found["x"], found["y"], split=[str(s) for s in found["split"]], name=name)


def level(trainer: Trainer, first: int, steps: int) -> list[float]:
    """Rates of a trunk from a step on."""
    rise = rates("constant-linear", trainer.total_steps, warmup=trainer.task.warmup, decay=0)
    return [trainer.task.rate * (rise[i] if i < len(rise) else 1.0) for i in range(first, first + steps)]


def branch(trainer: Trainer, trunk: State, policy: Any, share: float, seed: int) -> State:
    steps = max(10, round(share * trainer.total_steps))
    return trainer.train(trunk, policy, [trainer.task.rate * r for r in cooldown_rates(steps)], seed)


def judged(trainer: Trainer, state: State, rows: Any) -> dict[str, Any]:
    losses = trainer.calibrated_losses(state, rows)
    logits = trainer.logits(state, rows).argmax(1).cpu().numpy()
    right = logits == trainer.data.labels.numpy()[rows]
    return {"loss": [round(float(x), 4) for x in losses], "right": right.astype(int).tolist()}


def looks(trainer: Trainer, seed: int, side: int) -> dict[str, Any]:
    rows = trainer.data.indices("val")
    everything = mixture(side, "fvqc")
    others = {"base": everything} | {f"-{b}": mixture(side, "fvqc".replace(b, "")) for b in "fvqc"}
    others |= {
        "-g": mixture(side, "fvqc", "g"),
        "-t": mixture(side, "fvqc", "t"),
        "less": mixture(side, "fvqc", alone=0.5),
    }
    design = {"--": "", "-fq": "fq", "-vq": "vq", "-fv": "fv", "-fc": "fc", "-vc": "vc", "-qc": "qc", "-fvqc": "fvqc"}
    trunk, out, at_ = trainer.fresh(seed), {}, 0
    for share in (0.3, 0.6, 0.9):
        target = round(share * trainer.total_steps)
        trunk = trainer.train(trunk, everything, level(trainer, at_, target - at_), seed_of(seed, "trunk"))
        at_ = target
        for length in (0.05, 0.1):
            for name, policy in others.items():
                state = branch(trainer, trunk, policy, length, seed_of(seed, "look", share))
                out[f"{share}/{length}/{name}"] = judged(trainer, state, rows)
        for name, left in design.items():
            policy = mixture(side, "".join(b for b in "fvqc" if b not in left))
            out[f"{share}/0.05/factorial{name}"] = judged(
                trainer, branch(trainer, trunk, policy, 0.05, seed_of(seed, "look", share)), rows
            )
    for name, policy in others.items():
        out[f"whole/{name}"] = judged(trainer, trainer.fit(policy, seed_of(seed, "whole")), rows)
    return out


def averaged(trainer: Trainer, states: list[State], policy: Any, seed: int) -> State:
    """The average of several models, batch statistics renewed."""
    return trainer.train(average_of(states), policy, [0.0] * 40, seed)


def ends(trainer: Trainer, seed: int, side: int) -> dict[str, Any]:
    rows, on = trainer.data.indices("val"), BEARS[trainer.data.name]
    mixed = mixture(side, on)
    full = Chain([*[b for n, b in basics(side).items() if n in on], OneOf([s for s, _ in styles().values()])])
    ways = {
        "mix": mixed,
        "full": full,
        "ra9": over(side, on, RandAugment()),
        "ra14": over(side, on, RandAugment(m=14)),
        "ta": over(side, on, TrivialAugment()),
    }
    out: dict[str, Any] = {}
    trunk, at_ = trainer.fresh(seed), 0
    for share in (0.7, 1.0, 1.4):
        target = round(share * trainer.total_steps)
        trunk = trainer.train(trunk, mixed, level(trainer, at_, target - at_), seed_of(seed, "trunk"))
        at_ = target
        for length in (0.15, 0.3):
            states = {n: branch(trainer, trunk, p, length, seed_of(seed, "cool", share)) for n, p in ways.items()}
            states["mix2"] = branch(trainer, trunk, mixed, length, seed_of(seed, "cool2", share))
            states["ra92"] = branch(trainer, trunk, ways["ra9"], length, seed_of(seed, "cool2", share))
            here = f"{share}/{length}"
            out |= {f"{here}/{n}": judged(trainer, s, rows) for n, s in states.items()}
            for name in AVERAGES:
                renewed = ways["ra9"] if name == "ra9 ra92" else mixed
                found = averaged(trainer, [states[n] for n in name.split()], renewed, seed_of(seed, "renew"))
                out[f"{here}/avg {name}"] = judged(trainer, found, rows)
    free = {
        "none": Identity(),
        "ra9": RandAugment(),
        "best": over(side, on, RandAugment()),
        "default": over(side, "fc", TrivialAugment()),
    }
    for name, policy in free.items():
        out[f"1x/{name}"] = judged(trainer, trainer.fit(policy, seed_of(seed, "whole")), rows)
    for name in ("best", "default"):
        out[f"2x/{name}"] = judged(
            trainer, trainer.fit(free[name], seed_of(seed, "whole"), 2 * trainer.total_steps), rows
        )
    return out


DIVISIONS = {0.8: (0.3, 0.3), 0.9: (0.5,), 1.0: (0.2, 0.2), 1.00001: (0.4,), 1.1: (0.3,), 1.2: (0.2,)}
"""Lengths of a trunk, and of the cool-downs that follow it: 1.4 trainings each."""


def divide(trainer: Trainer, seed: int, side: int, options: argparse.Namespace) -> dict[str, Any]:
    """The same 1.4 trainings as trunks and cool-downs of several lengths; free policies trained as long."""
    rows, on = trainer.data.indices("val"), BEARS[trainer.data.name]
    mixed, light = mixture(side, on), mixture(side, on, alone=0.5)
    out: dict[str, Any] = {}
    trunk, at_ = trainer.fresh(seed), 0
    for share, lengths in DIVISIONS.items():
        target = round(share * trainer.total_steps)
        trunk = trainer.train(trunk, mixed, level(trainer, at_, target - at_), seed_of(seed, "trunk"))
        at_ = target
        cooled = [branch(trainer, trunk, mixed, each, seed_of(seed, "cool", i)) for i, each in enumerate(lengths)]
        state = cooled[0] if len(cooled) == 1 else averaged(trainer, cooled, mixed, seed_of(seed, "renew"))
        out[f"{share:.1f} + {' + '.join(map(str, lengths))}"] = judged(trainer, state, rows)
        if lengths == (0.4,) and not options.brief:
            others = {"light": light, "ra9": over(side, on, RandAugment()), "ra14": over(side, on, RandAugment(m=14))}
            for name, policy in others.items():
                state = branch(trainer, trunk, policy, 0.4, seed_of(seed, "cool", 0))
                out[f"1.0 + 0.4 {name}"] = judged(trainer, state, rows)
    if options.brief:
        return out
    best = over(side, on, RandAugment(m=14))
    for length in (1.4, 2.0):
        steps = round(length * trainer.total_steps)
        out[f"RandAugment {length}"] = judged(trainer, trainer.fit(best, seed_of(seed, "whole"), steps), rows)
    out["mixture 2.0"] = judged(trainer, trainer.fit(mixed, seed_of(seed, "whole"), 2 * trainer.total_steps), rows)
    return out


def table(options: argparse.Namespace) -> None:
    """Validation accuracy of each way on each set, and the mean difference from two cool-downs of 0.2."""
    found: dict[str, dict[str, list[float]]] = {}
    for path in sorted(options.out.glob("divide-*.json")):
        about = json.loads(path.read_text())
        for way, each in about["found"].items():
            found.setdefault(about["set"], {}).setdefault(way, []).append(100 * float(np.mean(each["right"])))
    ways = list(next(iter(found.values())))
    lines = []
    for way in ways:
        gaps = np.array([np.subtract(each[way], each["1.0 + 0.2 + 0.2"]).mean() for each in found.values()])
        error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
        cells = [f"{np.mean(each[way]):.1f}" for each in found.values()]
        lines.append([way, *cells, f"{gaps.mean():+.2f}", f"{error:.2f}"])
    print(measure.table(["way", *found, "average", "standard error"], lines))


def job(kind: str, path: Path, seed: int, options: argparse.Namespace) -> str:
    out = options.out / f"{kind}-{path.stem.removeprefix('h_')}-{seed}.json"
    if out.exists():
        return f"{out.name} is there"
    torch.set_num_threads(1)
    began = time.perf_counter()
    data = read(path)
    about: dict[str, Any] = {"device": options.device, "precision": options.precision}
    task = at.tasks.Classification(model=options.model, steps=options.steps, **about)
    trainer = task.prepare(data)
    works: dict[str, Callable[[Trainer, int, int], dict[str, Any]]] = {
        "looks": looks,
        "ends": ends,
        "divide": partial(divide, options=options),
    }
    found = works[kind](trainer, seed, min(data.samples.shape[-2:]))
    seconds = time.perf_counter() - began
    trainings = trainer.passes.total / (trainer.total_steps * trainer.passes_per_step)
    out.write_text(
        json.dumps({"set": data.name, "seed": seed, "seconds": seconds, "trainings": trainings, "found": found})
    )
    return f"{kind} {data.name} {seed}: {trainings:.1f} trainings, {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("looks", "ends", "divide", "table"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/sets"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--model", default="wrn-16-2")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument(
        "--brief", action="store_true", help="`divide` without policies at the end and whole trainings"
    )
    options = parser.parse_args()
    if options.kind == "table":
        table(options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    paths = [
        p
        for p in sorted(options.folder.glob("*.npz"))
        if not options.sets or p.stem.removeprefix("h_") in options.sets
    ]
    jobs = [(options.kind, path, seed) for seed in options.seeds for path in paths]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(job, *each, options) for each in jobs]):
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
