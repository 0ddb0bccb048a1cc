"""`reliability.py pieces`: one run, in two to five pieces, with 1, 2 and 4 workers: one hash."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import augtree as at
from measure import machine, write
from reliability_runs import DIGITS, GROUPED, SHORT, SPACE, TASK, begin, fingerprint, killed

WORKERS = (1, 2, 4)
PIECES = (2, 3, 4, 5)
KINDS: dict[str, Callable[..., object]] = {
    "search": partial(at.search_tree, DIGITS, TASK, SPACE, depth=2, **SHORT),
    "forest": partial(at.search_forest, GROUPED, TASK, SPACE, alpha=2, **SHORT),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0)


def main(options: argparse.Namespace) -> dict[str, Any]:
    """The hashes of all runs of a kind."""
    rng, place = random.Random(options.seed), Path(tempfile.mkdtemp())
    rows = {}
    try:
        for kind in KINDS:
            hashes = {f"{workers} workers": in_pieces(kind, place, workers, 1, rng) for workers in WORKERS}
            for pieces in PIECES:
                workers = rng.choice(WORKERS)
                name = f"{pieces} pieces, {workers} workers"
                hashes[name] = in_pieces(kind, place, workers, pieces, rng)
            rows[kind] = hashes
            print(kind, len(set(hashes.values())), "hash of", len(hashes), "runs", flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    found = {"machine": machine(1), "seed": options.seed, "kinds": rows}
    write("reliability-pieces", found)
    return {**found, "holds": all(len(set(hashes.values())) == 1 for hashes in rows.values())}


def in_pieces(kind: str, place: Path, workers: int, pieces: int, rng: random.Random) -> str:
    """The hash of a run that was killed pieces - 1 times, each time after one to three more units."""
    out = place / "run"
    work = partial(KINDS[kind], out=out, workers=workers)
    for _ in range(pieces - 1):
        if not killed(begin(work, f"unit.recorded:{rng.randint(1, 3)}")):
            raise RuntimeError("the run was done before all pieces were")
    killed(begin(work))
    found = fingerprint(out)
    shutil.rmtree(out)
    return found
