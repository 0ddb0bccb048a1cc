"""Finds a data set by its name or its path."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from augtree.data.cifar import read_cifar10
from augtree.data.dataset import Dataset
from augtree.data.digits import read_digits
from augtree.data.folder import read_folder
from augtree.data.tu import is_tu, tu_dataset
from augtree.errors import ArgumentError, DataError, nearest

TU_NAMES = ("COLLAB", "DD", "IMDB-BINARY", "MUTAG", "NCI1", "PROTEINS", "REDDIT-BINARY")
TU_PAGE = "https://chrsmrrs.github.io/datasets/"
NAMES = ("digits", "cifar10", *TU_NAMES)


def load(
    source: str | Path,
    root: str | Path | None = None,
    *,
    size: int | None = None,
    split_by: str | None = None,
    train: int | None = None,
    val: int | None = None,
    fill: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A data set by its name (digits, cifar10, a TU set), or from a folder or zip file of pictures or of a TU set.

    `root` is where named sets lie (default: the environment's AUGTREE_DATA, or "data"). `size` and `split_by` are for
    pictures in folders, see `read_folder`; `train` and `val` keep that many labels, see `Dataset.few`; `fill` is what
    geometry should uncover.
    """
    place = Path(root) if root is not None else Path(os.environ.get("AUGTREE_DATA") or "data")
    found = find(str(source), place, seed, size=size, split_by=split_by).few(train, val, seed)
    if fill is None:
        return found
    return replace(found, fill=fill, source=found.source and {**found.source, "fill": fill})


def find(source: str, root: Path, seed: int, **options: Any) -> Dataset:
    """The data set that is meant."""
    if source in ("digits", "cifar10"):
        refuse(source, options)
        return read_digits(seed=seed) if source == "digits" else read_cifar10(root, seed=seed)
    path = next((path for path in places(source, root) if path.exists()), None)
    if path is None:
        raise unknown(source, root)
    if is_tu(path):
        refuse(source, options)
        return tu_dataset(path, seed=seed)
    return read_folder(path, seed=seed, **options)


def refuse(source: str, options: dict[str, Any]) -> None:
    """Nothing that is for pictures in folders only may be given."""
    for name, value in options.items():
        if value is not None:
            raise ArgumentError(name, f"must be left out for {source}: it is for pictures in folders", value)


def places(source: str, root: Path) -> list[Path]:
    """Where a path or a name may lie, the likeliest first."""
    below = [root / part / f"{source}{end}" for part in ("tu", "", "images") for end in (".zip", "")]
    return [Path(source), *below]


def unknown(source: str, root: Path) -> DataError:
    """The error for what is not there."""
    if source in TU_NAMES:
        wanted = ", ".join(str(path) for path in places(source, root)[1:4])
        return DataError(f"{source}: must be at {wanted} or at a path that is given (download: {TU_PAGE})")
    guess = nearest(source, NAMES) or nearest(source.upper(), NAMES) or nearest(source.lower(), NAMES)
    return DataError(
        f"source must be a folder, a zip file or one of {', '.join(NAMES)}, "
        f"got {source!r}{guess}; also looked below {root}"
    )
