"""Reads the csv tables and the folders of pictures that publishers give out."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.labels import numbered
from augtree.data.pictures.files import state_of
from augtree.data.pictures.readable import Progress, Readable, kept_at, readable_pictures
from augtree.data.pictures.unreadable import check_left_out, note_for
from augtree.errors import DataError, shown

Columns = dict[str, tuple[str, ...]]


def read_table(path: Path, columns: Sequence[str], *, delimiter: str = ",") -> Columns:
    """These columns of a csv file, without spaces around; other columns are left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: must be a table in UTF-8 ({error})") from error
    head = [cell.strip() for cell in rows[0][1]] if rows else []
    absent = [name for name in columns if name not in head]
    if absent:
        raise DataError(f"{path}: must have the column {absent[0]}, got {shown(delimiter.join(head), 200)}")
    for line, cells in rows[1:]:
        if len(cells) != len(head):
            raise DataError(f"{path} line {line}: must have {len(head)} cells, got {len(cells)}")
    if len(rows) < 2:
        raise DataError(f"{path}: must have a line for each picture, got none")
    places = {name: head.index(name) for name in columns}
    return {name: tuple(cells[i].strip() for _, cells in rows[1:]) for name, i in places.items()}


def columns_of(path: Path) -> list[str]:
    """The names of the columns of a csv file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [cell.strip() for cell in next(csv.reader(file), [])]


def numbers_of(path: Path, name: str, cells: Sequence[str]) -> list[int]:
    """A column as whole numbers from 0; 3.0 counts as one."""
    out = []
    for row, cell in enumerate(cells):
        whole = cell.removesuffix(".0")
        if not (whole.isascii() and whole.isdigit()):
            raise DataError(f"{path} picture {row + 1}: {name} must be a whole number, got {shown(cell)}")
        out.append(int(whole))
    return out


def below(folders: Iterable[Path]) -> dict[str, Path]:
    """The files in folders and the folders below them, by their names in small letters."""
    found: dict[str, Path] = {}
    for folder in folders:
        for place, _, files in os.walk(folder):
            for name in files:
                found.setdefault(name.lower(), Path(place) / name)
    return found


def some_missing(place: Path, names: Sequence[str], files: Mapping[str, Path], partial: bool) -> list[int]:
    """The rows whose pictures are there. Where some are missing, that is an error unless it is `partial`."""
    rows = [row for row, name in enumerate(names) if name.lower() in files]
    if len(rows) == len(names) or (partial and rows):
        return rows
    there = set(rows)
    first = next(name for row, name in enumerate(names) if row not in there)
    hint = "; partial=True leaves them out" if rows else ""
    raise DataError(
        f"{place}: must have all {len(names)} pictures of its table, but {len(names) - len(rows)} are missing, "
        f"the first is {shown(first, 200)[1:-1]}{hint}"
    )


@dataclass(frozen=True)
class PictureAt:
    """Opens a picture."""

    path: Path

    def __call__(self) -> BinaryIO:
        """The open file."""
        return self.path.open("rb")

    def stamp(self) -> str:
        """Changes when the file does."""
        try:
            return f"{self.path} {state_of(self.path.stat())}"
        except OSError as error:
            return f"{self.path} {type(error).__name__}"


@dataclass(frozen=True)
class Decoding:
    """How pictures are to be decoded, as `read_folder` has it."""

    size: int | None = None
    cache: str | Path | None = None
    progress: Progress | None = None

    def read(self, of: str, paths: Sequence[Path]) -> Readable:
        """The pictures that can be read; `of` names what they are the pictures of."""
        openers = [PictureAt(path) for path in paths]
        return readable_pictures(openers, self.size, cache=self.cache, of=of, progress=self.progress)


def dataset_of(
    found: Readable,
    place: Path,
    paths: Sequence[Path],
    *,
    labels: NDArray[Any],
    classes: tuple[str, ...],
    split: NDArray[np.int8],
    of_group: Sequence[str],
    notes: Sequence[str],
    columns: Mapping[str, Sequence[str]] = MappingProxyType({}),
    **more: Any,
) -> Dataset:
    """A data set of the pictures that can be read; all that is given has a value for each path."""
    group_names = tuple(sorted(set(of_group)))
    groups, names = numbered(of_group, group_names), [str(path) for path in paths]
    check_left_out(str(place), names, found.problems, labels, classes, split, groups, group_names)
    rows = found.rows
    return Dataset(
        samples=found.samples,
        labels=torch.from_numpy(labels[rows]),
        classes=classes,
        split=split[rows],
        groups=groups[rows],
        group_names=group_names,
        notes=(*notes, *found.notes, *note_for(names, found.problems, found.kept), *kept_at(found)),
        columns={name: tuple(column[row] for row in rows) for name, column in columns.items()},
        files=tuple(names[row] for row in rows),
        **more,
    )


def source_of(name: str, root: str | Path, seed: int, **given: Any) -> dict[str, Any]:
    """What `load` needs to give a set again; options that were left out are not named."""
    kept = {key: value for key, value in given.items() if value not in (None, False)}
    return {"source": name, "root": str(Path(root).resolve()), **kept, "seed": seed}
