"""Finds pictures that are in a data set more than once; graphs are not compared.

In several splits they make results too good, and under different labels some of them must be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from torch import Tensor

from augtree.data.dataset import Dataset
from augtree.data.splits import SPLITS, UNLABELLED

NO_LABEL = "no label"


@dataclass(frozen=True)
class Identical:
    """Pictures that are identical bit for bit."""

    names: tuple[str, ...]
    splits: tuple[str, ...]
    """The split of each."""
    labels: tuple[str, ...]
    """The label of each, empty for unlabelled samples."""

    @property
    def across_splits(self) -> bool:
        """Whether training and judging, or validation and test, share the picture; unlabelled is training too."""
        return len({"train" if split == SPLITS[UNLABELLED] else split for split in self.splits}) > 1

    @property
    def contradicting(self) -> bool:
        """Whether the picture has different labels."""
        return len({label for label in self.labels if label}) > 1

    def row(self) -> dict[str, list[str]]:
        """As a value for a file."""
        return {"names": list(self.names), "splits": list(self.splits), "labels": list(self.labels)}

    def differing(self, values: Iterable[str]) -> str:
        """The first picture and the first one with another value, each with its value."""
        first: dict[str, str] = {}
        for name, value in zip(self.names, values, strict=True):
            first.setdefault(value, name)
        return " and ".join(f"{name} ({value})" for value, name in list(first.items())[:2])


def identical_pictures(data: Dataset) -> list[Identical]:
    """The pictures that occur more than once, in the order of their first places; found once for each data set.

    Examples
    --------
    >>> import numpy as np
    >>> from augtree.data import from_arrays
    >>> pictures = np.arange(6, dtype=np.uint8)[:, None, None].repeat(8, 1).repeat(8, 2)
    >>> pictures[4] = pictures[0]
    >>> data = from_arrays(pictures, ["cat", "dog"] * 3, split=["train"] * 3 + ["val"] + ["test"] * 2)
    >>> identical_pictures(data)
    [Identical(names=('sample 0', 'sample 4'), splits=('train', 'test'), labels=('cat', 'cat'))]

    """
    if not isinstance(data.samples, Tensor):
        return []
    known: dict[str, list[Identical]] = vars(data)  # a value beside the fields, as functools.cached_property keeps it
    if "identical" not in known:
        known["identical"] = find_identical(data, data.samples)
    return known["identical"]


def find_identical(data: Dataset, pictures: Tensor) -> list[Identical]:
    """The identical pictures of a data set."""
    return [
        Identical(
            tuple(data.files[row] if data.files else f"sample {row}" for row in rows),
            tuple(SPLITS[data.split[row]] for row in rows),
            tuple("" if data.split[row] == UNLABELLED else label_of(data, row) for row in rows),
        )
        for rows in identical_rows(pictures)
    ]


def identical_rows(pictures: Tensor) -> list[list[int]]:
    """The rows of each picture that occurs more than once.

    A line of pixels in the middle is compared first, so that few pictures are hashed as a whole.
    """
    _, channels, height, _ = pictures.shape
    middle = pictures[:, channels // 2, height // 2].numpy()
    alike = repeated(range(len(pictures)), lambda row: middle[row].tobytes())
    found = (repeated(some, lambda row: blake2b(pictures[row].numpy().tobytes()).digest()) for some in alike)
    return sorted(rows for each in found for rows in each)


def repeated(rows: Iterable[int], content: Callable[[int], Hashable]) -> list[list[int]]:
    """The rows that share their content with others, together."""
    found: dict[Hashable, list[int]] = {}
    for row in rows:
        found.setdefault(content(row), []).append(row)
    return [some for some in found.values() if len(some) > 1]


def label_of(data: Dataset, row: int) -> str:
    """The label of a sample; several are joined by a semicolon."""
    if not data.multilabel:
        return data.classes[int(data.labels[row])]
    names = [name for name, there in zip(data.classes, data.labels[row].tolist(), strict=True) if there]
    return ";".join(names) or NO_LABEL
