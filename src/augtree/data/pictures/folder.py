"""Reads pictures from a folder or a zip file: with an index.csv, or with one subfolder a class."""

from __future__ import annotations

import csv
import io
import os
import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.labels import in_order, matrix, numbered
from augtree.data.pictures.decode import Progress, Readable, readable_pictures
from augtree.data.pictures.unreadable import check_left_out, note_for
from augtree.data.splits import SPLIT_NAMES, Split, complete_split, make_split, split_number
from augtree.errors import ArgumentError, DataError, nearest, shown

INDEX = "index.csv"
KNOWN = ("path", "label", "group", "split")
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

    Either index.csv has the columns path and label, perhaps group and split, and any others; several labels of one
    picture are separated by `;`. Or each class has its folder, perhaps below train, val and test. `size` is the side
    of the square that pictures are scaled and cut to; `split_by` is a column (patient, camera) whose values are kept
    together in a new split. Sets of 256 MiB and more are decoded once, into a folder of the disk ($AUGTREE_CACHE, or
    ~/.cache/augtree), smaller ones too where `cache` names a folder; `progress(done, of)` is told meanwhile.
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
    )


@dataclass(frozen=True)
class Files:
    """The files below a folder or in a zip file, by their paths from where the data set begins."""

    place: str
    names: frozenset[str]
    base: Path | None
    """The folder, or None for a zip file."""
    archive: zipfile.ZipFile | None
    prefix: str
    state: str = ""
    """Changes with the zip file. One that is fetched again, since it was damaged, has the checksums it had."""

    @staticmethod
    def open(path: Path, stack: ExitStack) -> Files:
        """List the files; a folder that holds everything is stepped into."""
        archive = None
        if path.is_dir():
            try:
                found = list(files_below(path))
            except OSError as error:
                raise DataError(f"{path}: every folder in it must be readable ({error})") from error
        else:
            try:
                archive = stack.enter_context(zipfile.ZipFile(path))
            except (OSError, zipfile.BadZipFile) as error:
                raise DataError(f"{path}: must be a folder or a zip file ({error})") from error
            found = [name for name in archive.namelist() if not name.endswith("/")]
        names = [name for name in found if not hidden(name)]
        prefix = common_top(names)
        inside = frozenset(name[len(prefix) :] for name in names)
        state = state_of(path.stat()) if archive else ""
        return Files(str(path), inside, None if archive else path, archive, prefix, state)

    def opener(self, name: str) -> PictureIn:
        """A function that opens a file, or fails as a missing file does."""
        return PictureIn(name, self)

    def find(self, name: str) -> str:
        """A path of index.csv as the file is called; the strokes of Windows serve as well."""
        for spelled in (name, name.replace("\\", "/")):
            inside = posixpath.normpath(spelled)
            if inside in self.names:
                return inside
            if inside.startswith(("/", "../")) or inside == ".." or Path(spelled).drive:
                raise ValueError("it is outside of the folder")
        raise FileNotFoundError(name)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.opener(name)() as file:
            return file.read()


def files_below(folder: str | Path, before: str = "") -> Iterator[str]:
    """The paths of the files in a folder and the folders below it; links to folders are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path, f"{before}{entry.name}/")
            elif entry.is_file():
                yield f"{before}{entry.name}"


def state_of(about: os.stat_result) -> str:
    """Size and time of change of a file."""
    return f"{about.st_size} {about.st_mtime_ns}"


@dataclass(frozen=True)
class PictureIn:
    """Opens one of the files."""

    name: str
    files: Files

    def __call__(self) -> BinaryIO:
        """The open file."""
        actual, archive = self.files.prefix + self.files.find(self.name), self.files.archive
        if archive is not None:
            return io.BytesIO(archive.read(actual))
        return cast(Path, self.files.base).joinpath(actual).open("rb")

    def stamp(self) -> str:
        """Changes when the file does: by its size and its time of change; in a zip file, by its checksum too."""
        try:
            actual, archive = self.files.prefix + self.files.find(self.name), self.files.archive
            if archive is not None:
                member = archive.getinfo(actual)
                return f"{self.name} {member.file_size} {member.CRC:08x} {self.files.state}"
            about = cast(Path, self.files.base).joinpath(actual).stat()
        except (OSError, ValueError) as error:
            return f"{self.name} {type(error).__name__}"
        return f"{self.name} {state_of(about)}"


def hidden(name: str) -> bool:
    """What the system puts beside the files."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def common_top(names: Sequence[str]) -> str:
    """The folders that hold everything, as a prefix; never a split's."""
    prefix = ""
    while True:
        tops = {name[len(prefix) :].partition("/")[0] for name in names}
        only = next(iter(tops), "")
        # A file at the top, several folders, or folders that have a meaning: here the data set begins.
        holds_folders = any("/" in name[len(prefix) + len(only) + 1 :] for name in names)
        index = f"{prefix}{only}/{INDEX}" in names
        if (
            len(tops) != 1
            or f"{prefix}{only}" in names
            or split_number(only) is not None
            or not (holds_folders or index)
        ):
            return prefix
        prefix += f"{only}/"


def indexed(files: Files) -> Table:
    """The table of index.csv."""
    place = f"{files.place}: {INDEX}"
    rows = lines_of(files, place)
    head = [cell.strip() for cell in rows[0][1]]
    head = [cell.lower() if cell.lower() in KNOWN else cell for cell in head]
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


def labels_from(table: Table) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The labels as numbers, or as a matrix of 0 and 1 where any has a `;`, and the classes."""
    sets = [
        [part.strip() for part in label.split(";") if part.strip()] if table.several else [label]
        for label in table.labels
    ]
    classes = in_order(name for names in sets for name in names)
    if len(classes) < 2:
        raise DataError(f"{table.place}: must have at least 2 classes, got {', '.join(classes) or 'none'}")
    labels = matrix(sets, classes) if table.several else numbered(table.labels, classes)
    return labels, classes


def split_for(
    table: Table, labels: NDArray[Any], groups: NDArray[np.int64], split_by: str | None, seed: int
) -> tuple[Split, tuple[str, ...]]:
    """The split that is given, completed; or one that is made; and what to say about it."""
    if split_by is not None:
        units = units_from(table, split_by)
        try:
            made = make_split(labels, groups=None if split_by == "group" else groups, units=units, seed=seed)
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


def units_from(table: Table, split_by: str) -> Sequence[str]:
    """The values that stay together."""
    columns = {**table.columns, **({"group": table.groups} if table.groups is not None else {})}
    if split_by not in columns:
        known = ", ".join(columns) or "none"
        rule = f"must be a column of {INDEX} (there: {known}){nearest(split_by, columns)}"
        raise ArgumentError("split_by", rule, split_by)
    return columns[split_by]


def check_training(table: Table, labels: NDArray[Any], classes: tuple[str, ...], split: Split) -> None:
    """Every class has a training sample."""
    train = labels[split == 0]
    seen = train.any(axis=0) if labels.ndim == 2 else np.isin(np.arange(len(classes)), train)
    unseen = [name for name, there in zip(classes, seen, strict=True) if not there]
    if unseen:
        some = ", ".join(unseen[:5]) + (", ..." if len(unseen) > 5 else "")
        raise DataError(
            f"{table.place}: every class must have a training sample, but {len(unseen)} have none: {some}"
        )


def kept_at(found: Readable) -> tuple[str, ...]:
    """Where decoded pictures lie, if not in memory."""
    if found.kept is None:
        return ()
    return (f"the decoded pictures are kept in {found.kept} ({found.samples.numel() / 2**20:.0f} MiB)",)
