"""Searches with other options side by side, by the validation accuracy of their models; no test data is read.

    python benchmarks/search_variants.py FOLDER --out runs/variants --sets omniglot gtsrb --workers 8

FOLDER has sets as NAME.npz (x uint8 [N,H,W,C], y, split). A line of JSON a search.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

import augtree as at
from augtree.search import Cooldown

VARIANTS = {
    "as it is": Cooldown(),
    "two looks": Cooldown(looks=(0.3, 0.6), look=0.028),
    "one look at 0.5, with styles": Cooldown(looks=(0.5,), look=0.05, styles=True),
    "one look at 0.3": Cooldown(looks=(0.3,), look=0.05, styles=False),
    "two cool-downs of 0.2": Cooldown(cool=0.2, last=2),
    "no look": Cooldown(looks=()),
}


def job(path: Path, seed: int, variant: str, options: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(1)
    began = time.perf_counter()
    found = np.load(path)
    data = at.data.from_arrays(found["x"], found["y"], split=[str(s) for s in found["split"]], name=path.stem)
    task = at.tasks.Classification(model=options.model, steps=options.steps, precision=options.precision)
    result = at.search_tree(data, task, scorer=VARIANTS[variant], seed=seed, budget=options.budget)
    return {
        "set": path.stem.removeprefix("h_"),
        "seed": seed,
        "variant": variant,
        "accuracy": result.measures["accuracy"],
        "loss": result.measures["loss"],
        "cooled": {str(i): v for i, v in enumerate(result.cooled.values())},
        "members": len(result.members),
        "out": list(result.out_of_play),
        "cost": result.cost.training_equivalents,
        "in_model": result.cost.model_equivalents,
        "findings": [dict(f) for f in result.findings],
        "seconds": time.perf_counter() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--model", default="wrn-16-2")
    parser.add_argument("--budget", type=float, default=2.0)
    parser.add_argument("--precision", default="auto")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    paths = [p for p in sorted(options.folder.glob("*.npz")) if not options.sets or p.stem in options.sets]
    jobs = [(p, s, v) for s in options.seeds for v in options.variants for p in paths]
    with (
        ProcessPoolExecutor(options.workers, get_context("spawn")) as pool,
        (options.out / "all.jsonl").open("a") as file,
    ):
        for done in as_completed([pool.submit(job, *each, options) for each in jobs]):
            row = done.result()
            file.write(json.dumps(row) + "\n")
            file.flush()
            about = [f"{row[name]}" for name in ("set", "seed", "variant", "members", "out")]
            print(
                f"{row['accuracy']:.4f} {row['cost']:.2f} {row['in_model']:.2f} {row['seconds']:.0f} s",
                *about,
                flush=True,
            )


if __name__ == "__main__":
    main()
