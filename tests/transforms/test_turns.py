import math
from fractions import Fraction

import numpy as np

from augtree.transforms.turns import added, cosine_and_sine, product, to_digits


def test_sines_are_the_c_librarys_to_15_digits():
    """A few in ten thousand differ in the last digit, where the C library's own last bit is not the nearest."""
    rng = np.random.default_rng(0)
    degrees = np.concatenate([rng.uniform(-400, 800, 20_000), np.arange(-720, 721) / 2, rng.normal(size=500) * 1e-8])
    radians = [math.radians(angle % 360.0) for angle in degrees.tolist()]
    for ours, theirs in zip(cosine_and_sine(degrees), (math.cos, math.sin), strict=True):
        expected = np.array([round(theirs(angle), 15) for angle in radians])
        assert np.abs(ours - expected).max() < 1.1e-15
        assert (ours != expected).mean() < 1e-3


def test_whole_quarters_are_exact():
    cos, sin = cosine_and_sine(np.array([-90.0, 0.0, 90.0, 180.0, 270.0, 360.0]))
    assert cos.tolist() == [0, 1, 0, -1, 0, 1]
    assert sin.tolist() == [-1, 0, 1, 0, -1, 0]


def test_sums_and_products_lose_nothing():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 300)) * 10.0 ** rng.integers(-8, 8, (2, 300))
    for operate, exact in ((added, Fraction.__add__), (product, Fraction.__mul__)):
        high, low = operate(x, y)
        for a, b, large, small in zip(x.tolist(), y.tolist(), high.tolist(), low.tolist(), strict=True):
            assert Fraction(large) + Fraction(small) == exact(Fraction(a), Fraction(b))


def test_digits_are_rounded_as_python_does():
    values = np.random.default_rng(2).uniform(-1, 1, 20_000)
    assert to_digits(values).tolist() == [round(value, 15) for value in values.tolist()]
