"""Reads CIFAR-10 in its official binary form: cifar-10-batches-bin/, or cifar-10-binary.tar.gz as downloaded."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.splits import make_split
from augtree.errors import DataError
from augtree.transforms import Chain, Flip, PadCrop

PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
FOLDER, ARCHIVE, META = "cifar-10-batches-bin", "cifar-10-binary.tar.gz", "batches.meta.txt"
TRAIN, TEST = tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"
RECORD = 1 + 3 * 32 * 32
OFFICIAL = (50_000, 10_000)


def read_cifar10(root: str | Path, *, seed: int = 0) -> Dataset:
    """CIFAR-10 from below a folder; a tenth of the training pictures, by class, are for validation."""
    files = find_files(Path(root))
    classes = tuple(files[META].decode("utf-8", "replace").split())
    if len(classes) != 10:
        raise DataError(f"{root}: {META} must have 10 names, got {len(classes)}")
    batches = [records(files[name], f"{root}: {name}") for name in TRAIN]
    held_out = records(files[TEST], f"{root}: {TEST}")
    rows, train = np.concatenate([*batches, held_out]), sum(len(batch) for batch in batches)
    labels = rows[:, 0].astype(np.int64)
    split = np.full(len(rows), 2, np.int8)
    split[:train] = make_split(labels[:train], shares=(0.9, 0.1, 0), seed=seed)
    counts = (train, len(held_out))
    notes = [f"{(split == 1).sum()} training pictures became validation pictures, by class, seed {seed}"]
    if counts != OFFICIAL:
        notes.append(f"not the official size: {counts[0]} + {counts[1]} pictures instead of 50000 + 10000")
    return Dataset(
        name="cifar10",
        samples=torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()),
        labels=torch.from_numpy(labels),
        classes=classes,
        split=split,
        groups=np.zeros(len(rows), np.int64),
        group_names=("all",),
        preprocess=Chain([Flip(), PadCrop(pad=4, fill=0)]),
        source={"source": "cifar10", "root": str(Path(root).resolve()), "seed": seed},
        notes=tuple(notes),
    )


def find_files(root: Path) -> dict[str, bytes]:
    """The content of the files, from the folder or from the archive."""
    wanted = (*TRAIN, TEST, META)
    for folder in (root / FOLDER, root):
        if folder.is_dir() and (folder.name == FOLDER or (folder / TEST).is_file()):
            found = {name: (folder / name).read_bytes() for name in wanted if (folder / name).is_file()}
            return complete(found, folder)
    archive = root if root.is_file() else root / ARCHIVE
    if not archive.is_file():
        raise missing(root, f"{FOLDER}/ or {ARCHIVE}")
    try:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.isfile() and Path(member.name).name in wanted]
            streams = {Path(member.name).name: tar.extractfile(member) for member in members}
            found = {name: stream.read() for name, stream in streams.items() if stream is not None}
    except Exception as error:  # a damaged archive raises many kinds
        raise DataError(f"{archive}: must be {ARCHIVE} from {PAGE} ({error})") from error
    return complete(found, archive)


def complete(found: dict[str, bytes], place: Path) -> dict[str, bytes]:
    """The files, if all are there."""
    absent = [name for name in (*TRAIN, TEST, META) if name not in found]
    if absent:
        raise missing(place, ", ".join(absent))
    return found


def missing(place: Path, what: str) -> DataError:
    """The error for files that are not there."""
    expected = f"{FOLDER}/ with data_batch_1.bin to data_batch_5.bin, {TEST} and {META}, or {ARCHIVE}"
    return DataError(f"{place}: must have {what}. CIFAR-10 is {expected}: the binary version from {PAGE}")


def records(content: bytes, place: str) -> NDArray[np.uint8]:
    """One row a picture: its label, then 3x32x32 values."""
    if not content or len(content) % RECORD:
        raise DataError(f"{place} must have {RECORD} bytes for each picture, got {len(content)} bytes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    wrong = np.flatnonzero(rows[:, 0] > 9)
    if len(wrong):
        raise DataError(f"{place} must have labels from 0 to 9, got {rows[wrong[0], 0]} at picture {wrong[0]}")
    return rows
