"""AutoAugment's operations that move pixels: shears, shifts and rotation, to the bit as Pillow does them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from augtree.errors import whole_number
from augtree.keys import Key
from augtree.transforms import kernels
from augtree.transforms.operation import FILL, Floats, Operation
from augtree.transforms.pictures import Shape, Work
from augtree.transforms.turns import cosine_and_sine


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
    """What uncovered pixels become, 0 to 255."""
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
    """Coefficients that turn a picture, as Pillow does."""
    cos, sin = cosine_and_sine(degrees)
    x, y = shape.width / 2, shape.height / 2
    return affine(cos, -sin, cos * -x + -sin * -y + x, sin, cos, sin * -x + cos * -y + y)
