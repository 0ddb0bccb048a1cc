"""Factorial designs: balanced, exact where the answer is known, and honest about luck."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree.search.factorial import Effect, contrasts, effect, most_factors, noise_of, shrunk, signs, together


@pytest.mark.parametrize("factors", [1, 3, 4, 7, 8, 15, 31, most_factors()])
def test_every_factor_is_left_out_in_half_of_the_runs_and_apart_from_all_others(factors):
    design = signs(factors)
    runs = len(design)
    assert runs == max(8, 1 << factors.bit_length())
    assert (design.T @ design == runs * np.eye(runs - 1)).all()
    assert (design.sum(0) == 0).all()
    assert (design[0] == -1).all()


@pytest.mark.parametrize("factors", [1, 4, 5, 12, 20])
def test_as_many_columns_are_spare_as_are_asked_for(factors):
    assert signs(factors, 3).shape[1] >= factors + 3
    assert len(signs(factors, 3)) < 2 * max(5, factors + 4)


@pytest.mark.parametrize("factors", [3, 4, 8, 16])
def test_no_effect_is_mixed_with_the_interaction_of_two_others(factors):
    design = signs(factors)
    assert 2 * factors <= len(design) or factors == 3
    for one, other in combinations(range(factors), 2):
        product = design[:, one] * design[:, other]
        assert (design[:, :factors].T @ product == 0).all()


@pytest.mark.parametrize("factors", [2, 4, 6])
def test_contrasts_are_the_planted_effects(factors):
    rng = np.random.default_rng(factors)
    design = signs(factors, 3)
    harm = rng.normal(size=(factors, 5))  # of each factor, on each of five samples
    inside = design[:, :factors] < 0
    losses = rng.normal(size=5) + inside @ harm
    found = contrasts(losses, design)
    assert found[:factors] == pytest.approx(harm)
    assert found[factors:] == pytest.approx(np.zeros((design.shape[1] - factors, 5)), abs=1e-12)


def test_an_interaction_of_two_shows_in_the_unused_contrasts_alone():
    design = signs(4, 3)
    both = (design[:, 0] < 0) & (design[:, 1] < 0)
    found = contrasts(both[:, None] * np.ones((1, 2)), design)[:, 0]
    assert found[:4] == pytest.approx([0.5, 0.5, 0, 0])
    assert sorted(np.abs(found[4:])) == pytest.approx([0, 0, 0.5])


def test_unused_contrasts_say_how_much_runs_differ_by_luck():
    rng = np.random.default_rng(0)
    design = signs(20, 3)
    luck = rng.normal(0, 0.3, (len(design), 1)) + np.zeros((1, 7))
    noise = noise_of(contrasts(luck, design)[20:])
    assert noise == pytest.approx(0.3 * 2 / np.sqrt(len(design)), rel=0.35)


def test_the_size_of_unused_contrasts():
    assert noise_of(np.array([[0.0, 2.0], [-1.0, -3.0]])) == pytest.approx(np.sqrt(2.5))
    assert noise_of(np.zeros((0, 5))) == 0


def test_an_effect_is_as_sure_as_its_samples_and_the_luck_of_branches_allow():
    found = effect(np.array([1.0, 2.0, 3.0, 6.0]), noise=0.5)
    spread = np.std([1, 2, 3, 6], ddof=1) / 2
    assert found == pytest.approx((3.0, np.hypot(spread, 0.5)))
    assert effect(np.array([1.0]), 0.5) == (1.0, 0.5)
    assert found.z == pytest.approx(3 / np.hypot(spread, 0.5))


def test_no_difference_at_all_is_no_evidence():
    assert effect(np.zeros(9), 0.0).z == 0


def test_looks_count_by_how_sure_they_are():
    found = together([Effect(1.0, 1.0), Effect(4.0, 0.5)])
    assert found.harm == pytest.approx((1 + 4 * 4) / 5)
    assert found.se == pytest.approx(5**-0.5)
    assert together([Effect(2.0, 0.3)]) == Effect(2.0, 0.3)
    assert together([Effect(2.0, 0.0), Effect(1.0, 0.3)]) == Effect(1.0, 0.3)


def test_groups_that_are_equal_have_the_same():
    common, own = shrunk({"a": Effect(0.3, 0.1), "b": Effect(0.3, 0.1), "c": Effect(0.3, 0.1)})
    assert common == pytest.approx((0.3, 0.1 / 3**0.5))
    assert set(own.values()) == {common}


def test_groups_that_differ_within_noise_have_the_same():
    common, own = shrunk({"a": Effect(0.2, 0.1), "b": Effect(0.3, 0.1), "c": Effect(0.25, 0.05)})
    for found in own.values():
        assert found == pytest.approx(common)


def test_groups_that_differ_clearly_keep_their_own():
    common, own = shrunk({"a": Effect(1.0, 0.05), "b": Effect(0.0, 0.05), "c": Effect(0.0, 0.05)})
    assert own["a"].harm == pytest.approx(1.0, abs=0.01)
    assert abs(own["b"].harm) < 0.01
    assert own["a"].z > 10
    assert common.z < 2


def test_an_unsure_group_is_drawn_towards_the_others():
    _, own = shrunk({"a": Effect(1.0, 0.05), "b": Effect(0.0, 0.05), "c": Effect(2.0, 1.0)})
    assert own["a"].harm > own["c"].harm - 0.5
    assert own["c"].harm < 1.3
    assert own["c"].se < 1.0


def test_one_group_is_as_it_is():
    common, own = shrunk({"": Effect(0.3, 0.1)})
    assert common == pytest.approx((0.3, 0.1))
    assert own == {"": common}


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0.01, 1), st.floats(0.01, 1))
def test_two_groups_have_a_closed_form(one, other, se_one, se_other):
    """The spread between two groups is half of their squared difference, less the mean of their variances."""
    between = max(0.0, (one - other) ** 2 / 2 - (se_one**2 + se_other**2) / 2)
    wide = np.array([1 / (se_one**2 + between), 1 / (se_other**2 + between)])
    middle = (wide * [one, other]).sum() / wide.sum()
    common, own = shrunk({"a": Effect(one, se_one), "b": Effect(other, se_other)})
    assert common == pytest.approx((middle, wide.sum() ** -0.5), abs=1e-9)
    for name, mean, se in (("a", one, se_one), ("b", other, se_other)):
        pull = se**2 / (se**2 + between)
        assert own[name].harm == pytest.approx(mean + pull * (middle - mean), abs=1e-9)
        assert own[name].se == pytest.approx(np.sqrt((1 - pull) * se**2 + pull**2 / wide.sum()), abs=1e-9)


def test_drawn_towards_all_groups_are_nearer_to_the_truth():
    """Eight groups whose harms differ by 0.1, known to 0.2: on average over many, and as sure as they say."""
    rng = np.random.default_rng(0)
    raw, drawn, missed = [], [], []
    for _ in range(300):
        truth = rng.normal(0.2, 0.1, 8)
        seen = truth + rng.normal(0, 0.2, 8)
        _, own = shrunk({str(i): Effect(mean, 0.2) for i, mean in enumerate(seen)})
        found = np.array([effect.harm for effect in own.values()])
        raw.append(((seen - truth) ** 2).mean())
        drawn.append(((found - truth) ** 2).mean())
        missed.append(np.mean(np.abs(found - truth) > 2 * np.array([effect.se for effect in own.values()])))
    assert np.mean(drawn) < 0.6 * np.mean(raw)
    assert 0.02 < np.mean(missed) < 0.2


def test_the_first_columns_of_a_small_design_by_hand():
    """Three generators, their product, and the products of two: each the others' at every run."""
    for row in signs(4).tolist():
        a, b, c, abc, ab, ac, bc = row
        assert abc == a * b * c
        assert (ab, ac, bc) == (-a * b, -a * c, -b * c)
