"""The options of the scorer cooldown, and the plan that they make of a budget."""

import pytest

from augtree.errors import ArgumentError
from augtree.search import Cooldown
from augtree.search.scorers.cooldown import Plan


def test_what_looks_and_cool_downs_leave_is_the_trunk():
    plan = Cooldown().plan(2.0, [0.25, 0.3], 0.25)
    assert plan.trunk == pytest.approx(2.0 - 0.25 - 0.3 - 2 * 0.25)
    assert plan.looks == pytest.approx((0.3, 0.6))
    assert (plan.cool, plan.last) == (0.2, 2)


@pytest.mark.parametrize(
    ("budget", "looks", "last", "trunk"),
    [
        (1.55, 2, 2, 0.5),
        (1.5, 2, 1, 0.7),
        (1.25, 1, 1, 0.7),
        (0.9, 0, 1, 0.65),
        (0.5, 0, 1, 0.25),
        (0.3, 0, 1, 0.05),
    ],
)
def test_with_less_there_are_fewer_cool_downs_at_the_end_then_fewer_looks(budget, looks, last, trunk):
    plan = Cooldown().plan(budget, [0.25, 0.3], 0.25)
    assert (len(plan.looks), plan.last) == (looks, last)
    assert plan.trunk == pytest.approx(trunk)


def test_with_less_than_a_cool_down_it_is_a_short_training():
    plan = Cooldown().plan(0.2, [0.25, 0.3], 0.25)
    assert (plan.looks, plan.last) == ((), 1)
    assert (plan.trunk, plan.cool) == pytest.approx((0.14, 0.06))


def test_looks_do_not_stand_behind_two_thirds_of_the_trunk():
    plan = Cooldown(looks=(0.3, 0.6)).plan(1.6, [0.25, 0.3], 0.2)
    assert plan.trunk == pytest.approx(0.65)
    assert plan.looks[-1] == pytest.approx(0.65 * 2 / 3)
    assert plan.looks[0] == pytest.approx(plan.looks[1] / 2)


def test_without_looks_all_is_trunk():
    assert Cooldown(looks=()).plan(1.0, [], 0.1) == Plan(pytest.approx(0.8), (), 0.2, 2)


def test_a_look_has_no_fewer_steps_than_the_shortest_and_no_more_than_a_quarter():
    assert Cooldown().look_steps(1500) == 42
    assert Cooldown().look_steps(100) == 10
    assert Cooldown().look_steps(20) == 5
    assert Cooldown().look_steps(2) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"looks": [0.3]}, "looks must be a tuple of increasing lengths"),
        ({"looks": (0.6, 0.3)}, "looks must be a tuple of increasing lengths"),
        ({"looks": (0.0,)}, "looks must be a number in"),
        ({"cool": 0}, "cool must be a number in"),
        ({"last": 0}, "last must be a whole number from 1"),
        ({"shortest": 0.5}, "shortest must be a whole number from 1"),
        ({"sure": -1}, "sure must be a number in"),
        ({"likely": -1}, "likely must be a number in"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        Cooldown(**options)


def test_plans_in_words():
    assert str(Plan(1.5, (0.3, 0.6), 0.2, 2)) == "trunk 1.50, looks after 0.3 and 0.6, then 2 cool-downs of 0.2"
    assert str(Plan(0.7, (), 0.3, 1)) == "trunk 0.70, no looks, then a cool-down of 0.3"
