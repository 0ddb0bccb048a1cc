"""Reads SVHN's cropped digits in their official form: train_32x32.mat, test_32x32.mat, extra_32x32.mat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.named.catalogue import CATALOGUE
from augtree.data.named.download import unlike_published
from augtree.data.splits import make_split
from augtree.errors import DataError, need

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
OFFICIAL = {"train": 73_257, "test": 26_032, "extra": 531_131}


def read_svhn(root: str | Path, *, extra: bool = False, seed: int = 0) -> Dataset:
    """The house numbers; a tenth of the training pictures, by class, are for validation.

    The files call the digit 0 "10". With `extra`, the easier pictures are training pictures too, none of them for
    validation. Nothing is usual for them beforehand: a flipped digit is another digit.
    """
    folder = CATALOGUE["svhn"].found(Path(root))
    parts = ("train", "extra", "test") if extra else ("train", "test")
    paths = {part: folder / f"{part}_32x32.mat" for part in parts}
    absent = [path.name for path in paths.values() if not path.is_file()]
    if absent:
        raise CATALOGUE["svhn"].missing(folder, ", ".join(absent))
    tables = {part: read_mat(path) for part, path in paths.items()}
    split = {part: np.full(len(labels), 2 if part == "test" else 0, np.int8) for part, (_, labels) in tables.items()}
    split["train"] = make_split(tables["train"][1], shares=(0.9, 0.1, 0), seed=seed)
    val = int((split["train"] == 1).sum())
    notes = [f"{val} training pictures became validation pictures, by class, seed {seed}"]
    notes += [
        f"not the official size: {len(labels)} pictures in {part} instead of {OFFICIAL[part]}"
        for part, (_, labels) in tables.items()
        if len(labels) != OFFICIAL[part]
    ]
    labels = np.concatenate([labels for _, labels in tables.values()])
    return Dataset(
        name="svhn+extra" if extra else "svhn",
        samples=torch.from_numpy(np.concatenate([pictures for pictures, _ in tables.values()])),
        labels=torch.from_numpy(labels),
        classes=tuple("0123456789"),
        split=np.concatenate([split[part] for part in tables]),
        groups=np.zeros(len(labels), np.int64),
        group_names=("all",),
        source={
            "source": "svhn",
            "root": str(Path(root).resolve()),
            **({"extra": True} if extra else {}),
            "seed": seed,
        },
        notes=(*unlike_published("svhn", list(paths.values())), *notes),
    )


def read_mat(path: Path) -> tuple[Bytes, Ints]:
    """The pictures [N,3,32,32] and the digits of one file."""
    try:
        content: dict[str, Any] = need("scipy.io", "train").loadmat(path, variable_names=("X", "y"))
    except ImportError:
        raise
    except Exception as error:  # a damaged file raises many kinds
        raise DataError(f"{path}: must be a MATLAB 5 file with X and y ({error})") from error
    x, y = np.asarray(content.get("X")), np.asarray(content.get("y")).reshape(-1)
    if x.ndim != 4 or x.shape[:3] != (32, 32, 3) or x.dtype != np.uint8 or not x.size:
        raise DataError(f"{path}: X must be uint8 [32,32,3,N], got {x.dtype} {list(x.shape)}")
    if len(y) != x.shape[3]:
        raise DataError(f"{path}: y must have a label for each of the {x.shape[3]} pictures, got {len(y)}")
    if y.dtype.kind not in "iuf" or (y != np.rint(y)).any() or y.min() < 1 or y.max() > 10:
        raise DataError(f"{path}: y must be whole numbers from 1 to 10, where 10 is the digit 0")
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y.astype(np.int64) % 10
