"""Reads eye fundus pictures with grades of diabetic retinopathy: Messidor-2, APTOS 2019, Jinchi, and all together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.labels import numbered
from augtree.data.named.catalogue import CATALOGUE, UNION
from augtree.data.pictures.readable import Progress, Readable
from augtree.data.pictures.tables import Decoding, below, dataset_of, read_table, some_missing, source_of
from augtree.data.splits import make_split
from augtree.errors import ArgumentError, DataError, shown

GRADES = ("0", "1", "2", "3", "4")
DAVIS = {"ndr": "0", "sdr": "1", "ppdr": "3", "pdr": "4"}
"""Jinchi's modified Davis scale on the five grades; sdr covers both 1 and 2."""
FOUR_GRADES = {"0": "0", "1": "1-2", "2": "1-2", "3": "3", "4": "4"}
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")


@dataclass(frozen=True)
class Hospital:
    """What the tables of one hospital say."""

    name: str
    paths: tuple[Path, ...]
    grades: tuple[str, ...]
    patients: tuple[str, ...] | None
    """Whose picture each is, where that is published."""
    notes: tuple[str, ...] = ()


def read_hospital(
    name: str,
    root: str | Path,
    *,
    partial: bool = False,
    size: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Dataset:
    """The pictures of one hospital with their published grades; those of a patient stay in one split."""
    part, how = READERS[name](Path(root), partial), Decoding(size, cache, progress)
    return assembled(name, root, [part], tuple(DAVIS) if name == "jinchi" else GRADES, how, seed, partial=partial)


def read_retinopathy(
    root: str | Path,
    *,
    grades: int = 5,
    partial: bool = False,
    size: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Dataset:
    """The three hospitals in one set, each a group.

    On five grades, as the paper has them, Jinchi's sdr is grade 1, and Jinchi has no grade 2; with `grades=4`, the
    others' grades 1 and 2 are one class, as they are for Jinchi.
    """
    if grades not in (4, 5):
        raise ArgumentError("grades", "must be 4 or 5", grades)
    parts, how = [READERS[name](Path(root), partial) for name in UNION], Decoding(size, cache, progress)
    scale = FOUR_GRADES if grades == 4 else {grade: grade for grade in GRADES}
    same = [replace(part, grades=tuple(scale[DAVIS.get(grade, grade)] for grade in part.grades)) for part in parts]
    classes = tuple(dict.fromkeys(scale.values()))
    note = "jinchi's sdr is grade 1" if grades == 5 else "grades 1 and 2 are one class, as jinchi's sdr"
    options = {"partial": partial, "grades": None if grades == 5 else grades}
    data = assembled("retinopathy", root, same, classes, how, seed, (note,), **options)
    return data if grades == 5 else replace(data, name="retinopathy[4 grades]")


def messidor2(root: Path, partial: bool) -> Hospital:
    """The adjudicated grades 0 to 4 of Kaggle's messidor_data.csv on the pictures of ADCIS."""
    folder = CATALOGUE["messidor2"].found(root)
    path = folder / "messidor_data.csv"
    table = read_table(path, ("image_id", "adjudicated_dr_grade"))
    graded = [row for row, grade in enumerate(table["adjudicated_dr_grade"]) if grade]
    names = [table["image_id"][row] for row in graded]
    grades = [grade_of(path, table["adjudicated_dr_grade"][row], GRADES) for row in graded]
    notes = [f"messidor2: {len(table['image_id']) - len(graded)} pictures without a grade are left out"]
    notes = notes if len(graded) < len(table["image_id"]) else []
    partner = eyes(folder / "messidor-2.csv")
    if not partner:
        notes.append("messidor2: without messidor-2.csv, the two eyes of a patient may stand in different splits")
    patients = tuple(partner.get(Path(name).stem.lower(), Path(name).stem.lower()) for name in names)
    found, there, missing_note = pictures_of("messidor2", folder, names, partial)
    return Hospital(
        "messidor2",
        found,
        tuple(grades[i] for i in there),
        tuple(patients[i] for i in there) if partner else None,
        (*notes, *missing_note),
    )


def eyes(path: Path) -> dict[str, str]:
    """For each picture, its patient: the name of the left one of the pair."""
    if not path.is_file():
        return {}
    table = read_table(path, ("left", "right"), delimiter=";")
    pairs = [(Path(a).stem.lower(), Path(b).stem.lower()) for a, b in zip(*table.values(), strict=True)]
    return {eye: left or right for left, right in pairs for eye in (left, right) if eye}


def aptos2019(root: Path, partial: bool) -> Hospital:
    """The training pictures of the competition, the only ones with published grades (0 to 4)."""
    folder = CATALOGUE["aptos2019"].found(root)
    path = folder / "train.csv"
    table = read_table(path, ("id_code", "diagnosis"))
    grades = [grade_of(path, grade, GRADES) for grade in table["diagnosis"]]
    found, there, missing_note = pictures_of("aptos2019", folder, table["id_code"], partial, ("train_images",))
    return Hospital("aptos2019", found, tuple(grades[i] for i in there), None, missing_note)


def jinchi(root: Path, partial: bool) -> Hospital:
    """The pictures of Jichi Medical University, with the Davis grades of the single picture.

    A name begins with the number of the patient.
    """
    folder = CATALOGUE["jinchi"].found(root)
    path = folder / "list.csv"
    table = read_table(path, ("Image", "Davis_grading_of_one_figure"))
    grades = [grade_of(path, grade.lower(), tuple(DAVIS)) for grade in table["Davis_grading_of_one_figure"]]
    found, there, missing_note = pictures_of("jinchi", folder, table["Image"], partial)
    patients = tuple(table["Image"][i].partition("_")[0] for i in there)
    return Hospital("jinchi", found, tuple(grades[i] for i in there), patients, missing_note)


READERS: dict[str, Callable[[Path, bool], Hospital]] = {
    "aptos2019": aptos2019,
    "jinchi": jinchi,
    "messidor2": messidor2,
}


def grade_of(path: Path, cell: str, known: Sequence[str]) -> str:
    """A grade as it is called."""
    grade = cell.removesuffix(".0")
    if grade not in known:
        raise DataError(f"{path}: a grade must be one of {', '.join(known)}, got {shown(cell)}")
    return grade


def pictures_of(
    name: str, folder: Path, names: Sequence[str], partial: bool, inside: tuple[str, ...] = ("",)
) -> tuple[tuple[Path, ...], list[int], tuple[str, ...]]:
    """The files of pictures that a table names, with or without an ending; which rows have one; and what to say."""
    files = {
        Path(file).stem: path
        for file, path in below([folder / part for part in inside]).items()
        if path.suffix.lower() in SUFFIXES
    }
    stems = [Path(one).stem.lower() if Path(one).suffix.lower() in SUFFIXES else one.lower() for one in names]
    there = some_missing(folder, stems, files, partial)
    left_out = len(names) - len(there)
    notes = (f"{name}: {left_out} of {len(names)} pictures are not there and are left out",) if left_out else ()
    return tuple(files[stems[i]] for i in there), there, notes


def assembled(
    name: str,
    root: str | Path,
    parts: Sequence[Hospital],
    classes: tuple[str, ...],
    how: Decoding,
    seed: int,
    notes: tuple[str, ...] = (),
    **given: Any,
) -> Dataset:
    """One data set of some hospitals, 60/20/20 by grade and hospital, every patient in one split."""
    paths = [path for part in parts for path in part.paths]
    found = how.read(f"{Path(root).resolve()} {name}", paths)
    labels = numbered([grade for part in parts for grade in part.grades], classes)
    of_group = [part.name for part in parts for _ in part.paths]
    groups = numbered(of_group, tuple(sorted(set(of_group))))
    clusters, twins = clusters_of(parts, found)
    split, rows = np.zeros(len(paths), np.int8), found.rows
    split[rows] = make_split(labels[rows], groups=groups[rows], clusters=clusters[rows], seed=seed)
    counts = "/".join(str(int((split[rows] == one).sum())) for one in range(3))
    notes = (*notes, *(note for part in parts for note in part.notes))
    if twins:
        notes += (f"{twins} pictures of unknown patients are equal to another one: equal ones stay together",)
    return dataset_of(
        found,
        Path(root),
        paths,
        name=name,
        labels=labels,
        classes=classes,
        split=split,
        of_group=of_group,
        fill=0,
        source=source_of(name, root, seed, size=how.size, **given),
        notes=(*notes, f"split made: {counts} by grade and hospital, each patient in one of them, seed {seed}"),
    )


def clusters_of(parts: Sequence[Hospital], found: Readable) -> tuple[NDArray[np.str_], int]:
    """What must stay together: a patient's pictures or, where patients are unknown, equal pictures."""
    place = {int(row): i for i, row in enumerate(found.rows)}
    clusters: list[str] = []
    for part in parts:
        start = len(clusters)
        if part.patients is not None:
            clusters += [f"{part.name}/{patient}" for patient in part.patients]
        else:
            rows = range(start, start + len(part.paths))
            clusters += [content(found, place[row]) if row in place else f"row {row}" for row in rows]
    contents = Counter(cluster for cluster in clusters if cluster.startswith("equal to "))
    return np.array(clusters), sum(count - 1 for count in contents.values())


def content(found: Readable, row: int) -> str:
    """What a picture has in common with equal ones alone."""
    return f"equal to {hashlib.sha256(found.samples[row].numpy().tobytes()).hexdigest()}"
