"""Cropping, flipping and normalising: the usual preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError, InputError, number, whole_number
from augtree.keys import Key
from augtree.transforms import kernels
from augtree.transforms.base import Transform
from augtree.transforms.geometry import shifted
from augtree.transforms.pictures import LARGEST_SIDE, Plan, Shape, Work

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Flip(Transform):
    """Mirror left and right. Mind that a mirrored digit is another digit."""

    p: float = 0.5
    """The probability of flipping a picture."""

    def __post_init__(self) -> None:
        number("p", self.p, 0, 1)

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """Which pictures are flipped."""
        return [[Work(kernels.mirror, key.rows[key.uniform() < self.p])]]


@dataclass(frozen=True)
class VerticalFlip(Transform):
    """Mirror top and bottom."""

    p: float = 0.5
    """The probability of flipping a picture."""

    def __post_init__(self) -> None:
        number("p", self.p, 0, 1)

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """Which pictures are flipped."""
        return [[Work(kernels.upend, key.rows[key.uniform() < self.p])]]


@dataclass(frozen=True)
class QuarterTurn(Transform):
    """Turn by 0, 90, 180 or 270 degrees, each equally likely; pictures that are not square by 0 or 180."""

    def draw(self, key: Key, shape: Shape) -> Plan:
        """How many quarters each picture is turned by."""
        square = shape.height == shape.width
        quarters = key.below(4) if square else 2 * key.below(2)
        kernel = kernels.quarter_turn if square else kernels.half_turn
        turned = quarters > 0
        return [[Work(kernel, key.rows[turned], (quarters[turned],) if square else ())]]


@dataclass(frozen=True)
class PadCrop(Transform):
    """Pad, then crop a random part of the picture's own size: a shift by up to `pad` pixels."""

    pad: int = 4
    """Pixels on each side."""
    fill: int = 0
    """What is padded with."""

    def __post_init__(self) -> None:
        whole_number("pad", self.pad, 0, LARGEST_SIDE)
        whole_number("fill", self.fill, 0, 255)

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """Where the crop stands."""
        x, y = (key.below(2 * self.pad + 1, counter) - self.pad for counter in range(2))
        return [[Work(kernels.warp, key.rows, (shifted(x, y), np.full(len(key), self.fill, np.int64)))]]

    def __str__(self) -> str:
        return f"PadCrop({self.pad})"


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Stretch a random part of the picture to its full size: the crop of Inception and SimCLR.

    Where the part would stick out, it is cut off.
    """

    scale: tuple[float, float] = (0.08, 1.0)
    """The range of the part's area, as a share of the picture's."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """The range of the part's width / height, drawn on a log scale."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", interval("scale", self.scale, 1e-6, 1))
        object.__setattr__(self, "ratio", interval("ratio", self.ratio, 1e-2, 1e2))

    def draw(self, key: Key, shape: Shape) -> Plan:
        """The part of each picture."""
        box = np.stack(crop_box(self.scale, self.ratio, key, shape), axis=1)
        return [[Work(kernels.stretch, key.rows, (box,))]]


@dataclass(frozen=True)
class ResizedCrop(Transform):
    """A random part of the picture, drawn as by RandomCrop, at another size."""

    size: int | tuple[int, int] = 224
    """The new side, or height and width."""
    scale: tuple[float, float] = (0.08, 1.0)
    """The range of the part's area, as a share of the picture's."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """The range of the part's width / height, drawn on a log scale."""
    whole = True

    def __post_init__(self) -> None:
        RandomCrop.__post_init__(self)  # type: ignore[arg-type]
        if isinstance(self.size, Sequence) and not isinstance(self.size, str):
            if len(self.size) != 2:
                raise ArgumentError("size", "must be a number, or height and width", self.size)
            object.__setattr__(self, "size", tuple(whole_number("size", side, 1, LARGEST_SIDE) for side in self.size))
        else:
            whole_number("size", self.size, 1, LARGEST_SIDE)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """The part of each picture."""
        need_all(self, key, shape)
        after = self.shape_after(shape)
        left, right, top, bottom = crop_box(self.scale, self.ratio, key, shape)
        tables = bilinear(shape.width, left, right, after.width) + bilinear(shape.height, top, bottom, after.height)
        return [[Work(kernels.resize, key.rows, tables, changes="shape")]]

    def shape_after(self, shape: Shape) -> Shape:
        """The new size."""
        height, width = self.size if isinstance(self.size, tuple) else (self.size, self.size)
        return shape._replace(height=height, width=width)


