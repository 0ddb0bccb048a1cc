"""The sixteen operations of AutoAugment on pictures, with its ranges. docs/transforms.md has the table.

A candidate has a magnitude m in (0, 1]. For each picture a level is drawn uniformly from the bin (m - 0.2, m]
and turned into the operation's parameter (its *value*): up to `limit` at level 1, with a random sign where the
operation has two sides. `wide` is the limit in TrivialAugment's wide range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from augtree.errors import InputError, number, whole_number
from augtree.keys import Key
from augtree.transforms import kernels
from augtree.transforms.base import Transform, check_magnitude
from augtree.transforms.pictures import Kernel, Plan, Shape, Work

Floats = NDArray[np.float64]

BIN = 0.2
"""How far below the magnitude a level may lie."""
FILL = 128
"""What geometry leaves uncovered and Cutout covers becomes this grey, unless another fill is given."""

LEVEL, SIGN, EXTRA = 0, 1, 2
"""Counters of an operation's draws."""


@dataclass(frozen=True)
class Operation(Transform):
    """An operation with a parameter that grows with the level."""

    magnitude: float = field()
    scaled = True
    limit: ClassVar[float] = 0.0
    wide: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", check_magnitude(self.magnitude))

    def draw(self, key: Key, shape: Shape) -> Plan:
        """A level and a sign for each picture."""
        level = self.magnitude - min(BIN, self.magnitude) * key.uniform(LEVEL)
        return [[self.work(key, self.values(level, signs(key), self.limit), shape)]]

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:
        """The parameter at each level."""
        return limit * level * (sign if self.signed else 1)

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """The operation on the key's rows, with these parameters."""
        raise NotImplementedError


def signs(key: Key) -> Floats:
    """Plus or minus one for each picture."""
    return np.where(key.uniform(SIGN) < 0.5, -1.0, 1.0)


# ---- geometry --------------------------------------------------------------------------------------------------


def fixed(values: Floats) -> NDArray[np.int64]:
    """16.16 fixed-point numbers, rounded as Pillow rounds them."""
    return np.floor(values * 65536.0 + 0.5).astype(np.int64)


def affine(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats, f: Floats) -> NDArray[np.int64]:
    """Coefficients for `kernels.warp`: pixel (x, y) comes from (ax + by + c, dx + ey + f), at pixel middles."""
    return np.stack(
        [fixed(a), fixed(b), fixed(c + a * 0.5 + b * 0.5), fixed(d), fixed(e), fixed(f + d * 0.5 + e * 0.5)],
        axis=1,
    )


