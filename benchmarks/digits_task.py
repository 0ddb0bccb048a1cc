"""The small task of several benchmarks: digits, 50 labels for training and 600 for validation, on one CPU thread."""

from __future__ import annotations

from augtree.data import Dataset, load
from augtree.tasks import Classification

LABELS, VALIDATION = 50, 600


def data() -> Dataset:
    return load("digits", train=LABELS, val=VALIDATION)


def task() -> Classification:
    """A small network, trained for a second or two: long enough for augmentation to pay."""
    return Classification(model="cnn", steps=600, batch_size=32, lr=0.05, options={"width": 16})
