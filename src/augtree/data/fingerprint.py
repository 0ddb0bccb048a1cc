"""Hashes of values of any kind, for the fingerprint of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.checks import is_graph
from augtree.errors import ArgumentError


def feed(state: Any, value: Any, place: str) -> None:
    """Hash a value with its kind and its length, so that no two values look the same one after another."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        feed_bytes(state, f"tensor {value.dtype} {list(value.shape)}", tensor_bytes(value))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        feed_bytes(state, f"array {value.dtype.str} {list(value.shape)}", np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, (bool, int, float, str)):
        feed_bytes(state, type(value).__name__, repr(value).encode())
    elif isinstance(value, (list, tuple)):
        feed_bytes(state, f"list {len(value)}", b"")
        for i, part in enumerate(value):
            feed(state, part, f"{place}/{i}")
    elif isinstance(value, Mapping) or is_graph(value):
        fields = cast(dict[str, Any], value.to_dict() if is_graph(value) else value)
        feed_bytes(state, f"fields {len(fields)}", b"")
        for key in sorted(fields):
            feed(state, key, place)
            feed(state, fields[key], f"{place}/{key}")
    else:
        rule = "must be a tensor, an array, a number, a text, or a list or mapping of these, to have a fingerprint"
        raise ArgumentError(place, rule, type(value).__name__)


def tensor_bytes(value: Tensor) -> NDArray[np.uint8]:
    """The numbers of a tensor, whatever their type, as they stand in memory."""
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)


def feed_bytes(state: Any, kind: str, content: bytes | NDArray[np.uint8]) -> None:
    """Hash bytes after what they are."""
    state.update(f"{kind} {len(content)}:".encode())
    state.update(content)
