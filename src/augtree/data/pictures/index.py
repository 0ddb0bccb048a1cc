"""What a folder of pictures says about them: the table of its index.csv, or the names of its subfolders."""

from __future__ import annotations

import csv
import io
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from augtree.data.pictures.files import INDEX, Files
from augtree.data.splits import SPLIT_NAMES, Split, split_number
from augtree.errors import DataError, nearest, shown

KNOWN = ("path", "label", "group", "split")
OUTLINES = ("mask", "box")
"""Columns that say where the object of a picture is."""
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True)
class Table:
    """What index.csv says, or what the names of the folders say."""

    place: str
    where: Sequence[str]
    """How to name each row in a message."""
    paths: Sequence[str]
    labels: Sequence[str]
    several: bool = False
    """Whether a label is a list of labels, separated by `;`."""
    groups: Sequence[str] | None = None
    split: Split | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def indexed(files: Files) -> Table:
    """The table of index.csv."""
    place = f"{files.place}: {INDEX}"
    rows = lines_of(files, place)
    head = [cell.strip() for cell in rows[0][1]]
    head = [cell.lower() if cell.lower() in (*KNOWN, *OUTLINES) else cell for cell in head]
    absent = [name for name in ("path", "label") if name not in head]
    if absent:
        raise DataError(
            f"{place} must have the columns path and label, separated by commas, got {shown(','.join(head))}"
        )
    twice = [name for name, count in Counter(head).items() if count > 1]
    if twice:
        raise DataError(f"{place} must have each column once, got {twice[0]} twice")
    if len(rows) == 1:
        raise DataError(f"{place} must have a line for each picture, got none")
    for line, cells in rows[1:]:
        if len(cells) != len(head):
            raise DataError(f"{place} line {line} must have {len(head)} cells, got {len(cells)}")
    where = [f"line {line}" for line, _ in rows[1:]]
    columns = {name: tuple(cells[i].strip() for _, cells in rows[1:]) for i, name in enumerate(head)}
    several = any(";" in label for label in columns["label"])
    for name in ("path", "group", *(() if several else ("label",))):
        refuse_empty(place, name, columns.get(name, ()), where)
    refuse_doubles(place, columns["path"], where)
    return Table(
        place=place,
        where=where,
        paths=columns["path"],
        labels=columns["label"],
        several=several,
        groups=columns.get("group"),
        split=split_from(place, columns.get("split", ()), where),
        columns={name: column for name, column in columns.items() if name not in KNOWN},
    )


def lines_of(files: Files, place: str) -> list[tuple[int, list[str]]]:
    """The rows of index.csv with the numbers of their lines."""
    try:
        text = files.read(INDEX).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{place} must be UTF-8 ({error}): save it as CSV UTF-8") from error
    except Exception as error:  # a damaged zip file raises many kinds
        raise DataError(f"{place} cannot be read ({error})") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise DataError(f"{place} line {reader.line_num} must be CSV ({error})") from error
    if not rows:
        raise DataError(f"{place} must have the columns path and label, got an empty file")
    return rows


def refuse_empty(place: str, name: str, cells: Sequence[str], where: Sequence[str]) -> None:
    """No cell of this column may be empty."""
    empty = [row for row, cell in enumerate(cells) if not cell]
    if empty:
        raise DataError(f"{place} {where[empty[0]]}: {name} must not be empty ({len(empty)} such lines)")


def refuse_doubles(place: str, paths: Sequence[str], where: Sequence[str]) -> None:
    """No picture may stand in the table twice."""
    first: dict[str, str] = {}
    for path, line in zip(paths, where, strict=True):
        same = posixpath.normpath(path)
        if same in first:
            raise DataError(f"{place} {line}: each path must be there once, got {shown(path)}, as in {first[same]}")
        first[same] = line


def split_from(place: str, cells: Sequence[str], where: Sequence[str]) -> Split | None:
    """The split that the table gives; None where the column is missing or empty."""
    if not any(cells):
        return None
    numbers = [split_number(cell) for cell in cells]
    for cell, number, line in zip(cells, numbers, where, strict=True):
        if number is None:
            guess = nearest(cell.lower(), SPLIT_NAMES)
            raise DataError(
                f"{place} {line}: split must be one of {', '.join(SPLIT_NAMES)}, got {shown(cell)}{guess}"
            )
    return np.array(numbers, np.int8)


def by_folders(files: Files) -> Table:
    """The table of a folder whose subfolders are the classes, perhaps below train, val and test."""
    pictures = sorted(name for name in files.names if Path(name).suffix.lower() in SUFFIXES)
    tops = {name.partition("/")[0] for name in pictures if "/" in name}
    named = sorted(top for top in tops if split_number(top) is not None)
    splits = bool(tops) and len(named) == len(tops)
    if named and not splits:
        others = ", ".join(sorted(tops - {*named}))
        raise DataError(
            f"{files.place}: its folders must all be classes or all be splits, got {', '.join(named)} beside {others}"
        )
    depth = 2 if splits else 1
    used = [name for name in pictures if name.count("/") >= depth]
    if not used:
        raise DataError(
            f"{files.place}: must have {INDEX}, or a folder for each class with pictures in it "
            f"(perhaps below train, val and test), got {len(files.names)} files and neither"
        )
    ignored = len(files.names) - len(used)
    parts = [name.split("/") for name in used]
    return Table(
        place=files.place,
        where=[""] * len(used),
        paths=used,
        labels=[part[depth - 1] for part in parts],
        split=np.array([split_number(part[0]) for part in parts], np.int8) if splits else None,
        notes=(f"{ignored} files that are no pictures in a class folder are left out",) if ignored else (),
    )
