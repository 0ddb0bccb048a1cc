"""The options of the scorer cooldown, and the plan that they make of a budget."""

import pytest

from augtree.errors import ArgumentError
from augtree.search import Cooldown
from augtree.search.scorers.cooldown import LOOKS, Looks, Plan

TWO = Cooldown(cool=0.2, last=2)


def test_what_looks_and_cool_downs_leave_is_the_trunk():
    plan = TWO.plan(2.0, LOOKS, [0.25, 0.3], 0.25)
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
    plan = TWO.plan(budget, LOOKS, [0.25, 0.3], 0.25)
    assert (len(plan.looks), plan.last) == (looks, last)
    assert plan.trunk == pytest.approx(trunk)


def test_with_less_than_a_cool_down_it_is_a_short_training():
    plan = TWO.plan(0.2, LOOKS, [0.25, 0.3], 0.25)
    assert (plan.looks, plan.last) == ((), 1)
    assert (plan.trunk, plan.cool) == pytest.approx((0.14, 0.06))


def test_looks_do_not_stand_behind_two_thirds_of_the_trunk():
    plan = TWO.plan(1.6, (0.3, 0.6), [0.25, 0.3], 0.2)
    assert plan.trunk == pytest.approx(0.65)
    assert plan.looks[-1] == pytest.approx(0.65 * 2 / 3)
    assert plan.looks[0] == pytest.approx(plan.looks[1] / 2)


def test_without_looks_all_is_trunk():
    assert TWO.plan(1.0, (), [], 0.1) == Plan(pytest.approx(0.8), (), 0.2, 2)


def test_a_look_has_no_fewer_steps_than_the_shortest_and_no_more_than_a_quarter():
    assert Cooldown().looks_in(1500).steps == 42
    assert Cooldown().looks_in(100).steps == 10
    assert Cooldown().looks_in(20).steps == 5
    assert Cooldown().looks_in(2).steps == 1


def test_short_trainings_have_one_look_at_basics_alone():
    assert Cooldown().looks_in(874).styles is False
    assert Cooldown().looks_in(876) == Looks((0.3, 0.6), 25, styles=True)
    assert Cooldown().looks_in(500) == Looks((0.5,), 25, styles=False)


def test_what_is_given_holds_in_short_trainings_too():
    assert Cooldown(looks=(0.2, 0.4)).looks_in(500) == Looks((0.2, 0.4), 25, styles=True)
    assert Cooldown(look=0.1).looks_in(500) == Looks((0.5,), 50, styles=False)
    assert Cooldown(styles=True).looks_in(500) == Looks((0.5,), 25, styles=True)
    assert Cooldown(styles=False).looks_in(1500) == Looks((0.3, 0.6), 42, styles=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"looks": [0.3]}, "looks must be a tuple of increasing lengths"),
        ({"looks": (0.6, 0.3)}, "looks must be a tuple of increasing lengths"),
        ({"styles": 1}, "styles must be True or False"),
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
    assert str(Plan(1.4, (0.5,), 0.4, 1)) == "trunk 1.40, a look after 0.5, then a cool-down of 0.4"
    assert str(Plan(0.7, (), 0.3, 1)) == "trunk 0.70, no looks, then a cool-down of 0.3"
