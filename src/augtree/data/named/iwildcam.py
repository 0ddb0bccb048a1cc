"""Reads iWildCam as WILDS gives it out: iwildcam_v2.0/ with metadata.csv and the pictures in train/."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from augtree.data.dataset import Dataset
from augtree.data.named.catalogue import CATALOGUE
from augtree.data.pictures.readable import Progress
from augtree.data.pictures.tables import (
    Decoding,
    below,
    dataset_of,
    numbers_of,
    read_table,
    some_missing,
    source_of,
)
from augtree.errors import ArgumentError, DataError, one_of, shown, whole_number

COLUMNS = ("split", "location_remapped", "filename", "y")
SCHEMES = {
    "ood": {"train": 0, "val": 1, "test": 2},
    "id": {"train": 0, "id_val": 1, "id_test": 2},
}
"""WILDS' names of the splits: "ood" judges on cameras that were never trained on, "id" on those that were."""
SPLIT_VALUES = ("train", "val", "test", "id_val", "id_test")


def read_iwildcam(
    root: str | Path,
    *,
    cameras: int | None = None,
    judged: str | None = None,
    partial: bool = False,
    size: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Dataset:
    """The camera traps; groups are the cameras, classes the species, splits those of WILDS.

    `judged` chooses between WILDS' two pairs of validation and test pictures: "ood" (other cameras than those of
    training, the default) or "id" (the same cameras). `cameras=3` keeps the three cameras of training with the most
    pictures, and is judged on them ("id"). `partial` leaves out pictures that are not there. `size`, `cache` and
    `progress` are those of `read_folder`.
    """
    if judged is not None:
        one_of("judged", judged, SCHEMES)
    if cameras is not None and judged == "ood":
        raise ArgumentError("judged", 'must be "id" with cameras: the others have no training pictures', judged)
    scheme = SCHEMES["id" if cameras is not None or judged == "id" else "ood"]
    folder = CATALOGUE["iwildcam"].found(Path(root))
    table = read_table(folder / "metadata.csv", COLUMNS)
    check_splits(folder, table["split"])
    species = numbers_of(folder / "metadata.csv", "y", table["y"])
    classes = species_names(folder, max(species) + 1)
    rows = [row for row, name in enumerate(table["split"]) if name in scheme]
    notes = [f"splits of WILDS: {', '.join(scheme)}; {len(species) - len(rows)} pictures of the others are left out"]
    if cameras is not None:
        kept = most_used(table["location_remapped"], table["split"], rows, cameras)
        rows = [row for row in rows if table["location_remapped"][row] in kept]
        notes.append(f"the {cameras} cameras with the most pictures: {', '.join(kept)}")
    files = below([folder / "train"])
    there = some_missing(folder / "train", [table["filename"][row] for row in rows], files, partial)
    if len(there) < len(rows):
        notes.append(f"{len(rows) - len(there)} of {len(rows)} pictures are not there and are left out")
    rows = [rows[i] for i in there]
    paths = [files[table["filename"][row].lower()] for row in rows]
    found = Decoding(size, cache, progress).read(f"{folder.resolve()} {cameras} {judged}", paths)
    return dataset_of(
        found,
        folder,
        paths,
        name="iwildcam" if cameras is None else f"iwildcam[{cameras} cameras]",
        labels=np.array([species[row] for row in rows], np.int64),
        classes=classes,
        split=np.array([scheme[table["split"][row]] for row in rows], np.int8),
        of_group=[f"camera {table['location_remapped'][row]}" for row in rows],
        source=source_of("iwildcam", root, seed, cameras=cameras, judged=judged, size=size, partial=partial),
        notes=notes,
    )


def check_splits(folder: Path, names: tuple[str, ...]) -> None:
    """The splits are those of WILDS."""
    for row, name in enumerate(names):
        if name not in SPLIT_VALUES:
            rule = f"split must be one of {', '.join(SPLIT_VALUES)}"
            raise DataError(f"{folder / 'metadata.csv'} picture {row + 1}: {rule}, got {shown(name)}")


def most_used(camera: tuple[str, ...], split: tuple[str, ...], rows: list[int], count: int) -> list[str]:
    """The cameras that have the most pictures, of those that have some for training."""
    trained = {camera[row] for row in rows if split[row] == "train"}
    whole_number("cameras", count, 1, len(trained))
    found = Counter(camera[row] for row in rows if camera[row] in trained)
    return sorted(trained, key=lambda one: (-found[one], one))[:count]


def species_names(folder: Path, count: int) -> tuple[str, ...]:
    """The names in categories.csv; numbers where there is no such file."""
    path = folder / "categories.csv"
    if not path.is_file():
        return tuple(str(i) for i in range(count))
    table = read_table(path, ("y", "name"))
    # Categories that WILDS left out have no number (or a large one) in this table.
    pairs = zip(table["y"], table["name"], strict=True)
    names = {int(y.removesuffix(".0")): name for y, name in pairs if y.removesuffix(".0").isdigit()}
    absent = [i for i in range(count) if i not in names]
    if absent:
        raise DataError(f"{path}: must have a name for every y below {count}, got none for {absent[0]}")
    found = [names[i] for i in range(count)]
    twice = {name for name, times in Counter(found).items() if times > 1}
    return tuple(f"{name} ({i})" if name in twice else name for i, name in enumerate(found))
