"""What is doubtful in a data set, told before time is spent on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from augtree.data.dataset import Dataset
from augtree.data.groups import MIN_VAL_SAMPLES
from augtree.data.identical import Identical, identical_pictures
from augtree.data.splits import UNLABELLED
from augtree.errors import printable

NAMED = 5
"""The most classes or pictures that a warning names."""


def data_warnings(data: Dataset, identical: Sequence[Identical] | None = None) -> Iterator[str]:
    """What a user should know before training on this data; `identical` are its identical pictures, where known."""
    labels = data.labels[torch.from_numpy(data.indices("train"))]
    seen = labels.any(0) if data.multilabel else torch.bincount(labels, minlength=data.num_classes) > 0
    if not data.multilabel and int(seen.sum()) == 1:
        only = printable(data.classes[int(seen.nonzero())])
        yield f"All training samples have the label {only}: there is nothing to tell apart."
    else:
        unseen = [name for name, there in zip(data.classes, seen.tolist(), strict=True) if not there]
        if unseen:
            yield f"No training sample has the label {some(unseen)}."
    if data.multilabel:
        labelled = data.labels[torch.from_numpy(data.split != UNLABELLED)]
        empty = int((labelled == 0).all(1).sum())
        if empty:
            yield f"{empty} of {len(labelled)} samples have no label: each counts as a no for every label."
    yield from identical_warnings(identical_pictures(data) if identical is None else identical)


def search_warnings(data: Dataset) -> Iterator[str]:
    """Why no search is possible on this data."""
    count = len(data.indices("val"))
    if count < MIN_VAL_SAMPLES:
        yield (
            f"A search needs at least {MIN_VAL_SAMPLES} validation samples, and there are {count}: val=N (--val N)"
            " makes them of training samples."
        )


def identical_warnings(found: Sequence[Identical]) -> Iterator[str]:
    """The identical pictures that make results doubtful, counted and named."""
    across = [each for each in found if each.across_splits]
    if across:
        names = some([each.differing(each.splits) for each in across], "; ")
        yield f"Pictures in more than one split: {len(across)}, {names}. What is measured on them is too good."
    contradicting = [each for each in found if each.contradicting]
    if contradicting:
        names = some([each.differing(each.labels) for each in contradicting], "; ")
        yield f"Pictures with different labels: {len(contradicting)}, {names}."


def some(names: Sequence[str], between: str = ", ") -> str:
    """The first few names, and how many more there are."""
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return printable(between.join([*names[:NAMED], *more]))
