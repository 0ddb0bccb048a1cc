"""What `augtree demo` shows: a tree grown for handwritten digits with few labels, held against the free policies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from augtree.comparison import Comparison, compare
from augtree.data import Dataset, load
from augtree.errors import ArgumentError, OtherRunError
from augtree.files import write_atomically
from augtree.policies import Tree
from augtree.report import sheet
from augtree.search import TreeResult, search_tree
from augtree.search.search import Watch
from augtree.tasks import Classification
from augtree.transforms import spaces

LABELS, VALIDATION = 50, 600


def data() -> Dataset:
    """Digits of which fifty have labels to train on."""
    return load("digits", train=LABELS, val=VALIDATION)


def task() -> Classification:
    """A small network, trained for a second or two: long enough for augmentation to pay."""
    return Classification(model="cnn", steps=600, batch_size=32, lr=0.05, options={"width": 16})


def by_hand() -> Tree:
    """A tree that somebody might write: things lean, wander and fade; they are never flipped."""
    space = spaces.images(fill=0)
    return (
        Tree()
        .with_node(1, space["Rotate", 0.6], p=0.8)
        .with_node(2, space["ShearX", 0.8], p=0.6)
        .with_node(3, space["TranslateY", 0.4])
        .with_node(4, space["TranslateX", 0.4], p=0.5)
        .with_node(6, space["Brightness", 0.6], p=0.7)
    )


def run(out: Path, seed: int, watch: Watch) -> tuple[TreeResult, Comparison]:
    """Grow a tree, hold it against the free policies, and write what it does to pictures."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("--out", f"must be a folder that can be made ({error.strerror})", str(out)) from error
    digits = data()
    found = fresh(
        out / f"search-{seed}",
        lambda folder: search_tree(digits, task(), depth=2, seed=seed, out=folder, watch=watch),
    )
    policies = {"none": None, "randaugment": "randaugment", "trivialaugment": "trivialaugment", "tree": found.tree}
    table = fresh(
        out / f"compare-{seed}", lambda folder: compare(digits, task(), policies, seeds=5, out=folder, watch=watch)
    )
    write_pictures(out, found.tree, digits, seed)
    return found, table


def fresh(folder: Path, work: Any) -> Any:
    """A run in its folder; one that an older version left there makes way."""
    try:
        return work(folder)
    except OtherRunError:
        shutil.rmtree(folder)
        return work(folder)


def write_pictures(out: Path, tree: Tree, digits: Dataset, seed: int) -> None:
    """The tree as a file and as a picture, and a sheet of ten digits and what becomes of them."""
    chosen = [int((digits.labels == digit).nonzero()[seed % 50]) for digit in range(10)]
    pictures = [(f"digit {digits.labels[i]}", digits.samples[i]) for i in chosen]
    rows = sheet.augmented(tree, pictures, copies=8, seed=seed)
    tree.save(out / "tree.json")
    write_atomically(out / "tree.svg", tree.to_svg().encode())
    write_atomically(out / "sheet.png", sheet.drawn("What the tree makes of ten digits", rows))
