"""Reads MNIST and Fashion-MNIST in their official idx form, packed or not."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.bounded import gunzip
from augtree.data.dataset import Dataset
from augtree.data.named.catalogue import CATALOGUE, IDX_FILES
from augtree.data.named.download import unlike_published
from augtree.data.splits import make_split
from augtree.errors import DataError
from augtree.transforms import Chain, Flip, PadCrop

OFFICIAL = (60_000, 10_000)
CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
CLASSES = {"mnist": tuple("0123456789"), "fashion-mnist": CLOTHES}
PREPROCESS = {"mnist": None, "fashion-mnist": Chain([Flip(), PadCrop(pad=4, fill=0)])}


def read_idx_set(name: str, root: str | Path, *, seed: int = 0) -> Dataset:
    """One of the two sets; a tenth of the training pictures, by class, are for validation."""
    root = Path(root)
    folder = CATALOGUE[name].found(root)
    paths = [find_file(folder, file) for file in IDX_FILES]
    absent = [file for file, path in zip(IDX_FILES, paths, strict=True) if path is None]
    if absent:
        raise CATALOGUE[name].missing(folder, ", ".join(absent))
    there = [path for path in paths if path is not None]
    train_x, train_y, test_x, test_y = (read_idx(path) for path in there)
    check_pair(there[0], train_x, there[1], train_y)
    check_pair(there[2], test_x, there[3], test_y)
    if train_x.shape[1:] != test_x.shape[1:]:
        got = f"{list(train_x.shape[1:])} and {list(test_x.shape[1:])}"
        raise DataError(f"{folder}: training and test pictures must be of one size, got {got}")
    train = make_split(train_y, shares=(0.9, 0.1, 0), seed=seed)
    notes = [f"{(train == 1).sum()} training pictures became validation pictures, by class, seed {seed}"]
    if (len(train_x), len(test_x)) != OFFICIAL:
        notes.append(f"not the official size: {len(train_x)} + {len(test_x)} pictures instead of 60000 + 10000")
    return Dataset(
        name=name,
        samples=torch.from_numpy(np.concatenate([train_x, test_x])[:, None]),
        labels=torch.from_numpy(np.concatenate([train_y, test_y]).astype(np.int64)),
        classes=CLASSES[name],
        split=np.concatenate([train, np.full(len(test_x), 2, np.int8)]),
        groups=np.zeros(len(train_x) + len(test_x), np.int64),
        group_names=("all",),
        preprocess=PREPROCESS[name],
        fill=0,
        source={"source": name, "root": str(root.resolve()), "seed": seed},
        notes=(*unlike_published(name, there), *notes),
    )


def find_file(folder: Path, name: str) -> Path | None:
    """A file, packed or not; some unpack it with a dot in place of a stroke."""
    dotted = ".idx".join(name.rsplit("-idx", 1))
    names = (name, f"{name}.gz", dotted, f"{dotted}.gz")
    return next((folder / one for one in names if (folder / one).is_file()), None)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of an idx file of bytes: two zeros, the type, the number of sides, the sides, the values."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gunzip(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: must be a whole file, packed by gzip if it ends in .gz ({error})") from error
    if content[:3] != b"\x00\x00\x08" or len(content) < 4 + 4 * content[3]:
        raise DataError(f"{path}: must begin as an idx file of bytes does, 00 00 08, got {content[:4].hex(' ')}")
    start = 4 + 4 * content[3]
    shape = [int(side) for side in np.frombuffer(content[4:start], ">u4")]
    expected = int(np.prod(shape, dtype=np.int64))
    if len(content) - start != expected:
        raise DataError(f"{path}: must have {expected} values for its shape {shape}, got {len(content) - start}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def check_pair(picture_file: Path, pictures: NDArray[np.uint8], label_file: Path, labels: NDArray[np.uint8]) -> None:
    """Pictures [N,H,W] and as many labels from 0 to 9."""
    if pictures.ndim != 3 or not pictures.size:
        raise DataError(f"{picture_file}: must be pictures [N,H,W], got {list(pictures.shape)}")
    if labels.shape != pictures.shape[:1]:
        raise DataError(f"{label_file}: must have {len(pictures)} labels, got {list(labels.shape)}")
    if labels.max() > 9:
        raise DataError(f"{label_file}: must have labels from 0 to 9, got {labels.max()} at {labels.argmax()}")
