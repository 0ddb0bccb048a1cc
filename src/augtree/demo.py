"""What `augtree demo` shows: a forest for handwritten digits with few labels, in three groups that a person can tell.

The groups are planted: a third of the digits is as it was; of a third, on grey, half are mirrored; a third, as
negatives, lies in all four directions. Each group needs other augmentation, which the search should find.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.comparison import Comparison, compare, rows_of_run
from augtree.data import Dataset, from_arrays, load
from augtree.errors import ArgumentError
from augtree.files import check_folder, make_folder, write_atomically
from augtree.forests import ForestResult, search_forest
from augtree.keys import Key
from augtree.policies import Forest
from augtree.report import sheet, write_report
from augtree.runs.events import Watchers
from augtree.tasks import Classification

GROUPS = ("upright", "mirrored", "turned")
LABELS, VALIDATION = 240, 600
GREY = 90
"""Where the scale of the mirrored digits begins; it spans half of the others'."""
ALPHA = 50
"""Steps between two updates of the groups' weights."""
SEEDS = 2
FILES = {"forest.json", "tree.json", "forest.svg", "sheet.png", "report.html"}
"""What stands beside the runs at the end."""


def data() -> Dataset:
    """Digits in the three planted groups, of which some have labels to train on."""
    plain = load("digits")
    key = Key.of(0, np.arange(len(plain)), role="planted")
    group = key.below(len(GROUPS))
    pictures = planted(torch.as_tensor(plain.samples), group, key.uniform(1))
    split = [("train", "val", "test")[i] for i in plain.split]
    names = [GROUPS[i] for i in group]
    found = from_arrays(pictures.numpy(), plain.labels.numpy(), groups=names, split=split, name="digits", fill=0)
    return found.few(LABELS, VALIDATION)


def planted(pictures: Tensor, group: NDArray[np.int64], chance: NDArray[Any]) -> Tensor:
    """Pictures with what their group is about; a number in [0, 1) says which of them are mirrored, or how turned."""
    _, mirrored, turned = (torch.from_numpy(group == i).view(-1, 1, 1, 1) for i in range(len(GROUPS)))
    second_half = torch.from_numpy(chance < 0.5).view(-1, 1, 1, 1)
    quarters = torch.from_numpy((4 * chance).astype(np.int64)).view(-1, 1, 1, 1)
    out = torch.where(mirrored & second_half, pictures.flip(3), pictures)
    out = torch.where(mirrored, out // 2 + GREY, out)
    for k in range(4):
        out = torch.where(turned & (quarters == k), 255 - pictures.rot90(k, (2, 3)), out)
    return out


def task() -> Classification:
    """A small network, trained for a second or two: long enough for augmentation to pay."""
    return Classification(model="cnn", steps=800, batch_size=64, lr=0.05, options={"width": 16})


def run(out: Path, seed: int, watch: Watchers) -> tuple[ForestResult, Comparison]:
    """Search a policy for each group, and the model with it; hold it against free policies; show pictures."""
    check_place(out)
    make_folder(out)
    digits = data()
    folder = out / f"forest-{seed}"
    found = search_forest(digits, task(), seed=seed, out=folder, watch=watch, alpha=ALPHA)
    free = {name: name for name in ("none", "randaugment", "trivialaugment", "flip-crop-trivialaugment")}
    policies = {**free, **rows_of_run(folder, digits)}
    table = compare(digits, task(), policies, seeds=SEEDS, out=out / f"compare-{seed}", watch=watch)
    write_pictures(out, found.forest, digits, seed)
    write_report(out, data=digits)
    return found, table


def check_place(out: Path) -> None:
    """Raise for a folder with anything but an earlier demo in it, whose files may be replaced."""
    check_folder(out)
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    runs = {name for name in names if name.startswith(("forest-", "compare-")) and (out / name).is_dir()}
    foreign = names - runs - (FILES if runs else set())
    if foreign:
        rule = f"must be a new folder or that of an earlier demo, but it has {min(foreign)} in it"
        raise ArgumentError("--out", rule, str(out))


def write_pictures(out: Path, forest: Forest, digits: Dataset, seed: int) -> None:
    """The forest as a file and as a picture, and a sheet of some digits of each group and what becomes of them."""
    rows = []
    for group in GROUPS:
        few = digits.indices("train", group)[seed % 20 :][:4]
        pictures = [(f"{group}, digit {digits.labels[i]}", digits.samples[i]) for i in few]
        rows += sheet.augmented_rows(forest[group].tree, pictures, copies=8, seed=seed)
    forest.save(out / "forest.json")
    forest[GROUPS[-1]].tree.save(out / "tree.json")
    write_atomically(out / "forest.svg", forest.to_svg().encode())
    write_atomically(out / "sheet.png", sheet.draw_sheet("What each group's tree makes of its digits", rows))
