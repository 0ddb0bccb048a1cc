"""The transformations of contrastive learning (SimCLR): crop, cutout, quarter turns, colours, edges, noise, blur.

RandomCrop lives in `crops`, Cutout in `images`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from augtree.errors import number
from augtree.keys import Key
from augtree.transforms import kernels
from augtree.transforms.base import Transform
from augtree.transforms.crops import between, interval
from augtree.transforms.operation import need_colour
from augtree.transforms.pictures import Array, Kernel, Plan, Shape, Work


@dataclass(frozen=True)
class Rotation(Transform):
    """Turn by 90, 180 or 270 degrees; pictures that are not square by 180."""

    def draw(self, key: Key, shape: Shape) -> Plan:
        """How many quarter turns."""
        if shape.height != shape.width:
            return [[Work(kernels.half_turn, key.rows)]]
        return [[Work(kernels.quarter_turn, key.rows, (1 + key.below(3),))]]


ORDERS = np.array(list(permutations(range(4))))
"""All orders of brightness, contrast, colour and hue."""


@dataclass(frozen=True)
class ColorDistortion(Transform):
    """SimCLR's colours: jitter of brightness, contrast, colour and hue in random order, then sometimes grey."""

    strength: float = 1.0
    """The strength of the jitter, in (0, 1]."""
    jitter_p: float = 0.8
    """The probability of jittering a picture."""
    grey_p: float = 0.2
    """The probability of turning a picture grey."""

    def __post_init__(self) -> None:
        number("strength", self.strength, 0, 1, open_low=True)
        number("jitter_p", self.jitter_p, 0, 1)
        number("grey_p", self.grey_p, 0, 1)

    def draw(self, key: Key, shape: Shape) -> Plan:
        """Four factors and their order for each picture that is jittered; who is made grey."""
        need_colour(self, shape)
        some = key.take(key.uniform(0) < self.jitter_p)
        reach, circle = 0.8 * self.strength, 0.2 * self.strength
        factors = [between((1 - reach, 1 + reach), some.uniform(2 + i)).astype(np.float32) for i in range(3)]
        turns = np.trunc(between((-circle, circle), some.uniform(5)) * 255).astype(np.int64)
        order = ORDERS[some.below(len(ORDERS), 6)]
        steps: list[tuple[Kernel, Array]] = [
            (kernels.brightness, factors[0]),
            (kernels.contrast, factors[1]),
            (kernels.color, factors[2]),
            (kernels.hue, turns),
        ]
        plan: Plan = []
        for place in range(4):
            masks = [order[:, place] == which for which in range(4)]
            here = zip(steps, masks, strict=True)
            plan.append([Work(kernel, some.rows[mask], (params[mask],)) for (kernel, params), mask in here])
        return [*plan, [Work(kernels.grey_out, key.rows[key.uniform(1) < self.grey_p])]]


@dataclass(frozen=True)
class Sobel(Transform):
    """Edges: the length of Sobel's gradient, channel by channel."""

    random = False

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """Nothing is random here."""
        return [[Work(kernels.sobel, key.rows)]]


@dataclass(frozen=True)
class GaussianNoise(Transform):
    """Gaussian noise on every value."""

    sigma: tuple[float, float] = (0.01, 0.1)
    """The range of the standard deviation, as a share of the full range of values."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", interval("sigma", self.sigma, 0, 1))

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """A deviation for each picture; the noise itself is drawn where the picture is."""
        deviation = (255 * between(self.sigma, key.uniform())).astype(np.float32)
        return [[Work(kernels.add_noise, key.rows, (key.state.view(np.int64), deviation))]]


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """Gaussian blur, as Pillow does it: by six box blurs."""

    sigma: tuple[float, float] = (0.1, 2.0)
    """The range of the standard deviation, in pixels."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", interval("sigma", self.sigma, 0, 16))

    def draw(self, key: Key, shape: Shape) -> Plan:  # noqa: ARG002
        """A deviation for each picture."""
        reach = blur_weights(np.array([self.sigma[1]])).shape[1]
        weights = blur_weights(between(self.sigma, key.uniform()), reach)
        return [[Work(kernels.gaussian_blur, key.rows, (weights,))]]


def blur_weights(sigma: NDArray[np.float64], reach: int = 1) -> NDArray[np.int64]:
    """Weights [n,reach] by distance of the box blurs that Pillow makes of a deviation, in its floats.

    The length of the boxes is that of Gwosdek et al., "Theoretical foundations of Gaussian convolution by extended
    box filtering" (2011).
    """
    f, one = np.float32, 1 << 24
    variance = f(sigma) * f(sigma) / f(3)
    length = np.sqrt(12.0 * variance.astype(np.float64) + 1.0).astype(f)
    whole = np.floor((length.astype(np.float64) - 1.0) / 2.0).astype(f)
    part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance)
    part /= 6 * (variance - (whole + 1) * (whole + 1))
    radius = whole + part
    inner = radius.astype(np.int64)
    weight = (f(one) / (radius * f(2) + f(1))).astype(np.int64)
    rest = (one - (2 * inner + 1) * weight) // 2
    far = np.arange(max(int(inner.max(initial=0)) + 2, reach))
    edge = inner[:, None] + 1
    return np.where(far < edge, weight[:, None], np.where(far == edge, rest[:, None], 0))
