"""Every registered method with options that make it quick, and a task and data that it fits."""

from dataclasses import replace

import numpy as np
import pytest

from augtree.baselines import METHODS
from augtree.baselines.loop import Batch
from augtree.data.masks import Masks
from augtree.tasks import Classification, SemiSupervised
from augtree.transforms import Identity
from support.blobs import blobs
from support.contrastive import graphs
from support.contrastive import task as contrastive

STEPS, SIZE = 8, 16
OPTIONS = {
    "fast-autoaugment": {"folds": 2, "rounds": 1, "trials": 3, "keep": 1, "pairs": 2},
    "greedy-sequence": {"depth": 1},
    "exhaustive": {"operations": ("Rotate",)},
    "paper": {"depth": 1},
}
"""What makes them quick; the others are as a name means them."""
TRAINED = [
    (name, setting)
    for name, method in METHODS.items()
    for setting in sorted({method.settings[0], "contrastive"} & {*method.settings})
    if name != "pretrained"
]
"""Methods and settings to train them in; `pretrained` needs a file of weights."""
OPTIONAL = {"fast-autoaugment": "optuna"}
"""The package that a method needs."""


def quick(name):
    """A method that takes a second at most; the test is skipped where its package is missing."""
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    return METHODS[name](**OPTIONS.get(name, {}))


def grouped(train=48, val=32, test=16):
    """Pictures of two labels in two groups."""
    return blobs(train, val, test, groups=np.where(np.arange(train + val + test) // 2 % 2, "a", "b"))


def masked():
    """The same pictures with the masks of their squares; every fifth object is not known."""
    data = grouped()
    pixels = np.zeros((len(data), 8, 8), bool)
    for i, label in enumerate(data.labels.tolist()):
        if i % 5:
            pixels[(i, *[slice(1, 4) if label == 0 else slice(4, 7)] * 2)] = True
    return replace(data, masks=Masks.of(pixels))


def without_validation():
    """Pictures of which none are for validation."""
    data = blobs()
    return replace(data, split=np.where(data.split == 1, np.int8(2), data.split))


def grouped_graphs():
    """Graphs of two labels in two groups."""
    data = graphs()
    return replace(data, groups=np.arange(len(data)) // 2 % 2, group_names=("a", "b"))


def fitting(method, setting=None):
    """A task and data that a method fits, by default of its first setting."""
    setting = setting or method.settings[0]
    pictures = masked if method.name == "targeted" else grouped
    data = pictures() if "image" in method.domains else grouped_graphs()
    images = {"model": "cnn", "options": {"width": 2}}
    model = images if data.domain == "image" else {"model": "gin", "options": {"hidden": 4}}
    if setting == "supervised":
        return task(**model), data
    if setting == "contrastive":
        return contrastive(**model, steps=STEPS, batch_size=SIZE), data
    options = {**model, "steps": STEPS, "batch_size": SIZE, "lr": 0.05, "device": "cpu"}
    return SemiSupervised(**options), data.with_labels(24)


def task(**more):
    """A short supervised training."""
    return Classification(
        **{
            "model": "cnn",
            "options": {"width": 2},
            "steps": STEPS,
            "batch_size": SIZE,
            "lr": 0.05,
            "device": "cpu",
            "metric": "loss",
            **more,
        }
    )


def batch_of(trainer, rows, step=3, seed=1):
    """A batch of these samples, unchanged; of both views in contrastive training."""
    rows = np.asarray(rows)
    inputs = trainer.augmented(Identity(), rows, rows, seed)
    return Batch(inputs, trainer.labels_of(rows), rows, rows, step, seed)
