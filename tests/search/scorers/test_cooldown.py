"""The options of the scorer cooldown, and the plan that they make of a budget."""

import pytest

from augtree.errors import ArgumentError
from augtree.search import Cooldown
from augtree.search.scorers.cooldown import Looks, Plan

TWO = Cooldown(cool=0.2, last=2)
EXTRA = 0.05
"""What each of the last cool-downs costs beside its length."""


def looks_at(*places):
    return Looks(places, 42, styles=True)


TWO_LOOKS = looks_at(0.3, 0.6)


def test_what_looks_and_cool_downs_leave_is_the_trunk():
    plan = TWO.plan(2.0, TWO_LOOKS, [0.25, 0.3], EXTRA)
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
    plan = TWO.plan(budget, TWO_LOOKS, [0.25, 0.3], EXTRA)
    assert (len(plan.looks), plan.last) == (looks, last)
    assert plan.trunk == pytest.approx(trunk)


def test_with_less_than_a_cool_down_it_is_a_short_training():
    plan = TWO.plan(0.2, TWO_LOOKS, [0.25, 0.3], EXTRA)
    assert (plan.looks, plan.last) == ((), 1)
    assert (plan.trunk, plan.cool) == pytest.approx((0.14, 0.06))


def test_looks_do_not_stand_behind_two_thirds_of_the_trunk():
    plan = TWO.plan(1.6, TWO_LOOKS, [0.25, 0.3], 0.0)
    assert plan.trunk == pytest.approx(0.65)
    assert plan.looks[-1] == pytest.approx(0.65 * 2 / 3)
    assert plan.looks[0] == pytest.approx(plan.looks[1] / 2)


def test_without_looks_all_is_trunk():
    plan = TWO.plan(1.0, looks_at(), [], -0.1)
    assert plan == Plan(pytest.approx(0.8), (), 0.2, 2)


@pytest.mark.parametrize("last", [1, 2])
def test_the_cool_down_is_as_long_as_in_a_training_of_trunk_and_cool_down(last):
    plan = Cooldown(last=last).plan(2.0, looks_at(), [], EXTRA)
    assert plan.cool == pytest.approx(0.3 * (plan.trunk + plan.cool))
    assert plan.trunk + last * (plan.cool + EXTRA) == pytest.approx(2.0)


def test_flips_and_turns_are_tested_within_the_first_two_thirds_of_a_trunk_that_is_long_enough():
    plan = Cooldown().plan
    assert plan(2.0, looks_at(), [], 0.0, 0.1).tests == (0.5,)
    assert plan(2.0, looks_at(), [], 0.0, 0.1).trunk == pytest.approx(0.7 * 1.9)
    assert plan(0.9, looks_at(), [], 0.0, 0.1).tests == pytest.approx((0.56 * 2 / 3,))
    assert plan(0.8, looks_at(), [], 0.0, 0.1) == Plan(pytest.approx(0.56), (), pytest.approx(0.24), 1)
    assert plan(2.0, looks_at(), [], 0.0, None).tests == ()
    assert Cooldown(tests=(0.2, 0.4)).plan(2.0, looks_at(), [], 0.0, 0.1).tests == (0.2, 0.4)


def looks_in(options, steps):
    return options.looks_in(steps, needed=True)


def test_a_look_has_no_fewer_steps_than_the_shortest_and_no_more_than_a_quarter():
    assert [looks_in(Cooldown(), steps).steps for steps in (1500, 100, 20, 2)] == [42, 10, 5, 1]
    assert [Cooldown().test_steps(steps) for steps in (1500, 100, 20, 2)] == [60, 10, 5, 1]


def test_short_trainings_have_one_look_at_basics_alone():
    assert looks_in(Cooldown(), 874).styles is False
    assert looks_in(Cooldown(), 876) == Looks((0.3, 0.6), 25, styles=True)
    assert looks_in(Cooldown(), 500) == Looks((0.5,), 25, styles=False)


def test_there_are_looks_where_they_are_needed_or_asked_for():
    assert Cooldown().looks_in(1500, needed=False).at == ()
    assert Cooldown(looks=()).looks_in(1500, needed=True).at == ()
    assert Cooldown(looks=(0.4,)).looks_in(1500, needed=False) == Looks((0.4,), 42, styles=True)


def test_what_is_given_holds_in_short_trainings_too():
    assert looks_in(Cooldown(looks=(0.2, 0.4)), 500) == Looks((0.2, 0.4), 25, styles=True)
    assert looks_in(Cooldown(look=0.1), 500) == Looks((0.5,), 50, styles=False)
    assert looks_in(Cooldown(styles=True), 500) == Looks((0.5,), 25, styles=True)
    assert looks_in(Cooldown(styles=False), 1500) == Looks((0.3, 0.6), 42, styles=False)


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
        ({"tests": 0.5}, "tests must be a tuple of increasing lengths"),
        ({"tests": (0.5, 0.5)}, "tests must be a tuple of increasing lengths"),
        ({"test": 0}, "test must be a number in"),
        ({"borne": 1.1}, "borne must be a number in"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        Cooldown(**options)


def test_plans_in_words():
    assert str(Plan(1.5, (0.3, 0.6), 0.2, 2)) == "trunk 1.50, looks after 0.3 and 0.6, then 2 cool-downs of 0.2"
    assert str(Plan(1.4, (0.5,), 0.4, 1)) == "trunk 1.40, a look after 0.5, then a cool-down of 0.4"
    tested = Plan(1.3, (0.3,), 0.4, 1, (0.5, 1.0))
    expected = "trunk 1.30, flips and turns tested after 0.5 and 1, a look after 0.3, then a cool-down of 0.4"
    assert str(tested) == expected
    assert str(Plan(0.7, (), 0.3, 1)) == "trunk 0.70, nothing tested, then a cool-down of 0.3"
