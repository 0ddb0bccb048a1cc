"""Reads Chest X-ray 14 as the NIH gives it out: Data_Entry_2017*.csv, two lists of file names, and pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from augtree.data.dataset import Dataset
from augtree.data.labels import matrix
from augtree.data.named.catalogue import CATALOGUE
from augtree.data.pictures.readable import Progress
from augtree.data.pictures.tables import (
    Columns,
    Decoding,
    below,
    columns_of,
    dataset_of,
    read_table,
    some_missing,
    source_of,
)
from augtree.data.splits import Split, make_split
from augtree.errors import DataError, shown

FINDINGS = (
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis", "Hernia"),
    *("Infiltration", "Mass", "Nodule", "Pleural_Thickening", "Pneumonia", "Pneumothorax"),
)
NO_FINDING = "No Finding"
LISTS = {"train_val_list.txt": 0, "test_list.txt": 2}
COLUMNS = {"patient": ("Patient ID",), "view": ("View Position",), "sex": ("Patient Gender", "Patient Sex")}
"""Further columns, and their names in the two editions of the table."""


def read_chestxray14(
    root: str | Path,
    *,
    partial: bool = False,
    size: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Dataset:
    """The X-rays with their 14 labels; a picture without a finding has none.

    The test pictures are those of test_list.txt; a tenth of the others, whole patients, are for validation. There are
    columns patient, view (from the front or the back) and sex. `partial` leaves out pictures that are not there;
    `size`, `cache` and `progress` are those of `read_folder`.
    """
    folder = CATALOGUE["chestxray14"].found(Path(root))
    table = read_entries(folder)
    files = below(path for path in sorted(folder.glob("images*")) if path.is_dir())
    split, patients = split_of(folder, table), table["patient"]
    there = some_missing(folder, table["Image Index"], files, partial)
    left_out = len(split) - len(there)
    notes = [f"{left_out} of {len(split)} pictures are not there and are left out"] if left_out else []
    labels = matrix([findings_of(folder, table["Finding Labels"][row]) for row in there], FINDINGS)
    split = split[there]
    rows = np.flatnonzero(split == 0)
    clusters = np.array([patients[there[row]] for row in rows])
    if not len(rows):
        raise DataError(f"{folder}: must have pictures of train_val_list.txt, got none")
    split[rows] = make_split(labels[rows], clusters=clusters, shares=(0.9, 0.1, 0), seed=seed)
    notes.append(
        f"{(split == 1).sum()} pictures of train_val_list.txt, whole patients, are for validation, seed {seed}"
    )
    paths = [files[table["Image Index"][row].lower()] for row in there]
    return dataset_of(
        Decoding(size, cache, progress).read(str(folder.resolve()), paths),
        folder,
        paths,
        name="chestxray14",
        labels=labels,
        classes=FINDINGS,
        split=split,
        of_group=["all"] * len(there),
        fill=0,
        source=source_of("chestxray14", root, seed, size=size, partial=partial),
        notes=notes,
        columns={name: [table[name][row] for row in there] for name in COLUMNS},
    )


def read_entries(folder: Path) -> Columns:
    """The table of the pictures."""
    path = sorted(folder.glob("Data_Entry_2017*.csv"))[-1]
    heads = columns_of(path)
    spelled = {
        name: next((one for one in spellings if one in heads), spellings[0]) for name, spellings in COLUMNS.items()
    }
    table = read_table(path, ("Image Index", "Finding Labels", *spelled.values()))
    twice = len(table["Image Index"]) - len(set(table["Image Index"]))
    if twice:
        raise DataError(f"{path}: must have each picture once, got {twice} more than once")
    return {**table, **{name: table[column] for name, column in spelled.items()}}


def findings_of(folder: Path, cell: str) -> list[str]:
    """The labels of a cell; "No Finding" is none."""
    found = [] if cell == NO_FINDING else cell.split("|")
    for name in found:
        if name not in FINDINGS:
            rule = f"a finding must be one of {', '.join(FINDINGS)} or {NO_FINDING}"
            raise DataError(f"{folder}: {rule}, got {shown(cell)}")
    return found


def split_of(folder: Path, table: Columns) -> Split:
    """0 and 2 as the two lists say; no patient may be in both."""
    place: dict[str, int] = {}
    for name, number in LISTS.items():
        path = folder / name
        if not path.is_file():
            raise CATALOGUE["chestxray14"].missing(folder, name)
        place.update(dict.fromkeys(path.read_text("utf-8").split(), number))
    absent = [name for name in table["Image Index"] if name not in place]
    if absent:
        rule = f"every picture must stand in {' or '.join(LISTS)}"
        raise DataError(f"{folder}: {rule}, but {len(absent)} do not, the first is {absent[0]}")
    split = np.array([place[name] for name in table["Image Index"]], np.int8)
    whose = np.array(table["patient"])
    both = set(whose[split == 0].tolist()) & set(whose[split == 2].tolist())
    if both:
        raise DataError(f"{folder}: a patient must be in one of the lists only, got {min(both)} in both")
    return split
