"""Reads pictures from a folder or a zip file: with an index.csv, or with one subfolder a class."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.labels import in_order, matrix, numbered
from augtree.data.pictures.files import INDEX, Files
from augtree.data.pictures.index import Table, by_folders, indexed
from augtree.data.pictures.masks import read_masks
from augtree.data.pictures.readable import Progress, kept_at, readable_pictures
from augtree.data.pictures.unreadable import check_left_out, note_for
from augtree.data.splits import Split, complete_split, make_split
from augtree.errors import ArgumentError, DataError, nearest, printable


def read_folder(
    path: str | Path,
    *,
    size: int | None = None,
    split_by: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Dataset:
    """The pictures of a folder or a zip file.

    Either index.csv has the columns path and label, perhaps group, split, mask and box, and any others; several
    labels of one picture are separated by `;`. Or each class has its folder, perhaps below train, val and test.
    `size` is the side of the square that pictures are scaled and cut to; `split_by` is a column (patient, camera)
    whose values are kept together in a new split. Sets of 256 MiB and more are decoded once, into a folder of the
    disk ($AUGTREE_CACHE, or ~/.cache/augtree), smaller ones too where `cache` names a folder; `progress(done, of)`
    is called meanwhile.
    """
    path = Path(path)
    with ExitStack() as stack:
        files = Files.open(path, stack)
        table = indexed(files) if INDEX in files.names else by_folders(files)
        labels, classes = labels_from(table)
        group_names = tuple(sorted(set(table.groups))) if table.groups is not None else ("all",)
        groups = numbered(table.groups or ["all"] * len(table.paths), group_names)
        split, notes = split_for(table, labels, groups, split_by, seed)
        check_training(table, labels, classes, split)
        openers = [files.opener(name) for name in table.paths]
        found = readable_pictures(openers, size, cache=cache, of=str(path.resolve()), progress=progress)
        names = [f"{where}: {name}" if where else name for where, name in zip(table.where, table.paths, strict=True)]
        check_left_out(table.place, names, found.problems, labels, classes, split, groups, group_names)
        masks = read_masks(files, table, found, str(path.resolve()), progress)
    rows, given = found.rows, {"size": size, "split_by": split_by}
    return Dataset(
        name=path.resolve().stem if path.is_file() else path.resolve().name,
        samples=found.samples,
        labels=torch.from_numpy(labels[rows]),
        classes=classes,
        split=split[rows],
        groups=groups[rows],
        group_names=group_names,
        source={
            "source": str(path.resolve()),
            **{name: value for name, value in given.items() if value is not None},
            "seed": seed,
        },
        notes=(*table.notes, *found.notes, *notes, *note_for(names, found.problems, found.kept), *kept_at(found)),
        columns={name: tuple(column[row] for row in rows) for name, column in table.columns.items()},
        files=tuple(table.paths[row] for row in rows),
        masks=masks,
    )


def labels_from(table: Table) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The labels as numbers, or as a matrix of 0 and 1 where any has a `;`, and the classes."""
    sets = [
        [part.strip() for part in label.split(";") if part.strip()] if table.several else [label]
        for label in table.labels
    ]
    classes = in_order(name for names in sets for name in names)
    if len(classes) < 2:
        raise DataError(f"{table.place}: must have at least 2 classes, got {printable(', '.join(classes)) or 'none'}")
    labels = matrix(sets, classes) if table.several else numbered(table.labels, classes)
    return labels, classes


def split_for(
    table: Table, labels: NDArray[Any], groups: NDArray[np.int64], split_by: str | None, seed: int
) -> tuple[Split, tuple[str, ...]]:
    """The given split, completed, or a new one; and notes on it."""
    if split_by is not None:
        clusters = clusters_from(table, split_by)
        try:
            made = make_split(labels, groups=None if split_by == "group" else groups, clusters=clusters, seed=seed)
        except ArgumentError as error:
            raise ArgumentError("split_by", f"must have values enough for three splits: {error}", split_by) from error
        instead = "; the split of the files is not used" if table.split is not None else ""
        counts = "/".join(str(int((made == one).sum())) for one in range(3))
        return made, (f"split made: {counts}, each {split_by} in one of them, seed {seed}{instead}",)
    if table.split is not None:
        if not (table.split == 0).any():
            raise DataError(f"{table.place}: must have training samples, got none in the split train")
        return complete_split(table.split, labels, groups=groups, seed=seed)
    by = "label and group" if table.groups is not None else "label"
    return make_split(labels, groups=groups, seed=seed), (f"no split is given: 60/20/20 by {by}, seed {seed}",)


def clusters_from(table: Table, split_by: str) -> Sequence[str]:
    """The values that stay together."""
    columns = {**table.columns, **({"group": table.groups} if table.groups is not None else {})}
    if split_by not in columns:
        if not table.place.endswith(INDEX):
            raise ArgumentError("split_by", f"must be left out for {table.place}: it has no {INDEX}", split_by)
        other = " other than path, label and split" if split_by in ("path", "label", "split") else ""
        there = printable(", ".join(columns)) or "none"
        rule = f"must be a column of {table.place}{other} (there: {there}){nearest(split_by, columns)}"
        raise ArgumentError("split_by", rule, split_by)
    return columns[split_by]


def check_training(table: Table, labels: NDArray[Any], classes: tuple[str, ...], split: Split) -> None:
    """Every class has a training sample."""
    train = labels[split == 0]
    seen = train.any(axis=0) if labels.ndim == 2 else np.isin(np.arange(len(classes)), train)
    unseen = [name for name, there in zip(classes, seen, strict=True) if not there]
    if unseen:
        some = printable(", ".join(unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        raise DataError(
            f"{table.place}: every class must have a training sample, but {len(unseen)} have none: {some}"
        )
