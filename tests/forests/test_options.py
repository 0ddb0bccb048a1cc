"""The options of Algorithm 2."""

import dataclasses
import json

import pytest

from augtree.errors import ArgumentError
from augtree.forests import Weighting


def test_options_of_the_weights_have_defaults_of_the_paper():
    assert (Weighting().alpha, Weighting().eta) == (50, 0.1)


def test_options_come_back_from_a_file_that_may_hold_those_of_other_versions():
    options = Weighting(alpha=7, eta=0.0, target="worst", batch=9)
    spec = json.loads(json.dumps(options.spec()))
    assert Weighting.from_spec(spec) == options
    assert Weighting.from_spec({**spec, "legs": 3}) == options
    assert Weighting.from_spec({"alpha": 7}) == Weighting(alpha=7)
    assert list(spec) == [field.name for field in dataclasses.fields(Weighting)]


def test_options_by_name_are_known_ones():
    assert Weighting.of({"alpha": 7}) == Weighting(alpha=7)
    with pytest.raises(ArgumentError, match="legs must be one of alpha, eta, start, .*, batch, got 3"):
        Weighting.of({"legs": 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 2.5}, "alpha must be a whole number"),
        ({"eta": -0.1}, "eta must be a number in"),
        ({"start": "even"}, "start must be one of uniform, proportions"),
        ({"outer": "test"}, "outer must be one of val, train"),
        ({"d": "sign"}, "d must be one of raw, cosine"),
        ({"product": "fisher"}, "product must be one of gauss-newton, auto, hessian"),
        ({"damping": -1}, "damping must be a number in"),
        ({"iterations": 0}, "iterations must be a whole number from 1"),
        ({"tolerance": 0}, "tolerance must be a number in"),
        ({"scale": 0}, "scale must be a number in"),
        ({"batch": 0}, "batch must be a whole number from 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        Weighting(**options)


@pytest.mark.parametrize(("options", "fewest"), [({}, 1), ({"eta": 0}, 0), ({"outer": "train"}, 0)])
def test_a_group_needs_validation_samples_only_where_they_are_looked_at(options, fewest):
    assert Weighting(**options).fewest_val == fewest
