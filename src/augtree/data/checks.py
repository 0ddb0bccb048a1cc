"""What the parts of a data set must be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import ArgumentError, one_of


def check_samples(samples: Tensor | tuple[Any, ...]) -> None:
    """Pictures or graphs."""
    if isinstance(samples, Tensor):
        if samples.ndim != 4 or min(samples.shape[1:]) < 1:
            raise ArgumentError("samples", "must be pictures [N,C,H,W]", list(samples.shape))
        if samples.dtype != torch.uint8:
            raise ArgumentError("samples", "must be uint8 (from_arrays turns other numbers into that)", samples.dtype)
        if samples.device.type != "cpu":
            raise ArgumentError("samples", "must be on the CPU", str(samples.device))
    elif not isinstance(samples, tuple):
        raise ArgumentError("samples", "must be a uint8 tensor or a tuple of PyG graphs", type(samples).__name__)
    else:
        for i, sample in enumerate(samples):
            if not is_graph(sample):
                raise ArgumentError(f"samples/{i}", "must be a PyG Data", type(sample).__name__)
    if len(samples) == 0:
        raise ArgumentError("samples", "must not be empty")


def is_graph(value: object) -> bool:
    """Whether this is a PyG Data; without PyG nothing is."""
    data = sys.modules.get("torch_geometric.data")
    return data is not None and isinstance(value, data.Data)


def check_labels(labels: Tensor, classes: Sequence[str], count: int) -> None:
    """int64 [N] below the number of classes, or uint8 [N,L] of 0 and 1."""
    if not isinstance(labels, Tensor) or (labels.ndim, labels.dtype) not in ((1, torch.int64), (2, torch.uint8)):
        got = f"{labels.dtype} {list(labels.shape)}" if isinstance(labels, Tensor) else type(labels).__name__
        raise ArgumentError("labels", "must be int64 [N], or uint8 [N,L] of 0 and 1", got)
    same_length("labels", len(labels), count)
    if labels.ndim == 2 and labels.shape[1] != len(classes):
        raise ArgumentError("labels", f"must have a column for each of the {len(classes)} classes", labels.shape[1])
    high = len(classes) - 1 if labels.ndim == 1 else 1
    wrong = torch.nonzero((labels < 0) | (labels > high))
    if len(wrong):
        place = "/".join(str(i) for i in wrong[0].tolist())
        raise ArgumentError(f"labels/{place}", f"must be from 0 to {high}", int(labels[tuple(wrong[0])]))


def check_numbers(name: str, values: NDArray[Any], dtype: type, below: int, count: int) -> None:
    """A whole number from 0 for each sample."""
    if not isinstance(values, np.ndarray) or values.dtype != dtype or values.ndim != 1:
        got = f"{values.dtype} {list(values.shape)}" if isinstance(values, np.ndarray) else type(values).__name__
        raise ArgumentError(name, f"must be a numpy array of {dtype.__name__}, [N]", got)
    same_length(name, len(values), count)
    wrong = np.flatnonzero((values < 0) | (values >= below))
    if len(wrong):
        raise ArgumentError(f"{name}/{wrong[0]}", f"must be from 0 to {below - 1}", int(values[wrong[0]]))


def check_names(name: str, names: tuple[str, ...]) -> None:
    """Texts, all different."""
    if not isinstance(names, tuple) or not all(isinstance(one, str) for one in names):
        raise ArgumentError(name, "must be a tuple of texts", names)
    if not names or len(set(names)) < len(names):
        raise ArgumentError(name, "must be at least one name, and all different", names)


def same_length(name: str, length: int, count: int) -> None:
    """One value a sample."""
    if length != count:
        raise ArgumentError(name, f"must be as many as the samples, {count}", length)


def place_of(name: str, value: str, known: Sequence[str]) -> int:
    """Where a name stands among the known ones."""
    return known.index(one_of(name, value, known))
