import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree.tasks import Classification
from augtree.training.schedules import SCHEDULES, cooldown_rates, rates, warm_up
from augtree.transforms import RandAugment
from support.blobs import blobs, same, task

SHARES = st.floats(0, 1)
STEPS = st.integers(0, 300)


def test_a_warm_up_is_a_line_that_ends_below_the_top():
    assert warm_up(4) == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert warm_up(0) == []


def test_a_cool_down_is_a_line_that_begins_at_the_top():
    assert cooldown_rates(5) == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])
    assert cooldown_rates(1) == [1]
    assert cooldown_rates(0) == []


def test_constant_linear_rises_stays_and_falls():
    found = rates("constant-linear", 100, warmup=0.1, decay=0.3)
    assert found[:10] == pytest.approx(np.arange(1, 11) / 11)
    assert found[10:70] == [1] * 60
    assert found[70:] == pytest.approx(np.linspace(1, 0, 30, endpoint=False))


def test_cosine_rises_and_falls_as_half_a_cosine():
    found = rates("cosine", 100, warmup=0.2, decay=0.3)
    assert found[:20] == warm_up(20)
    assert found[20:] == pytest.approx(np.cos(np.pi * np.arange(80) / 160) ** 2)  # (1 + cos 2x) / 2


def test_the_decay_of_a_cosine_and_of_a_constant_rate_is_no_matter():
    for schedule in ("cosine", "constant"):
        assert rates(schedule, 50, warmup=0.1, decay=0.9) == rates(schedule, 50, warmup=0.1, decay=0.0)


def test_a_constant_rate_has_no_warm_up():
    assert rates("constant", 5, warmup=0.5, decay=0.5) == [1] * 5


def test_where_warm_up_and_decay_are_too_long_together_the_decay_is_shorter():
    assert rates("constant-linear", 10, warmup=0.6, decay=1) == [*warm_up(6), *cooldown_rates(4)]
    assert rates("constant-linear", 10, warmup=1, decay=1) == warm_up(10)


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(steps=STEPS, warmup=SHARES, decay=SHARES)
def test_there_is_a_rate_for_each_step_and_none_is_zero_or_above_the_top(schedule, steps, warmup, decay):
    found = rates(schedule, steps, warmup=warmup, decay=decay)
    assert len(found) == steps
    assert all(0 < rate <= 1 for rate in found)


@given(steps=STEPS, warmup=SHARES, decay=SHARES)
def test_a_rate_never_rises_again(steps, warmup, decay):
    for schedule in ("constant-linear", "cosine"):
        steep = np.sign(np.diff(rates(schedule, steps, warmup=warmup, decay=decay)))
        assert (np.diff(steep) <= 0).all()


@given(steps=st.integers(1, 300), warmup=SHARES, decay=SHARES)
def test_a_trunk_and_its_cool_down_are_the_schedule_of_a_whole_training(steps, warmup, decay):
    fall = min(round(decay * steps), steps - round(warmup * steps))
    trunk = rates("constant-linear", steps, warmup=warmup, decay=0)[: steps - fall]
    assert trunk + cooldown_rates(fall) == rates("constant-linear", steps, warmup=warmup, decay=decay)


@given(steps=STEPS, warmup=SHARES)
def test_without_a_decay_the_top_is_held_to_the_end(steps, warmup):
    rise = round(warmup * steps)
    assert rates("constant-linear", steps, warmup=warmup, decay=0) == [*warm_up(rise), *[1.0] * (steps - rise)]


def test_a_training_in_two_parts_is_the_whole_training():
    """Trunk, then a cool-down: to the last bit what `fit` gives."""
    trainer = task(steps=10, warmup=0.2, decay=0.3, momentum=0.9).prepare(blobs())
    whole = trainer.fit(RandAugment(), 3)
    trunk = trainer.train(trainer.fresh(3), RandAugment(), [0.05 * r for r in [*warm_up(2), *[1.0] * 5]], 3)
    assert same(trainer.train(trunk, RandAugment(), [0.05 * rate for rate in cooldown_rates(3)], 3), whole)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_task_has_the_schedule_times_its_rate(schedule):
    task = Classification(lr=0.25, schedule=schedule, warmup=0.1, decay=0.4)
    assert task.rates(40) == [0.25 * rate for rate in rates(schedule, 40, warmup=0.1, decay=0.4)]


def test_the_mean_rate_of_a_training_is_what_the_shares_say():
    """Half of the warm-up and half of the decay are lost; of a cosine half of all but the warm-up."""
    found = {s: np.mean(rates(s, 10_000, warmup=0.1, decay=0.3)) for s in SCHEDULES}
    assert found == pytest.approx({"constant-linear": 0.8, "cosine": 0.5, "constant": 1}, abs=1e-3)
    assert math.isclose(sum(cooldown_rates(1000)), 500.5)
