"""Published contrastive methods on graphs under one protocol, beside encoders without training or augmentation.

    python benchmarks/graph_methods.py run MUTAG PROTEINS --root data --out runs/graph_methods.jsonl --seeds 5
    python benchmarks/graph_methods.py table runs/graph_methods.jsonl

`run` appends a line of JSON for each data set, method and seed: the accuracy on each fold, the cost in trainings, the
seconds, the machine. What is in the file is not done again, so one that was stopped goes on; calls side by side need
files of their own. `table` takes them all, prints means and spreads over seeds, and writes
benchmarks/results/graph_methods.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.baselines.base import Baseline
from augtree.baselines.infograph import InfoGraph
from augtree.baselines.joao import Joao
from augtree.baselines.untrained import RandomEncoder
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.evaluation.evaluate import EncoderTable
from augtree.evaluation.leakage import KnownLabels
from augtree.evaluation.protocols import PROTOCOLS
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.training.state import State
from measure import machine, table, write

METHODS: dict[str, Baseline | str] = {
    "none": "none",
    "random-encoder": RandomEncoder(),
    "graphcl": "graphcl",
    "randaugment": "randaugment",
    "joao": Joao(),
    "joao-v2": Joao(heads=True),
    "infograph": InfoGraph(),
}
USUAL = ("none", "random-encoder", "graphcl", "joao", "infograph")
SETS = ("MUTAG", "PROTEINS", "IMDB-BINARY", "NCI1")
PUBLISHED = {
    "infograph": {"NCI1": 76.20, "PROTEINS": 74.44, "IMDB-BINARY": 73.03, "MUTAG": 89.01},
    "graphcl": {"NCI1": 77.87, "PROTEINS": 74.39, "IMDB-BINARY": 71.14, "MUTAG": 86.80},
    "joao": {"NCI1": 78.07, "PROTEINS": 74.55, "IMDB-BINARY": 70.21, "MUTAG": 87.35},
    "joao-v2": {"NCI1": 78.36, "PROTEINS": 74.07, "IMDB-BINARY": 70.83, "MUTAG": 87.67},
}
"""As in the tables of You et al. (2020, 2021)."""


def run(options: argparse.Namespace) -> None:
    done = {(line["set"], line["method"], line["seed"]) for line in lines_of(options.out)}
    for name in options.sets:
        data = at.data.load(name, options.root)
        for seed in range(options.seeds):
            for method in options.methods:
                if (name, method, seed) not in done:
                    line = {"set": name, "method": method, "seed": seed, **measured(data, method, seed, options)}
                    append(options.out, line)
                    print(name, method, seed, f"{100 * np.mean(line['folds']):.2f}", flush=True)


def measured(data: Dataset, method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One encoder and the accuracy of its features on each fold."""
    protocol = PROTOCOLS["graphcl"]
    more = {"epochs": options.epochs} if options.epochs else {}
    trainer = protocol.task(samples="all", device=options.device, **more).prepare(data)
    begin = time.perf_counter()
    state, figures = trained(trainer, METHODS[method], seed)
    seconds = time.perf_counter() - begin
    cost = trainer.passes.total / (trainer.passes_per_step * trainer.total_steps)
    found = EncoderTable(trainer, protocol, KnownLabels(np.array([], np.int64)), options.workers)
    folds = [fold["accuracy"] for fold in found.judged(lambda _: (trainer, state), seed)]
    about = {"protocol": protocol.name, **more, "device": str(trainer.device), "machine": machine(1)}
    return {"folds": folds, "figures": figures, "cost": round(cost, 3), "seconds": round(seconds, 2), **about}


def trained(trainer: ContrastiveTrainer, method: Baseline | str, seed: int) -> tuple[State, dict[str, Any]]:
    """The encoder at the end of its training, and what else the method tells."""
    if isinstance(method, str):
        return trainer.fit(find_for(trainer.data, method), seed), {}
    method.check(trainer.task, trainer.data)
    return method.fit(trainer, seed)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The results so far; a last line that was cut short is left out."""
    whole = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in whole]


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a result, after what there is of whole lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.read_text().rpartition("\n") if path.exists() else ("", "", "")
    path.write_text(whole[0] + whole[1] + json.dumps(line) + "\n")


def tables(options: argparse.Namespace) -> None:
    """Means over folds, their mean and spread over seeds, beside the published figures."""
    found: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for path in options.places:
        for line in lines_of(path):
            found.setdefault(line["set"], {}).setdefault(line["method"], {})[line["seed"]] = line
    summaries = {
        name: {method: summary(list(seeds.values())) for method, seeds in rows.items()}
        for name, rows in found.items()
    }
    methods = [method for method in METHODS if any(method in rows for rows in summaries.values())]
    body = [[method, *[percent(rows.get(method)) for rows in summaries.values()]] for method in methods]
    body += [
        [f"{m}, published", *[f"{PUBLISHED[m].get(n, '')}" for n in summaries]] for m in methods if m in PUBLISHED
    ]
    print(table(["row", *summaries], body))
    machines = {json.dumps(line["machine"], sort_keys=True) for rows in found.values() for seeds in rows.values()
                for line in seeds.values()}  # fmt: skip
    content = {"protocol": "graphcl", "machines": [json.loads(one) for one in sorted(machines)], "sets": summaries}
    print(f"written to {write('graph_methods', {**content, 'published': PUBLISHED})}")


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean and spread of a method's seeds."""
    by_seed = {str(line["seed"]): float(np.mean(line["folds"])) for line in lines}
    means = list(by_seed.values())
    figures = {name: float(np.mean([line["figures"][name] for line in lines])) for name in lines[0]["figures"]}
    seconds, cost = (float(np.mean([line[name] for line in lines])) for name in ("seconds", "cost"))
    sd = float(np.std(means, ddof=1)) if len(means) > 1 else None
    about = {"mean": float(np.mean(means)), "sd": sd, "seeds": len(means), "by_seed": by_seed}
    return {**about, "cost": round(cost, 3), "seconds": round(seconds, 2), "figures": figures}


def percent(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    return f"{100 * found['mean']:.2f}" + ("" if found["sd"] is None else f" ± {100 * found['sd']:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("sets", nargs="*", default=list(SETS))
    one.add_argument("--root", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--methods", nargs="+", choices=METHODS, default=list(USUAL))
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--epochs", type=float, help="instead of the protocol's")
    one.add_argument("--device", default="auto")
    one.add_argument("--workers", type=int, default=1, help="classifiers at once")
    two = commands.add_parser("table")
    two.add_argument("places", type=Path, nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    asked = arguments()
    torch.set_num_threads(1)
    {"run": run, "table": tables}[asked.command](asked)
