"""Masks: where the object of each picture is, one bit a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from augtree.data.checks import same_length
from augtree.errors import ArgumentError

Pixels = NDArray[np.bool_]
ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1)
"""How many bits of each byte are set."""


@dataclass(frozen=True, eq=False)
class Masks:
    """The pixels of the object in each picture. A mask without any pixel says that no object is known.

    >>> masks = Masks.of(np.eye(3, dtype=bool)[None])
    >>> masks[[0]].int().tolist(), masks.areas.tolist()
    ([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]], [3])
    """

    bits: NDArray[np.uint8]
    """[N, bytes]: the pixels of each mask, row by row, eight in a byte."""
    height: int
    width: int

    @staticmethod
    def of(pixels: ArrayLike) -> Masks:
        """The masks of an array [N,H,W] in which pixels of the object are not 0."""
        values = np.asarray(pixels)
        count, height, width = values.shape
        return Masks(np.packbits(values.reshape(count, height * width) != 0, axis=1), height, width)

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, rows: ArrayLike | slice) -> Tensor:
        """The masks of some samples, bool [R,H,W]."""
        size = self.height * self.width
        pixels = np.unpackbits(self.bits[rows if isinstance(rows, slice) else np.asarray(rows)], axis=1, count=size)
        return torch.from_numpy(pixels.view(bool).reshape(-1, self.height, self.width))

    def take(self, rows: NDArray[np.int64]) -> Masks:
        """The masks of some samples, in this order."""
        return Masks(self.bits[rows], self.height, self.width)

    @property
    def areas(self) -> NDArray[np.int64]:
        """The number of pixels of each mask."""
        areas: NDArray[np.int64] = ONES[self.bits].sum(1, dtype=np.int64)
        return areas


def check_masks(masks: Masks | None, samples: Any) -> None:
    """A mask for each picture, as large as it is; none for graphs."""
    if masks is None:
        return
    if not isinstance(masks, Masks):
        raise ArgumentError("masks", "must be Masks (from_arrays makes them of arrays)", type(masks).__name__)
    if not isinstance(samples, Tensor):
        raise ArgumentError("masks", "must be left out for graphs")
    same_length("masks", len(masks), len(samples))
    height, width = samples.shape[2:]
    if (masks.height, masks.width) != (height, width):
        raise ArgumentError("masks", f"must be as large as the pictures, {sides(width, height)}", sides_of(masks))


def sides(width: int, height: int) -> str:
    """Width and height as messages have them."""
    return f"{width}x{height}"


def sides_of(masks: Masks) -> str:
    """The size of masks as messages have it."""
    return sides(masks.width, masks.height)


def masks_from(masks: Any, boxes: Any, samples: Any) -> Masks | None:
    """The masks of arrays: pixels [N,H,W], or boxes [N,4]; None where neither is given."""
    if masks is None and boxes is None:
        return None
    if masks is not None and boxes is not None:
        raise ArgumentError("boxes", "must be left out where masks are given")
    name, given = ("masks", masks) if boxes is None else ("boxes", boxes)
    if not isinstance(samples, Tensor):
        raise ArgumentError(name, "must be left out for graphs")
    values = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if boxes is not None:
        return masks_of_boxes(values, len(samples), samples.shape[2], samples.shape[3])
    if values.ndim != 3 or values.dtype.kind not in "biu":
        rule = "must be an array [N,H,W] of truth values or whole numbers, not 0 where the object is"
        raise ArgumentError(name, rule, f"{values.dtype} {list(values.shape)}")
    return Masks.of(values)


def masks_of_boxes(boxes: NDArray[Any], count: int, height: int, width: int) -> Masks:
    """The masks of boxes [N,4]; four zeros say that no object is known."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype.kind not in "iuf":
        rule = "must be numbers [N,4]: x0, y0, x1, y1 in pixels"
        raise ArgumentError("boxes", rule, f"{boxes.dtype} {list(boxes.shape)}")
    same_length("boxes", len(boxes), count)
    bits = np.zeros((count, -(-height * width // 8)), np.uint8)
    for i, box in enumerate(boxes.tolist()):
        if not any(box):
            continue
        wrong = box_problem(box, height, width)
        if wrong:
            raise ArgumentError(f"boxes/{i}", wrong, box)
        bits[i] = np.packbits(inside(box, centres(height, height), centres(width, width)))
    return Masks(bits, height, width)


def box_problem(box: Sequence[float], height: int, width: int) -> str | None:
    """What a box must be and is not, in a picture of this size."""
    x0, y0, x1, y1 = box
    if 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height:
        return None
    return f"must be x0 y0 x1 y1 within the picture of {sides(width, height)} pixels, x0 < x1 and y0 < y1"


def inside(box: Sequence[float], ys: NDArray[np.float64], xs: NDArray[np.float64]) -> Pixels:
    """Which of the points of a grid are in a box."""
    x0, y0, x1, y1 = box
    return ((y0 <= ys) & (ys < y1))[:, None] & ((x0 <= xs) & (xs < x1))


def centres(length: int, cut: int, count: int | None = None) -> NDArray[np.float64]:
    """The centres of `count` pixels (by default as many as are cut) in the middle `cut` of `length` pixels.

    >>> centres(6, 4, 2)
    array([2., 4.])
    """
    many = cut if count is None else count
    return np.asarray((length - cut) / 2 + (np.arange(many) + 0.5) * cut / many)
