"""What `augtree demo` shows: a forest for handwritten digits with few labels in three groups that a person can tell.

The groups are planted: of a third of the digits half are negatives, a third is shifted, a third is turned. Each
group's tree should answer that, though nobody tells it.
"""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from augtree.comparison import Comparison, compare
from augtree.data import Dataset, from_arrays, load
from augtree.errors import OtherRunError
from augtree.files import make_folder, write_atomically
from augtree.keys import Key
from augtree.policies import Forest, Tree
from augtree.report import sheet
from augtree.runs.store import read_spec
from augtree.search.search import Watch
from augtree.tasks import Classification
from augtree.transforms import Space, spaces
from augtree.weighting import ForestResult, Weighted, Weighting, search_forest

GROUPS = ("negative", "shifted", "turned")
LABELS, VALIDATION = 150, 900
SIDE, FARTHEST, WIDEST = 12, 3, 60
"""Pictures of 12 x 12; shifts of up to 3 pixels each way; turns of up to 60 degrees."""
OPERATIONS = ("Rotate", "TranslateX", "TranslateY", "Brightness", "Invert", "TrivialAugment")
WEIGHTING = Weighting(alpha=50, eta=0.1)


def data() -> Dataset:
    """Digits in the three planted groups, of which some have labels to train on."""
    plain = load("digits")
    key = Key.of(0, np.arange(len(plain)), role="planted")
    group = key.below(len(GROUPS))
    pictures = planted(torch.as_tensor(plain.samples), group, key.uniform(1), key.uniform(2))
    split = [("train", "val", "test")[i] for i in plain.split]
    names = [GROUPS[i] for i in group]
    found = from_arrays(pictures.numpy(), plain.labels.numpy(), groups=names, split=split, name="digits", fill=0)
    return found.few(LABELS, VALIDATION)


def planted(pictures: Tensor, group: NDArray[np.int64], one: NDArray[Any], other: NDArray[Any]) -> Tensor:
    """Pictures with what their group is about; two numbers in [0, 1) say whether and how much."""
    x = F.pad(pictures.float(), ((SIDE - pictures.shape[-1]) // 2,) * 4)
    negative, shifted, turned = (torch.from_numpy(group == i) for i in range(len(GROUPS)))
    a, b = (torch.from_numpy(2 * v - 1).float() for v in (one, other))
    angle = torch.where(turned, a * WIDEST * math.pi / 180, 0.0)
    right, down = (torch.where(shifted, (v * FARTHEST).round() * 2 / SIDE, 0.0) for v in (a, b))
    rows = [torch.stack([angle.cos(), -angle.sin(), -right], 1), torch.stack([angle.sin(), angle.cos(), -down], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
    moved = F.grid_sample(x, grid, align_corners=False)
    return torch.where((negative & (a > 0)).view(-1, 1, 1, 1), 255 - moved, moved).round().clamp(0, 255).byte()


def task() -> Classification:
    """A small network, trained for a second or two: long enough for augmentation to pay."""
    return Classification(model="cnn", epochs=140, batch_size=32, lr=0.05, options={"width": 16})


def space() -> Space:
    """A few operations, so that everything is done in two minutes."""
    return Space([c for c in spaces.images(composites=True, fill=0) if c.name in ("Identity", *OPERATIONS)])


def by_hand() -> Tree:
    """A tree that somebody might write: things lean, wander and fade; they are never flipped."""
    plain = spaces.images(fill=0)
    return (
        Tree()
        .with_node(1, plain["Rotate", 0.6], p=0.8)
        .with_node(2, plain["ShearX", 0.8], p=0.6)
        .with_node(3, plain["TranslateY", 0.4])
        .with_node(4, plain["TranslateX", 0.4], p=0.5)
        .with_node(6, plain["Brightness", 0.6], p=0.7)
    )


def run(out: Path, seed: int, watch: Watch) -> tuple[ForestResult, Comparison]:
    """Grow a tree for each group, learn the weights, hold it all against the free policies, and show pictures."""
    make_folder(out)
    digits = data()
    found = fresh(
        out / f"forest-{seed}",
        lambda folder: search_forest(
            digits, task(), seed=seed, out=folder, watch=watch, **WEIGHTING.spec(),
        ),
    )  # fmt: skip
    policies = {
        "none": None,
        "randaugment": "randaugment",
        "trivialaugment": "trivialaugment",
        "forest, uniform weights": Weighted(found.forest, Weighting(eta=0.0, start="uniform")),
        "forest": Weighted(found.forest, WEIGHTING),
    }
    table = fresh(
        out / f"compare-{seed}", lambda folder: compare(digits, task(), policies, seeds=3, out=folder, watch=watch)
    )
    write_pictures(out, found.forest, digits, seed)
    return found, table


def fresh(folder: Path, work: Any) -> Any:
    """A run in its folder; one of the demo's own that an older version left there makes way."""
    try:
        return work(folder)
    except OtherRunError:
        if not str(read_spec(folder).get("data", {}).get("name", "")).startswith("digits"):
            raise
        shutil.rmtree(folder)
        return work(folder)


def write_pictures(out: Path, forest: Forest, digits: Dataset, seed: int) -> None:
    """The forest as a file and as a picture, and a sheet of some digits of each group and what becomes of them."""
    rows = []
    for group in GROUPS:
        few = digits.indices("train", group)[seed % 20 :][:4]
        pictures = [(f"{group}, digit {digits.labels[i]}", digits.samples[i]) for i in few]
        rows += sheet.augmented(forest[group].tree, pictures, copies=8, seed=seed)
    forest.save(out / "forest.json")
    forest[GROUPS[-1]].tree.save(out / "tree.json")
    write_atomically(out / "forest.svg", forest.to_svg().encode())
    write_atomically(out / "sheet.png", sheet.drawn("What each group's tree makes of its digits", rows))
