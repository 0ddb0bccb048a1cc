"""Scoring one node by density: every candidate once, against every (candidate, p) pair by itself, as in the paper.

python benchmarks/density_speed.py         # 80 candidates, ten probabilities, digits, one thread
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data import load
from augtree.policies import Tree
from augtree.runs.checkpoints import LazyState
from augtree.runs.store import Run
from augtree.search.options import H
from augtree.search.scorers import Density, ScoringContext
from augtree.tasks import Classification
from measure import machine, table, write


class AllEighty(ScoringContext):
    """Without sharing the scores of equal candidates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.candidates = [candidate for candidate in self.space if candidate.name != "Identity"]


def timed(rule: str, node: int, tree: Tree, trainer: Any, state: Any) -> tuple[float, int]:
    context = AllEighty(trainer, list(at.spaces.images(fill=0)), H, 0, Run.begin(None, {}))
    scorer = Density(rule=rule).scorer(context)
    scorer.nodes = 1
    before, begin = trainer.passes.forward, time.perf_counter()
    score = scorer.scores_by_sampling if rule == "sampled" else scorer.scores_by_expectation
    score(node, tree, None, LazyState(lambda: state, state))
    return time.perf_counter() - begin, (trainer.passes.forward - before) // len(context.rank_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    trainer = Classification(model="cnn", epochs=5).prepare(load("digits", train=600, val=800))
    state = trainer.fit(Tree(), 0)
    root = Tree().with_node(1, at.spaces.images(fill=0)["Rotate", 0.4], 0.5)
    rows: list[dict[str, Any]] = []
    for what, node, tree in (("root", 1, Tree()), ("one level down", 2, root)):
        times: dict[str, list[float]] = {"exact": [], "sampled": []}
        calls = {}
        for _ in range(options.turns):
            for rule, found in times.items():
                seconds, calls[rule] = timed(rule, node, tree, trainer, state)
                found.append(seconds)
        ratio = np.median(times["sampled"]) / np.median(times["exact"])
        rows.append({"node": what, "seconds": times, "evaluations": calls, "ratio": round(float(ratio), 2)})
    body = [
        [
            r["node"],
            f"{np.median(r['seconds']['exact']):.2f} s",
            str(r["evaluations"]["exact"]),
            f"{np.median(r['seconds']['sampled']):.2f} s",
            str(r["evaluations"]["sampled"]),
            f"{r['ratio']}x",
        ]
        for r in rows
    ]
    print(table(["node", "exact", "evaluations", "pair by pair", "evaluations", "ratio"], body))
    print(f"written to {write('density_speed', {'machine': machine(1), 'rows': rows})}")


if __name__ == "__main__":
    main()