def crop_box(
    scale: tuple[float, float], ratio: tuple[float, float], key: Key, shape: Shape
) -> tuple[Ints, Ints, Ints, Ints]:
    """A random part of each picture: left, right, top and bottom."""
    area = shape.height * shape.width * between(scale, key.uniform(0))
    form = np.exp(between((float(np.log(ratio[0])), float(np.log(ratio[1]))), key.uniform(1)))
    width = np.clip(np.rint(np.sqrt(area * form)), 1, shape.width).astype(np.int64)
    height = np.clip(np.rint(np.sqrt(area / form)), 1, shape.height).astype(np.int64)
    left = key.below(shape.width - width + 1, 2)
    top = key.below(shape.height - height + 1, 3)
    return left, left + width, top, top + height


@dataclass(frozen=True)
class Normalize(Transform):
    """Subtract the mean and divide by the standard deviation: floats, the last step before a model."""

    mean: tuple[float, ...] = (0.5,)
    """The mean of each channel, or one for all, with values in [0, 1]."""
    std: tuple[float, ...] = (0.5,)
    """The standard deviation of each channel, or one for all."""
    random = False
    whole = True
    final = True

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence) or not given:
                raise ArgumentError(name, "must be a list of numbers, one a channel", given)
            low = -10.0 if name == "mean" else 1e-6
            object.__setattr__(
                self, name, tuple(number(f"{name}/{i}", value, low, 10) for i, value in enumerate(given))
            )
        if len(self.mean) != len(self.std):
            raise ArgumentError("std", f"must have {len(self.mean)} entries as mean has", self.std)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """Nothing is random here."""
        need_all(self, key, shape)
        if len(self.mean) not in (1, shape.channels):
            raise InputError(f"Normalize has {len(self.mean)} means for pictures of {shape.channels} channels")
        params = (np.array(self.mean, np.float32), np.array(self.std, np.float32))
        return [[Work(kernels.normalize, key.rows, params, changes="type")]]


def need_all(transform: Transform, key: Key, shape: Shape) -> None:
    """Raise where a transform that changes shape or type would act on part of a batch."""
    if len(key) != shape.batch:
        raise InputError(f"{transform.name} changes shape or type, so it must be applied to all samples or none")


def interval(field: str, given: Any, low: float, high: float) -> tuple[float, float]:
    """Two numbers in order, within their range."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise ArgumentError(field, "must be two numbers", given)
    first, last = (number(f"{field}/{i}", value, low, high) for i, value in enumerate(given))
    if first > last:
        raise ArgumentError(field, "must be two numbers in order", given)
    return first, last


def between(ends: tuple[float, float], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers spread over an interval."""
    return ends[0] + (ends[1] - ends[0]) * uniform


def bilinear(size: int, start: Ints, stop: Ints, out: int) -> tuple[Ints, Ints]:
    """Pillow's bilinear weights [n,out,taps] (22 bits) and first sources [n,out] for stretching [start, stop)."""
    scale = (stop - start)[:, None] / out
    reach = np.maximum(scale, 1.0)
    middle = start[:, None] + (np.arange(out) + 0.5) * scale
    first = np.maximum((middle - reach + 0.5).astype(np.int64), 0)
    count = np.minimum((middle + reach + 0.5).astype(np.int64), size) - first
    taps = np.arange(int(count.max(initial=1)))
    distance = np.abs((taps + first[..., None] - middle[..., None] + 0.5) * (1.0 / reach)[..., None])
    weights = np.where(taps < count[..., None], np.maximum(1 - distance, 0), 0)
    total = np.add.accumulate(weights, axis=2)[..., -1:]  # summed in order, as Pillow does
    return first, (weights / total * (1 << 22) + 0.5).astype(np.int64)
