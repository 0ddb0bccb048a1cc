"""What the operations draw at a magnitude."""

import numpy as np
import pytest

from augtree.errors import ArgumentError
from augtree.transforms import images
from augtree.transforms.geometry import Rotate
from augtree.transforms.images import OPERATIONS
from support.draws import drawn


@pytest.mark.parametrize("magnitude", [0.2, 0.4, 0.6, 0.8, 1.0])
def test_levels_are_uniform_in_their_bin(magnitude):
    degrees = np.abs(drawn(Rotate(magnitude)))
    low, high = 30 * (magnitude - 0.2), 30 * magnitude
    assert low < degrees.min() < low + 0.1
    assert high - 0.1 < degrees.max() <= high
    counts = np.histogram(degrees, bins=10, range=(low, high))[0]
    assert counts.min() > 330


def test_both_signs_occur_equally_often():
    for kind in OPERATIONS:
        if kind.signed:
            values = drawn(kind(0.6)) - (1 if issubclass(kind, images.Enhancement) else 0)
            assert 1850 < (values > 0).sum() < 2150


def test_magnitudes_that_are_no_multiple_of_the_bin_work():
    degrees = np.abs(drawn(Rotate(0.1)))
    assert degrees.max() <= 3
    assert np.histogram(degrees, bins=10, range=(0, 3))[0].min() > 330


def test_candidates_share_their_draws():
    """Rotate and Brightness at one key have the same level and the same sign."""
    turned, lit = drawn(Rotate(0.6)) / 30, (drawn(images.Brightness(0.6)) - 1) / 0.9
    assert np.allclose(turned, lit)


@pytest.mark.parametrize("kind", OPERATIONS)
@pytest.mark.parametrize("magnitude", [0, -0.2, 1.2, "0.2", None, float("nan")])
def test_magnitudes_outside_their_range_are_refused(kind, magnitude):
    with pytest.raises(ArgumentError, match=r"magnitude must be a number in \(0, 1\]"):
        kind(magnitude)
