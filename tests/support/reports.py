"""Small runs of every kind for pages, and names that try to become markup."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import augtree as at
from augtree.transforms import (
    Cutout,
    DropNodes,
    Flip,
    Identity,
    MaskNodes,
    Posterize,
    RandAugment,
    Rotate,
    VerticalFlip,
)
from support.small_graphs import classifier_task, marked_rings

HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "\"'><svg onload=window.hacked=1>",
)
TREE = at.Tree().with_node(1, Rotate(0.4), p=0.5).with_node(2, Cutout(0.4), p=0.6)


def task(**more):
    return at.tasks.Classification(
        model="cnn", **{"steps": 12, "batch_size": 16, "lr": 0.05, "device": "cpu", **more}
    )


def space():
    return at.transforms.Space([Identity(), RandAugment(), Posterize(0.2)], basics=[Flip(), VerticalFlip()])


def pictures(groups=2, *, names=("left", "right"), group_names=None, name="corners"):
    """A bright corner, left or right, in groups."""
    rng, count = np.random.default_rng(0), 48 * groups
    labels = np.arange(count) % 2
    samples = rng.integers(0, 120, (count, 8, 8))
    for picture, right in zip(samples, labels, strict=True):
        picture[:4, 4 * right : 4 * right + 4] += 60
    split = [("train", "train", "val", "test")[i // 2 % 4] for i in range(count)]
    known = group_names or [f"group {i:02d}" for i in range(groups)]
    grouped = [known[i // 8 % groups] for i in range(count)]
    y = [names[label] for label in labels]
    return at.data.from_arrays(samples.astype(np.uint8), y, split=split, groups=grouped, name=name)


def hostile():
    return pictures(names=HOSTILE[:2], group_names=[HOSTILE[0], HOSTILE[2]], name=HOSTILE[1])


def digits():
    return at.data.load("digits", train=60, val=60)


def graph_space():
    return at.transforms.Space([DropNodes(0.2), MaskNodes(0.2)])


def encoders(steps):
    options = {"steps": steps, "batch_size": 16, "dim": 8, "device": "cpu"}
    return at.tasks.Contrastive(model="cnn", options={"width": 2}, **options)


def with_few_labels():
    options = {"steps": 4, "batch_size": 8, "device": "cpu"}
    return at.tasks.SemiSupervised(model="cnn", options={"width": 2}, **options)


def sixteen():
    return pictures(16)


def sixteen_trees():
    return {f"group {i:02d}": TREE.without_node(2).with_node(2, Cutout(0.4), p=0.05 * (i + 1)) for i in range(16)}


CANDIDATES = [Rotate(0.4), Posterize(1.0)]
BY_DENSITY = {"depth": 2, "scorer": "density", "probabilities": (0.5, 1.0)}
BY_PAPER = {"method": "paper", "depth": 1, "probabilities": (0.5,), "alpha": 3}
COMPARED = {"none": None, HOSTILE[0]: "randaugment", "mixup": "mixup", "mine": TREE}
ENCODED = {"none": None, "ra": "randaugment"}
LABELLED = {"train": 120, "val": 60, "labels": 40}
RUNS = {
    "search": lambda out: at.search_tree(digits(), task(), space(), budget=20, out=out),
    "density": lambda out: at.search_tree(pictures(), task(), CANDIDATES, **BY_DENSITY, out=out),
    "forest": lambda out: at.search_forest(hostile(), task(), space(), budget=20, alpha=3, out=out),
    "fit": lambda out: at.fit_forest(pictures(), task(), {"group 00": TREE, "group 01": at.Tree()}, alpha=3, out=out),
    "paper": lambda out: at.search_forest(pictures(), task(), CANDIDATES, **BY_PAPER, out=out),
    "train": lambda out: at.train(digits(), task(), TREE, out=out),
    "compare": lambda out: at.compare(digits(), task(steps=4), COMPARED, seeds=2, out=out),
    "evaluate": lambda out: at.evaluate(digits(), encoders(4), ENCODED, protocol="linear", seeds=2, out=out),
    "graphs": lambda out: at.search_tree(
        marked_rings(), classifier_task(steps=12), graph_space(), budget=12, out=out
    ),
    "contrastive": lambda out: at.search_tree(digits(), encoders(6), budget=2, out=out),
    "semisupervised": lambda out: at.search_tree(
        at.data.load("digits", **LABELLED), with_few_labels(), budget=2, out=out
    ),
    "sixteen": lambda out: at.fit_forest(sixteen(), task(steps=4), sixteen_trees(), alpha=4, out=out),
}
DATA = {
    "sixteen": sixteen,
    "density": pictures,
    "forest": hostile,
    "fit": pictures,
    "paper": pictures,
    "graphs": marked_rings,
}
"""The data of runs on arrays."""


class Made:
    """Runs that are made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str) -> Path:
        """The folder of a run."""
        if not (self.folder / name).is_dir():
            RUNS[name](self.folder / name)
        return self.folder / name

    def data(self, name: str):
        """The data that a page needs to be given."""
        return DATA[name]() if name in DATA else None