def shifted(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Coefficients that take pixel (i, j) from (i + x, j + y)."""
    one, zero = np.full_like(x, 1 << 16), np.zeros_like(x)
    return np.stack([one, zero, x << 16, zero, one, y << 16], axis=1)


@dataclass(frozen=True)
class Geometry(Operation):
    """An operation that moves pixels and fills what it uncovers."""

    fill: int = FILL
    signed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("fill", self.fill, 0, 255)

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """A warp by the coefficients that the subclass makes of the values."""
        fill = np.full(len(key), self.fill, np.int64)
        return Work(kernels.warp, key.rows, (self.coefficients(values, shape), fill))

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:
        """Where each pixel comes from."""
        raise NotImplementedError


@dataclass(frozen=True)
class ShearX(Geometry):
    """Slant the picture sideways."""

    limit = 0.3
    wide = 0.99

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:  # noqa: ARG002
        """As Pillow's transform with (1, v, 0, 0, 1, 0)."""
        one, zero = np.ones_like(values), np.zeros_like(values)
        return affine(one, values, zero, zero, one, zero)


@dataclass(frozen=True)
class ShearY(Geometry):
    """Slant the picture up or down."""

    limit = 0.3
    wide = 0.99

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:  # noqa: ARG002
        """As Pillow's transform with (1, 0, 0, v, 1, 0)."""
        one, zero = np.ones_like(values), np.zeros_like(values)
        return affine(one, zero, zero, values, one, zero)


@dataclass(frozen=True)
class TranslateX(Geometry):
    """Move the picture sideways by a share of its width."""

    limit = 150 / 331
    wide = 32.0  # pixels, whatever the size

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:
        """As Pillow's transform with (1, 0, v * width, 0, 1, 0)."""
        pixels = np.floor(values * shape.width + 0.5).astype(np.int64)
        return shifted(pixels, np.zeros_like(pixels))


@dataclass(frozen=True)
class TranslateY(Geometry):
    """Move the picture up or down by a share of its height."""

    limit = 150 / 331
    wide = 32.0  # pixels, whatever the size

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:
        """As Pillow's transform with (1, 0, 0, 0, 1, v * height)."""
        pixels = np.floor(values * shape.height + 0.5).astype(np.int64)
        return shifted(np.zeros_like(pixels), pixels)


@dataclass(frozen=True)
class Rotate(Geometry):
    """Turn the picture about its middle."""

    limit = 30.0
    wide = 135.0

    def coefficients(self, values: Floats, shape: Shape) -> NDArray[np.int64]:
        """As Pillow's rotate."""
        return turned(values, shape)


def turned(degrees: Floats, shape: Shape) -> NDArray[np.int64]:
    """Coefficients that turn a picture; sine and cosine from the C library and rounded, as in Pillow."""
    angles = [-math.radians(angle % 360.0) for angle in degrees.tolist()]
    cos = np.array([round(math.cos(angle), 15) for angle in angles])
    sin = np.array([round(math.sin(angle), 15) for angle in angles])
    x, y = shape.width / 2, shape.height / 2
    return affine(cos, sin, cos * -x + sin * -y + x, -sin, cos, -sin * -x + cos * -y + y)


# ---- values ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain(Operation):
    """An operation without a parameter: it is the same at every magnitude."""

    magnitude: float = 1.0
    scaled = False
    random = False
    kernel: ClassVar[Kernel]

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:  # noqa: ARG002
        """The kernel on its rows."""
        return Work(type(self).kernel, key.rows)


@dataclass(frozen=True)
class AutoContrast(Plain):
    """Stretch every channel to the full range."""

    kernel = staticmethod(kernels.auto_contrast)


@dataclass(frozen=True)
class Equalize(Plain):
    """Flatten every channel's histogram."""

    kernel = staticmethod(kernels.equalize)


@dataclass(frozen=True)
class Invert(Plain):
    """The negative."""

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:  # noqa: ARG002
        """Solarize from 0 on."""
        return Work(kernels.solarize, key.rows, (np.zeros(len(key), np.int64),))


@dataclass(frozen=True)
class Solarize(Operation):
    """Turn the light part of the picture into its negative."""

    limit = 256.0
    wide = 255.0

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:  # noqa: ARG002
        """The threshold: at level 0 above everything."""
        return np.floor(limit * (1 - level))

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:  # noqa: ARG002
        """As Pillow's ImageOps.solarize."""
        return Work(kernels.solarize, key.rows, (values.astype(np.int64),))


@dataclass(frozen=True)
class Posterize(Operation):
    """Keep fewer bits of every value."""

    limit = 4.0
    wide = 6.0

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:  # noqa: ARG002
        """The bits kept: 8 at level 0, never fewer than 2."""
        return 8 - np.rint(limit * level)

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:  # noqa: ARG002
        """As Pillow's ImageOps.posterize."""
        return Work(kernels.posterize, key.rows, (values.astype(np.int64),))


@dataclass(frozen=True)
class Enhancement(Operation):
    """A blend with something poorer, by a factor on either side of 1."""

    signed = True
    limit = 0.9
    wide = 0.99
    kernel: ClassVar[Kernel]

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:
        """The factor: 1 at level 0."""
        return 1 + limit * level * sign

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:  # noqa: ARG002
        """As Pillow's ImageEnhance."""
        return Work(type(self).kernel, key.rows, (values.astype(np.float32),))


@dataclass(frozen=True)
class Contrast(Enhancement):
    """Less or more contrast: towards or away from the mean grey."""

    kernel = staticmethod(kernels.contrast)


@dataclass(frozen=True)
class Brightness(Enhancement):
    """Darker or lighter."""

    kernel = staticmethod(kernels.brightness)


@dataclass(frozen=True)
class Sharpness(Enhancement):
    """Smoother or sharper."""

    kernel = staticmethod(kernels.sharpness)


@dataclass(frozen=True)
class Color(Enhancement):
    """Less or more colour: towards or away from the grey picture. Nothing happens to pictures of one channel."""

    kernel = staticmethod(kernels.color)

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """As Pillow's ImageEnhance.Color."""
        need_colour(self, shape)
        return super().work(key, values, shape)


def need_colour(transform: Transform, shape: Shape) -> None:
    """Raise unless the pictures are grey or RGB."""
    if shape.channels not in (1, 3):
        raise InputError(f"{transform.name} needs pictures of 1 or 3 channels, got {shape.channels}")


# ---- the rest --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cutout(Operation):
    """Cover a square, its middle anywhere in the picture, its side a share of the shorter one."""

    fill: int = FILL
    share: float = 60 / 331
    """The side at magnitude 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("fill", self.fill, 0, 255)
        number("share", self.share, 0, 1, open_low=True)

    def values(self, level: Floats, sign: Floats, limit: float) -> Floats:  # noqa: ARG002
        """The side as a share."""
        return self.share * level

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """A box of at least one pixel, cut off at the border."""
        side = np.maximum(np.rint(values * min(shape.height, shape.width)), 1).astype(np.int64)
        left = key.below(shape.width, EXTRA) - side // 2
        top = key.below(shape.height, EXTRA + 1) - side // 2
        box = np.stack([left, top, left + side, top + side], axis=1)
        return Work(kernels.fill_box, key.rows, (box, np.full(len(key), self.fill, np.int64)))


@dataclass(frozen=True)
class SamplePairing(Operation):
    """Blend with another picture of the same batch, as it was before any transform.

    The one operation whose result depends on what the batch holds: split the batch and the partners change.
    A picture alone in its batch stays as it is.
    """

    mixes = True
    limit = 0.4

    def work(self, key: Key, values: Floats, shape: Shape) -> Work:
        """As Pillow's Image.blend with the partner."""
        away = 1 + key.below(max(shape.batch - 1, 1), EXTRA)
        partners = (key.rows + away) % shape.batch
        return Work(kernels.pair, key.rows, (values.astype(np.float32),), partners)


OPERATIONS: tuple[type[Operation], ...] = (
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    AutoContrast,
    Invert,
    Equalize,
    Solarize,
    Posterize,
    Contrast,
    Color,
    Brightness,
    Sharpness,
    Cutout,
    SamplePairing,
)
