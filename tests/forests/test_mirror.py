import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree.errors import ArgumentError
from augtree.forests.mirror import MIN_WEIGHT, effective_size, largest_remainder, update

SHARES = st.lists(st.floats(1e-3, 1), min_size=1, max_size=9).map(lambda v: np.array(v) / sum(v))


def test_the_update_of_a_worked_example():
    """w = (1/2, 1/4, 1/4), d = (0.2, -0.1, 0.4), eta = 0.5: numbers by hand."""
    found = update(np.array([0.5, 0.25, 0.25]), np.array([0.2, -0.1, 0.4]), 0.5)
    raw = np.array([0.5 * 0.904837418, 0.25 * 1.051271096, 0.25 * 0.818730753])
    assert found == pytest.approx(raw / 0.919919171, rel=1e-6)


def test_a_constant_in_d_changes_nothing():
    w, d = np.array([0.2, 0.3, 0.5]), np.array([0.1, -0.3, 0.2])
    assert update(w, d + 7, 0.4) == pytest.approx(update(w, d, 0.4))


def test_a_step_that_goes_too_far_is_shortened_and_keeps_its_direction():
    found = update(np.array([0.5, 0.5]), np.array([-1e6, 1e6]), 0.1)
    assert found[0] / found[1] == pytest.approx(np.e)


@given(SHARES, st.floats(-5, 5), st.floats(0, 10))
def test_weights_stay_positive_and_sum_to_1(w, slope, eta):
    for _ in range(40):
        w = update(w, slope * np.arange(len(w)), eta)
    assert w.sum() == pytest.approx(1)
    assert (w >= MIN_WEIGHT / 2).all()


@pytest.mark.parametrize("d", [[np.nan, 0.0], [np.inf, 0.0], [0.0]])
def test_what_is_no_direction_is_refused(d):
    with pytest.raises(ArgumentError, match="must be a finite number for each of 2 groups"):
        update(np.array([0.5, 0.5]), np.array(d), 0.1)


def test_effective_size():
    assert effective_size(np.array([0.2, 0.8]), np.array([20, 80])) == pytest.approx(100)  # proportions: all samples
    assert effective_size(np.array([0.8, 0.2]), np.array([20, 80])) == pytest.approx(1 / (0.64 / 20 + 0.04 / 80))


@given(SHARES, st.integers(0, 500))
def test_allotments_are_whole_and_near(w, count):
    found = largest_remainder(w, count)
    assert found.sum() == count
    assert (np.abs(found - w * count) < 1).all()
