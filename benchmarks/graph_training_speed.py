"""Training steps on graphs on one CPU thread: sums over rows in order against adding row after row, and bfloat16.

    AUGTREE_DATA=... python benchmarks/graph_training_speed.py NCI1 DD COLLAB REDDIT-BINARY

A step is the contrastive one of a protocol on 128 graphs: both views through the network and back, and the update;
the views are made before. *Row by row* is `index_add` of the gathered rows, as it is on a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data.presets import find_for
from augtree.evaluation.protocols import PROTOCOLS
from augtree.models.neighbour_sums import Sums
from measure import machine, side_by_side, summary, table, write

SIDES = {"in order": ("float32", True), "row by row": ("float32", False), "in order, bfloat16": ("bfloat16", True)}


@contextmanager
def summed(in_order: bool) -> Iterator[None]:
    """All networks sum in this way."""
    before = Sums.__call__
    if not in_order:
        Sums.__call__ = Sums.row_by_row  # type: ignore[method-assign]
    try:
        yield
    finally:
        Sums.__call__ = before  # type: ignore[method-assign]


def step_of(data: at.data.Dataset, protocol: str, precision: str, in_order: bool) -> Callable[[], None]:
    """One training step, always on the same views."""
    trainer: Any = PROTOCOLS[protocol].task(device="cpu", samples="all", precision=precision).prepare(data)
    rows = np.random.default_rng(0).choice(trainer.rows, trainer.batch_size, replace=False)
    views = trainer.augmented(find_for(data, "graphcl"), rows, rows, 0)
    scalars = trainer.optimizer.scalars([1e-3], 0)[0]
    trainer.model.train()

    def step() -> None:
        with summed(in_order):
            trainer.step(views, trainer.labels_of(rows), scalars, trainer.loss_scalars(0, 1)[0])

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found, body = [], []
    for name in options.sets:
        data = at.data.load(name, options.root)
        for protocol in ("graphcl", "tree-paper"):
            sides: dict[str, Callable[[], object]] = {
                side: step_of(data, protocol, *how) for side, how in SIDES.items()
            }
            times = {side: summary(took) for side, took in side_by_side(sides, options.repeats).items()}
            found.append({"set": name, "protocol": protocol, "sides": times})
            first = times["in order"]["ms"]
            others = [f"{one['ms']:.0f} ({one['ms'] / first:.2f}x)" for one in list(times.values())[1:]]
            body.append([name, protocol, f"{first:.0f}", *others])
    print(table(["set", "protocol", *[f"{side}, ms a step" for side in SIDES]], body))
    print(f"written to {write('graph_training_speed', {'machine': machine(1), 'steps': found})}")


if __name__ == "__main__":
    main()
