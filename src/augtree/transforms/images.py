"""AutoAugment's operations that change values or areas, and the list of all sixteen.

docs/transforms.md has the table of their ranges, `operation` what a magnitude means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from augtree.errors import number, whole_number
from augtree.keys import Key
from augtree.transforms import kernels
from augtree.transforms.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY
from augtree.transforms.operation import EXTRA, FILL, Floats, Operation, need_colour
from augtree.transforms.pictures import Kernel, Shape, Work


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


@dataclass(frozen=True)
class Cutout(Operation):
    """Cover a square that is centred anywhere in the picture."""

    fill: int = FILL
    """What the square is filled with, 0 to 255."""
    share: float = 60 / 331
    """The side of the square at magnitude 1, as a share of the picture's shorter side."""

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
    *(ShearX, ShearY, TranslateX, TranslateY, Rotate, AutoContrast, Invert, Equalize, Solarize, Posterize),
    *(Contrast, Color, Brightness, Sharpness, Cutout, SamplePairing),
)
