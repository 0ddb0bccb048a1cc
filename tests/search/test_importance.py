"""How much each transform of a tree brought."""

import numpy as np
import pytest

from augtree.runs.store import Run
from augtree.search.grow import Built, Growth
from augtree.search.importance import Importance, confirmed_gains, importances
from augtree.transforms import Cutout, Identity, Invert
from support.searches import INVERT


def importances_of(growth, run, seed):
    return importances(growth, confirmed_gains(growth, run), seed)


def run_with(winners, growth):
    """A run in which these gains were confirmed: node -> repeats."""
    run = Run.begin(None, {})
    built = dict(growth.built)
    for node, repeats in winners.items():
        about = {"candidate": str(built[node].transform), "p": built[node].p} if node in built else {"candidate": "x"}
        for i, gains in enumerate(repeats):
            run.unit(f"node/{node}/confirm/{i}/yardstick", lambda: ({"candidate": "yardstick"}, np.full(50, 9.0)))
            run.unit(f"node/{node}/confirm/{i}/a/winner", lambda gains=gains, about=about: (about, gains))
            other = {**about, "candidate": "one that was tried before"}
            run.unit(f"node/{node}/confirm/{i}/b/winner", lambda gains=gains, other=other: (other, -7 * gains))
    return run


def growth_of(*built):
    return Growth(3, 0, built=tuple((node, Built(transform, 0.5, improves)) for node, transform, improves in built))


ONE = growth_of((1, INVERT, True))


def drawn(seed, mean, count=400):
    return np.random.default_rng(seed).normal(mean, 1.0, count)


def test_an_importance_is_the_sum_of_confirmed_gains():
    one, two = drawn(0, 0.5), drawn(1, 0.2)
    growth = growth_of((1, INVERT, True), (2, Invert(0.4), True), (3, INVERT, False))
    run = run_with({1: [one, one + 1.0], 2: [two], 3: [drawn(2, 9)], 10: [drawn(3, 9)]}, growth)
    found = importances_of(growth, run, 0)
    assert list(found) == ["Invert"]
    assert found["Invert"].gain == pytest.approx(one.mean() + 0.5 + two.mean())


def test_the_largest_stands_first():
    growth = growth_of((1, INVERT, True), (2, Cutout(0.2), True))
    run = run_with({1: [drawn(0, 0.1)], 2: [drawn(1, 5.0)]}, growth)
    assert list(importances_of(growth, run, 0)) == ["Cutout", "Invert"]


def test_an_empty_tree_has_none():
    assert importances_of(growth_of((1, Identity(), False)), run_with({}, ONE), 0) == {}


def test_the_spread_is_the_standard_error():
    """Of the mean over samples; a thousand bootstraps know it to about 2 %."""
    gains = drawn(4, 0.3)
    found = importances_of(ONE, run_with({1: [gains]}, ONE), 0)["Invert"]
    assert found.spread == pytest.approx(gains.std() / np.sqrt(len(gains)), rel=0.1)
    assert importances_of(ONE, run_with({1: [gains]}, ONE), 0)["Invert"] == found
    assert importances_of(ONE, run_with({1: [gains]}, ONE), 1)["Invert"].spread != found.spread


def test_repeats_are_averaged_sample_by_sample():
    """Their noise goes down, that of the samples stays."""
    samples = drawn(5, 0.3)
    noise = drawn(6, 0.0)
    found = importances_of(ONE, run_with({1: [samples + noise, samples - noise]}, ONE), 0)["Invert"]
    assert found.spread == pytest.approx(samples.std() / 20, rel=0.1)


def test_two_appearances_share_their_samples():
    """The same gains twice: twice the gain, twice the spread, not the square root of two times."""
    gains = drawn(7, 0.3)
    growth = growth_of((1, INVERT, True), (2, INVERT, True))
    found = importances_of(growth, run_with({1: [gains], 2: [gains]}, growth), 0)["Invert"]
    assert found.spread == pytest.approx(2 * gains.std() / 20, rel=0.1)


def test_what_one_appearance_gains_and_another_loses_cancels():
    gains = drawn(8, 0.0)
    growth = growth_of((1, INVERT, True), (2, INVERT, True))
    found = importances_of(growth, run_with({1: [0.5 + gains], 2: [0.5 - gains]}, growth), 0)["Invert"]
    assert found.gain == pytest.approx(1.0)
    assert found.spread < 1e-12


def test_a_node_without_gains_has_no_importance():
    """The root of a search by cool-downs is what all are compared with."""
    growth = growth_of((1, Cutout(0.2), True), (2, INVERT, True))
    assert list(importances(growth, {2: drawn(0, 0.5)}, 0)) == ["Invert"]


def test_an_importance_in_words():
    assert str(Importance(0.25, 0.0125)) == "0.2500 ± 0.0125"
