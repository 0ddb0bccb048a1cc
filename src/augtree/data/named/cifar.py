"""Reads CIFAR-10 and CIFAR-100 in their official binary forms, unpacked or as downloaded."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.bounded import tar_member
from augtree.data.dataset import Dataset
from augtree.data.named.catalogue import CATALOGUE
from augtree.data.named.download import unlike_published
from augtree.data.splits import make_split
from augtree.errors import DataError
from augtree.transforms import Chain, Flip, PadCrop

OFFICIAL = (50_000, 10_000)
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Form:
    """How the files of a set are called, and which label stands where."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    metas: tuple[str, ...]
    """The files with the names of the labels, in the order of a record's bytes."""
    classes: tuple[int, ...]
    """How many there are of each."""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.train, self.test, *self.metas)


CIFAR10 = Form(
    name="cifar10",
    folder="cifar-10-batches-bin",
    archive="cifar-10-binary.tar.gz",
    train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test="test_batch.bin",
    metas=("batches.meta.txt",),
    classes=(10,),
)
CIFAR100 = Form(
    name="cifar100",
    folder="cifar-100-binary",
    archive="cifar-100-binary.tar.gz",
    train=("train.bin",),
    test="test.bin",
    metas=("coarse_label_names.txt", "fine_label_names.txt"),
    classes=(20, 100),
)


def read_cifar(form: Form, root: str | Path, *, seed: int = 0) -> Dataset:
    """A set from below a folder; a tenth of the training pictures, by class, are for validation.

    CIFAR-100 has its fine labels; its column "coarse" has the names of the 20 coarse ones.
    """
    root = Path(root)
    files, notes = find_files(form, root)
    names = [names_of(form, root, meta, files[meta]) for meta in form.metas]
    batches = [records(form, files[name], f"{root}: {name}") for name in form.train]
    held_out = records(form, files[form.test], f"{root}: {form.test}")
    rows, train = np.concatenate([*batches, held_out]), sum(len(batch) for batch in batches)
    bytes_of_labels = len(form.metas)
    labels = rows[:, bytes_of_labels - 1].astype(np.int64)
    split = np.full(len(rows), 2, np.int8)
    split[:train] = make_split(labels[:train], shares=(0.9, 0.1, 0), seed=seed)
    notes += (f"{(split == 1).sum()} training pictures became validation pictures, by class, seed {seed}",)
    if (train, len(held_out)) != OFFICIAL:
        notes += (f"not the official size: {train} + {len(held_out)} pictures instead of 50000 + 10000",)
    return Dataset(
        name=form.name,
        samples=torch.from_numpy(rows[:, bytes_of_labels:].reshape(-1, 3, 32, 32).copy()),
        labels=torch.from_numpy(labels),
        classes=names[-1],
        split=split,
        groups=np.zeros(len(rows), np.int64),
        group_names=("all",),
        preprocess=Chain([Flip(), PadCrop(pad=4, fill=0)]),
        source={"source": form.name, "root": str(root.resolve()), "seed": seed},
        notes=notes,
        columns={"coarse": tuple(names[0][i] for i in rows[:, 0])} if len(names) > 1 else {},
    )


def names_of(form: Form, root: Path, meta: str, content: bytes) -> tuple[str, ...]:
    """The names of the labels."""
    names = tuple(content.decode("utf-8", "replace").split())
    expected = form.classes[form.metas.index(meta)]
    if len(names) != expected:
        raise DataError(f"{root}: {meta} must have {expected} names, got {len(names)}")
    return names


def find_files(form: Form, root: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The content of the files, from the folder or from the archive; and a note if the archive is another one."""
    for folder in (root / form.folder, root):
        if folder.is_dir() and (folder.name == form.folder or (folder / form.test).is_file()):
            found = {name: (folder / name).read_bytes() for name in form.files if (folder / name).is_file()}
            return complete(form, found, folder), ()
    archive = root if root.is_file() else root / form.archive
    if not archive.is_file():
        raise CATALOGUE[form.name].missing(root, f"{form.folder}/ or {form.archive}")
    try:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.isfile() and Path(member.name).name in form.files]
            found = {Path(member.name).name: tar_member(tar, member) for member in members}
    except Exception as error:  # a damaged archive raises many kinds
        page = CATALOGUE[form.name].page
        raise DataError(f"{archive}: must be {form.archive} from {page} ({error})") from error
    return complete(form, found, archive), unlike_published(form.name, [archive])


def complete(form: Form, found: dict[str, bytes], place: Path) -> dict[str, bytes]:
    """The files, if all are there."""
    absent = [name for name in form.files if name not in found]
    if absent:
        raise CATALOGUE[form.name].missing(place, ", ".join(absent))
    return found


def records(form: Form, content: bytes, place: str) -> NDArray[np.uint8]:
    """One row a picture: its labels, then 3x32x32 values."""
    size = len(form.metas) + PIXELS
    if not content or len(content) % size:
        raise DataError(f"{place} must have {size} bytes for each picture, got {len(content)} bytes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, size)
    for column, count in enumerate(form.classes):
        wrong = np.flatnonzero(rows[:, column] >= count)
        if len(wrong):
            got = f"{rows[wrong[0], column]} at picture {wrong[0]}"
            raise DataError(f"{place} must have labels from 0 to {count - 1}, got {got}")
    return rows
