"""Short searches of trees by each scorer, and what must be the same when they are stopped and resumed."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest

from augtree import resume
from augtree.search import Density, Retrain, search_tree
from augtree.transforms import Cutout, Posterize
from support.searches import CORNERS, INVERT, LINEAR, QUICK, TASK, bars, corners

DATA = bars(0, 0.5, wrong=0.2)
FEW = [INVERT, Posterize(1.0), Cutout(0.2), Cutout(0.6)]
BESIDE = corners(64, 128)
SCORERS = {
    "cooldown": replace(QUICK, last=4, tests=(0.2,)),
    "density": Density(train=0.2, sure=0),
    "retrain": Retrain(train=0.2, spread=2, repeats=1, sure=0),
}
ONE_BY_ONE = ["density", "retrain"]
H = (0.25, 0.5, 0.75)


def search(out=None, scorer="retrain", **changes):
    """A search by one of the scorers, on data that suits it."""
    arguments = dict(depth=2, scorer=SCORERS.get(scorer, scorer), probabilities=H, seed=0, out=out, check=0.1)
    arguments |= dict(data=BESIDE, task=LINEAR, space=CORNERS, budget=6) if scorer == "cooldown" else {}
    arguments |= changes
    data, task, space = (arguments.pop(name, default) for name, default in
                         (("data", DATA), ("task", TASK), ("space", FEW)))  # fmt: skip
    return search_tree(data, task, space, **arguments)


def again(out, **changes):
    """Resume such a search, with all that a folder cannot hold."""
    begun = json.loads((out / "spec.json").read_text())["scorer"]["name"]
    given = {"data": BESIDE, "task": LINEAR} if begun == "cooldown" else {"data": DATA, "task": TASK}
    return resume(out, **{**given, **changes})


RESULTS = ("tree.json", "tree.svg", "mixture.json", "single.json", "model.safetensors", "training.json")


def files(out):
    """What must be the same to the byte: trees, the model, and every score (but not how long it took)."""
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    for row in rows:
        del row["seconds"]
    result = json.loads((out / "result.json").read_text())
    del result["cost"]["seconds"]
    return {name: (out / name).read_bytes() for name in RESULTS if (out / name).exists()}, rows, result


def stopped(out, cut, **changes):
    """Stop a search after its fifth unit."""
    cut(5, "unit.recorded")
    with pytest.raises(cut.Error):
        search(out, **changes)
    cut(10**9)
