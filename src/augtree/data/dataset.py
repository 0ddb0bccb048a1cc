"""The grouped data set: samples, labels, splits and groups, whatever they were read from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from augtree.data.checks import check_labels, check_names, check_numbers, check_samples, place_of, same_length
from augtree.data.fingerprint import feed
from augtree.data.masks import Masks, check_masks
from augtree.data.pictures.cache import from_pickle, gathered, to_pickle
from augtree.data.splits import SPLITS, UNLABELLED, choose
from augtree.errors import ArgumentError, printable, whole_number
from augtree.transforms.base import Transform

Ints = NDArray[np.int64]
LATER = ("labels", "groups", "merge")
"""What `load` does last, after the samples are drawn."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples with labels; each stands in one split and belongs to one group. `load` and `from_arrays` make it.

    >>> from augtree.data import load
    >>> digits = load("digits")
    >>> len(digits), digits.num_classes, digits.counts
    (1797, 10, {'train': 1078, 'val': 362, 'test': 357})
    """

    name: str
    samples: Tensor | tuple[Any, ...]
    """uint8 [N,C,H,W] on the CPU, or PyG graphs."""
    labels: Tensor
    """int64 [N]; where a sample may have several labels, uint8 [N,L] of 0 and 1."""
    classes: tuple[str, ...]
    split: NDArray[np.int8]
    """0 train, 1 val, 2 test, 3 unlabelled: training samples whose labels are never read."""
    groups: Ints
    """The number of each sample's group."""
    group_names: tuple[str, ...]
    preprocess: Transform | None = None
    """What is usual for this data whatever the policy; a task applies it by default."""
    fill: int = 128
    """What geometric operations leave in uncovered pixels: grey, or 0 for pictures on black."""
    source: Mapping[str, Any] | None = None
    """`load(**source)` gives this set again; None where `load` cannot."""
    notes: tuple[str, ...] = ()
    """Decisions made for the user, to be printed."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further columns of index.csv."""
    files: tuple[str, ...] = ()
    """The file of each sample, for messages; empty where samples are not from files of their own."""
    masks: Masks | None = None
    """Where the object of each picture is, as far as that is known: `masks[rows]` is bool [R,H,W]."""

    def __post_init__(self) -> None:
        check_samples(self.samples)
        check_labels(self.labels, self.classes, len(self))
        check_numbers("split", self.split, np.int8, len(SPLITS), len(self))
        check_numbers("groups", self.groups, np.int64, len(self.group_names), len(self))
        check_names("classes", self.classes)
        check_names("group_names", self.group_names)
        if list(self.group_names) != sorted(self.group_names):
            raise ArgumentError("group_names", "must be sorted", self.group_names)
        if not (self.split == 0).any():
            raise ArgumentError("split", "must have at least one training sample (0)", self.counts)
        for name, column in self.columns.items():
            same_length(f"columns/{name}", len(column), len(self))
        if self.files:
            same_length("files", len(self.files), len(self))
        check_masks(self.masks, self.samples)
        whole_number("fill", self.fill, 0, 255)
        if self.preprocess is not None and self.preprocess.domain not in (self.domain, "any"):
            raise ArgumentError("preprocess", f"must be for {self.domain}s, as the samples are", str(self.preprocess))

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        size = "x".join(str(side) for side in self.samples.shape[1:]) if isinstance(self.samples, Tensor) else ""
        what = f"{len(self)} pictures {size}" if size else f"{len(self)} graphs"
        kind = "labels" if self.multilabel else "classes"
        groups = f"{len(self.group_names)} group{'s' if len(self.group_names) > 1 else ''}"
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"Dataset({printable(self.name)}: {what}, {self.num_classes} {kind}, {groups}; {counts})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "samples": to_pickle(self.samples)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, samples=from_pickle(state["samples"]))

    @property
    def domain(self) -> Literal["image", "graph"]:
        """What the samples are."""
        return "image" if isinstance(self.samples, Tensor) else "graph"

    @property
    def multilabel(self) -> bool:
        """Whether a sample may have several labels."""
        return self.labels.ndim == 2

    @property
    def num_classes(self) -> int:
        """The number of classes, or of labels."""
        return len(self.classes)

    @property
    def counts(self) -> dict[str, int]:
        """The number of samples of each split; unlabelled ones are named where there are any."""
        found = dict(zip(SPLITS, np.bincount(self.split, minlength=len(SPLITS)).tolist(), strict=True))
        return {name: count for name, count in found.items() if count or name != SPLITS[UNLABELLED]}

    def indices(self, split: str | None = None, group: str | None = None) -> Ints:
        """Which samples are in a split, in a group, in both."""
        which = np.ones(len(self), bool)
        if split is not None:
            which &= self.split == place_of("split", split, SPLITS)
        if group is not None:
            which &= self.groups == place_of("group", group, self.group_names)
        return np.flatnonzero(which)

    def take(self, indices: ArrayLike) -> Dataset:
        """Some of the samples, in this order; classes and groups stay, also those that have no sample now."""
        rows = np.asarray(indices)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ArgumentError("indices", "must be a list of whole numbers", indices)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise ArgumentError(
                "indices", f"must be from 0 to {len(self) - 1}", int(rows[(rows < 0) | (rows >= len(self))][0])
            )
        return self._at(rows.astype(np.int64), self.split)

    def _at(self, rows: Ints, split: NDArray[np.int8]) -> Dataset:
        which = torch.from_numpy(rows)
        pictures = self.samples
        return replace(
            self,
            samples=gathered(pictures, rows) if isinstance(pictures, Tensor) else tuple(pictures[i] for i in rows),
            labels=self.labels[which],
            split=split[rows],
            groups=self.groups[rows],
            columns={name: tuple(column[i] for i in rows) for name, column in self.columns.items()},
            files=tuple(self.files[i] for i in rows) if self.files else (),
            masks=None if self.masks is None else self.masks.take(rows),
            source=None,
        )

    def few(self, train: int | None = None, val: int | None = None, seed: int = 0) -> Dataset:
        """Keep that many training and validation samples, drawn by label; test samples stay.

        Where there are too few validation samples, the missing ones are training samples that are not kept.
        """
        if train is None and val is None:
            return self
        split = self.split.copy()
        spare = self._few_train(split, train, seed)
        if val is not None:
            self._few_val(split, spare, whole_number("val", val, 1, len(self)), seed, train is None)
        counts = {name: count for name, count in (("train", train), ("val", val)) if count is not None}
        text = ", ".join(f"{name}={count}" for name, count in counts.items())
        few = self._at(np.flatnonzero(split >= 0), split)
        given = self.source
        # `load` has one seed and draws once: what it cannot do again has no source.
        again = given is not None and given.get("seed", 0) == seed and not {"train", "val", *LATER} & {*given}
        return replace(
            few,
            name=f"{self.name}[{text}]" if seed == 0 else f"{self.name}[{text}, seed={seed}]",
            source={**given, **counts, "seed": seed} if given is not None and again else None,
            notes=(*self.notes, f"few labels: {text}, drawn by label with seed {seed} from {self.name}"),
        )

    def with_labels(self, labels: int | None, seed: int = 0) -> Dataset:
        """Keep the labels of that many training samples, drawn by label; the other training samples are unlabelled.

        All samples stay, unlike with `few`. What is unlabelled already stays so.
        """
        if labels is None:
            return self
        split, rows = self.split.copy(), self.indices("train")
        kept = choose(self.labels[rows], whole_number("labels", labels, 1, len(rows)), seed=seed, role="labels")
        split[rows] = UNLABELLED
        split[rows[kept]] = 0
        text = f"labels={labels}" if seed == 0 else f"labels={labels}, seed={seed}"
        given = self.source
        again = given is not None and given.get("seed", 0) == seed and not {*LATER} & {*given}
        note = f"{labels} of {len(rows)} training samples keep their labels, drawn by label with seed {seed}"
        return replace(
            self,
            name=f"{self.name}[{text}]",
            split=split,
            source={**given, "labels": labels, "seed": seed} if given is not None and again else None,
            notes=(*self.notes, f"{note}; the other {len(rows) - labels} are unlabelled"),
        )

    def _few_train(self, split: NDArray[np.int8], train: int | None, seed: int) -> Ints:
        """Drop (-1) all but some training samples; the rows that may become validation samples."""
        rows = np.flatnonzero(split == 0)
        if train is None:
            return rows
        kept = choose(self.labels[rows], whole_number("train", train, 1, len(rows)), seed=seed, role="few train")
        split[rows] = -1
        split[rows[kept]] = 0
        return np.delete(rows, kept)

    def _few_val(self, split: NDArray[np.int8], spare: Ints, val: int, seed: int, from_train: bool) -> None:
        """Keep or find validation samples."""
        rows = np.flatnonzero(split == 1)
        missing = val - len(rows)
        if missing <= 0:
            split[rows] = -1
            split[rows[choose(self.labels[rows], val, seed=seed, role="few val")]] = 1
            return
        if missing > len(spare) - from_train:
            most = len(rows) + len(spare) - from_train
            raise ArgumentError("val", f"must be at most {most}, what is there beside the training samples", val)
        split[spare[choose(self.labels[spare], missing, seed=seed, role="few val")]] = 1

    @cached_property
    def fingerprint(self) -> str:
        """A hash of samples, masks, labels, split, groups and the names of classes and groups; not of their place."""
        state = hashlib.sha256(b"augtree data 1")
        for value in (self.samples, self.labels, self.split, self.groups, self.classes, self.group_names):
            feed(state, value, "samples")
        if self.masks is not None:
            feed(state, ("masks", self.masks.bits), "masks")
        return state.hexdigest()
