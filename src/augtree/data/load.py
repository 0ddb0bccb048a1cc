"""Finds a data set by its name or its path."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from augtree.data.dataset import Dataset
from augtree.data.graphs.tu import is_tu, tu_dataset
from augtree.data.groups import By, group
from augtree.data.named.catalogue import CATALOGUE, UNION
from augtree.data.named.chestxray import read_chestxray14
from augtree.data.named.cifar import CIFAR10, CIFAR100, read_cifar
from augtree.data.named.digits import read_digits
from augtree.data.named.download import fetch
from augtree.data.named.fundus import read_hospital, read_retinopathy
from augtree.data.named.idx import read_idx_set
from augtree.data.named.iwildcam import read_iwildcam
from augtree.data.named.svhn import read_svhn
from augtree.data.pictures.folder import read_folder
from augtree.data.proteins.human import read_human_proteins
from augtree.data.proteins.reader import is_proteins, read_proteins
from augtree.errors import ArgumentError, DataError, nearest

Reader = Callable[..., Dataset]
READERS: dict[str, Reader] = {
    "digits": read_digits,
    "cifar10": partial(read_cifar, CIFAR10),
    "cifar100": partial(read_cifar, CIFAR100),
    "svhn": read_svhn,
    **{name: partial(read_idx_set, name) for name in ("mnist", "fashion-mnist")},
    "iwildcam": read_iwildcam,
    **{name: partial(read_hospital, name) for name in UNION},
    "retinopathy": read_retinopathy,
    "chestxray14": read_chestxray14,
    "human-proteins": read_human_proteins,
}
"""Sets that are read from below the root; beside them are the TU sets."""
FOR_FOLDERS = ("size", "split_by")


def load(
    source: str | Path,
    root: str | Path | None = None,
    *,
    size: int | None = None,
    split_by: str | None = None,
    train: int | None = None,
    val: int | None = None,
    labels: int | None = None,
    groups: By | None = None,
    merge: str | None = None,
    fill: int | None = None,
    download: bool = False,
    seed: int = 0,
    **options: Any,
) -> Dataset:
    """Load a data set by its name, or from a folder or zip file.

    Parameters
    ----------
    source
        A name (`augtree data list` has them all), or the path of pictures, of a TU set or of built protein graphs.
        Pictures have an index.csv (columns path and label, perhaps group and split), or one subfolder a class.
    root
        Where named sets are; by default the environment variable AUGTREE_DATA, or "data".
    size
        Pictures in files: the side of the square that they are scaled and cut to.
    split_by
        Pictures in files: a column (patient, camera) whose values are each kept in one split.
    train
        Keep this many training samples, stratified by label (`Dataset.few`).
    val
        Keep this many validation samples.
    labels
        Keep the labels of this many training samples; the others are unlabelled (`Dataset.with_labels`).
    groups
        Other groups than those of the files, see `group`.
    merge
        "nearest" merges groups that are too small with the most similar group.
    fill
        The value that geometric operations should leave in uncovered pixels, 0 to 255.
    download
        Fetch the files of a named set that are missing.
    seed
        Of everything that is drawn: splits, samples, labels.
    **options
        Options of the reader, such as `extra` for svhn, `cameras` for iwildcam, `cache` for pictures in files.

    Examples
    --------
    >>> load("digits", train=60, val=60)
    Dataset(digits[train=60, val=60]: 477 pictures 1x8x8, 10 classes, 1 group; train 60, val 60, test 357)

    """
    place = root_of(root)
    given = {"size": size, "split_by": split_by, **options}
    wanted = {name: value for name, value in given.items() if value is not None}
    if download:
        fetch_set(str(source), place, wanted)
    found = read(str(source), place, seed, wanted).few(train, val, seed).with_labels(labels, seed)
    if groups is not None or merge is not None:
        found = group(found, "given" if groups is None else groups, merge=merge)
    if fill is None:
        return found
    return replace(found, fill=fill, source=found.source and {**found.source, "fill": fill})


def root_of(root: str | Path | None) -> Path:
    """The folder of named sets."""
    return Path(root) if root is not None else Path(os.environ.get("AUGTREE_DATA") or "data")


def fetch_set(source: str, root: Path, options: Mapping[str, Any], **more: Any) -> None:
    """Fetch the missing files of a named set; an ArgumentError for a path."""
    if source not in CATALOGUE:
        raise ArgumentError("download", f"must be left out for {source}: it is for named sets", True)
    for name in UNION if source == "retinopathy" else (source,):
        fetch(name, root, optional=bool(options.get("extra")), **more)


def read(source: str, root: Path, seed: int, options: Mapping[str, Any]) -> Dataset:
    """Read the data set of a name or a path."""
    reader, path = reader_by_name(source, root)
    if path is None:
        raise not_found_error(source, root)
    return reader(path, seed=seed, **check_options(source, reader, options))


def reader_by_name(source: str, root: Path) -> tuple[Reader, Path | None]:
    """The reader for a name or a path, and the path to read, None if it does not exist."""
    if source in READERS:
        return READERS[source], root
    found = (path for path in places(source, root) if os.path.exists(path))  # noqa: PTH110 (Path.exists raises)
    path = next(found, None)
    if path is None:
        return tu_dataset if source in CATALOGUE else read_folder, None
    return reader_at(path), path


def reader_at(path: Path) -> Reader:
    """The reader for the files at a path."""
    if is_proteins(path):
        return read_proteins
    return tu_dataset if is_tu(path) else read_folder


def check_options(source: str, reader: Reader, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options, if this set has them."""
    known = options_of(reader)
    for name, value in options.items():
        if name not in known and name in FOR_FOLDERS:
            raise ArgumentError(name, f"must be left out for {source}: it is for pictures in folders", value)
        if name not in known:
            has = f"which has {', '.join(known)}" if known else "which has none"
            raise ArgumentError(name, f"must be an option of {source}, {has}{nearest(name, known)}", value)
    return options


def options_of(reader: Reader) -> dict[str, Any]:
    """The options of a reader and their defaults."""
    parameters = inspect.signature(reader).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "seed"}


def places(source: str, root: Path) -> list[Path]:
    """Where a path or a name may lie, the likeliest first."""
    below = [root / part / f"{source}{end}" for part in ("tu", "", "images") for end in (".zip", "")]
    if source not in CATALOGUE:
        return [Path(source), *below]
    folder = CATALOGUE[source].folder(root)
    return [Path(source)] if folder is None else [Path(source), folder / f"{source}.zip", folder]


def not_found_error(source: str, root: Path) -> DataError:
    """The error for a data set that does not exist."""
    if source in CATALOGUE:
        return CATALOGUE[source].missing(root, f"{source}.zip or {source}/ (in tu/ or beside it)")
    if "/" in source or "\\" in source:
        return DataError(f"{source}: there is no such folder or zip file; also looked below {root}")
    same = next((name for name in CATALOGUE if name.lower() == source.lower()), None)
    guess = nearest(same or source, CATALOGUE) or nearest(source.lower(), CATALOGUE)
    return DataError(
        f"source must be a folder, a zip file or one of {', '.join(CATALOGUE)}, "
        f"got {source!r}{guess}; also looked below {root}"
    )
