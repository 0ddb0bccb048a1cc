"""Sines and cosines that every device finds alike: correctly rounded, and then to 15 digits, as Pillow rounds them.

All is done in single IEEE operations on doubles. A number may be a pair of doubles, whose sum it is: about 32 digits.
`triton_draws` has the same steps.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]


def pair(numerator: int, denominator: int) -> tuple[float, float]:
    """A fraction as a pair of doubles."""
    exact = Fraction(numerator, denominator)
    high = float(exact)
    return high, float(exact - Fraction(high))


TERMS = range(10, 2, -1)
COSINE = tuple((-1) ** i / math.factorial(2 * i) for i in TERMS)
SINE = tuple((-1) ** i / math.factorial(2 * i + 1) for i in TERMS)
"""Of Taylor's series, the terms whose rounding does not matter, the smallest first."""
RADIAN, QUARTERS = math.pi / 180, 2 / math.pi
QUARTER = (float.fromhex("0x1.921fb544p0"), float.fromhex("0x1.0b4611a6p-34"), float.fromhex("0x1.3198a2e037073p-69"))
"""A quarter turn in three numbers, of which the first two give exact products with small whole numbers."""
SPLITTER = 2.0**27 + 1
DIGITS = 1e15
NUMBERS = np.array(
    [*COSINE, *SINE, RADIAN, QUARTERS, *QUARTER, *pair(1, 24), *pair(1, 6), *pair(1, 120), SPLITTER, DIGITS]
)
"""All of them, for a kernel."""


def cosine_and_sine(degrees: Floats) -> Pair:
    """Of angles in degrees, which are rounded to radians first, as Pillow does."""
    angle = (degrees % 360.0) * RADIAN
    quarters = np.rint(angle * QUARTERS)
    part = added(angle - quarters * QUARTER[0], -(quarters * QUARTER[1]))
    part = part[0], part[1] - quarters * QUARTER[2]
    cos, sin = (to_digits(values) for values in series(part))
    odd, back = quarters % 2 == 1, np.where((quarters == 2) | (quarters == 3), -1.0, 1.0)
    return np.where(odd, -sin, cos) * back, np.where(odd, cos, sin) * back


def series(x: Pair) -> Pair:
    """The cosine and the sine of up to an eighth of a turn, as doubles."""
    square = multiplied(x, x)
    cos_rest, sin_rest = np.full_like(x[0], COSINE[0]), np.full_like(x[0], SINE[0])
    for cos_term, sin_term in zip(COSINE[1:], SINE[1:], strict=True):
        cos_rest, sin_rest = cos_rest * square[0] + cos_term, sin_rest * square[0] + sin_term
    fourth, third = multiplied(square, square), multiplied(x, square)
    cos_rest = cos_rest * (fourth[0] * square[0])
    sin_rest = sin_rest * (third[0] * fourth[0])
    in_24 = multiplied(fourth, by(1, 24))
    in_6, in_120 = multiplied(third, by(1, 6)), multiplied(multiplied(third, square), by(1, 120))

    large, small = added(np.ones_like(x[0]), -0.5 * square[0])
    cos, smaller = added(large, in_24[0])
    cos = cos + (small + smaller - 0.5 * square[1] + in_24[1] + cos_rest)
    large, small = added(x[0], -in_6[0])
    sin, smaller = added(large, in_120[0])
    return cos, sin + (small + smaller + x[1] - in_6[1] + in_120[1] + sin_rest)


def by(numerator: int, denominator: int) -> Pair:
    """A fraction, to multiply by."""
    high, low = pair(numerator, denominator)
    return np.float64(high), np.float64(low)  # type: ignore[return-value]


def added(x: Floats, y: Floats) -> Pair:
    """The sum of two doubles, exactly."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def product(x: Floats, y: Floats) -> Pair:
    """The product of two doubles, exactly (Dekker)."""
    total = x * y
    x_high, y_high = x * SPLITTER, y * SPLITTER
    x_high, y_high = x_high - (x_high - x), y_high - (y_high - y)
    x_low, y_low = x - x_high, y - y_high
    return total, ((x_high * y_high - total) + x_high * y_low + x_low * y_high) + x_low * y_low


def multiplied(x: Pair, y: Pair) -> Pair:
    """The product of two pairs."""
    high, low = product(x[0], y[0])
    return high, low + (x[0] * y[1] + x[1] * y[0])


def to_digits(values: Floats) -> Floats:
    """The doubles nearest to the values with 15 digits after the point, as Python's `round`."""
    high, low = product(values, np.float64(DIGITS))  # type: ignore[arg-type]
    whole = np.rint(high)
    rest = (high - whole) + low
    whole = whole + (rest > 0.5) - (rest < -0.5)
    return whole / DIGITS
