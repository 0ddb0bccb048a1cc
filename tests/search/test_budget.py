"""What a search by cool-downs may spend, and how long that is."""

import pytest
import torch

import augtree as at
from augtree.search.budget import Budget, budget_for, duration, plan_for, planned_steps
from augtree.search.play import UNGROUPED, Play
from augtree.search.scorers.cooldown import BUDGET
from augtree.transforms import Flip, Identity, Space, VerticalFlip
from support.searches import CORNERS, LINEAR, QUICK, context_on, corners

DATA = corners(64, 128)
UNBOUNDED = float("inf")


def test_budgets_in_words():
    assert str(Budget(2.0, 45.0)) == "2 trainings, about 90 s here"
    assert [duration(t) for t in (3, 119, 600, 8000)] == ["3 s", "119 s", "10 min", "2.2 h"]


@pytest.mark.parametrize(
    ("trainings", "seconds", "wanted"),
    [(UNBOUNDED, 90.0, 2.25), (UNBOUNDED, UNBOUNDED, BUDGET), (3.5, UNBOUNDED, 3.5)],
)
def test_a_time_is_so_many_trainings_as_this_machine_makes_in_it(trainings, seconds, wanted):
    context = context_on(DATA, task=LINEAR)
    context.run.unit("speed", lambda: ({"seconds_a_step": 0.5}, None))  # 80 steps: 40 s
    assert budget_for(context, at.Tree(), (trainings, seconds)) == Budget(wanted, 40.0)


def test_the_speed_is_measured_once_and_changes_no_model():
    context = context_on(DATA, task=LINEAR)
    before = context.trainer.fresh(0)
    found = budget_for(context, Play(CORNERS).mixture_with_shared_draws(), (UNBOUNDED, 1000.0))
    assert found.trainings == pytest.approx(1000 / found.seconds_per_training)
    assert context.trainer.passes.forward == 20 * 64
    assert budget_for(context, at.Tree(), (UNBOUNDED, 1000.0)) == found
    after = context.trainer.fresh(0)
    assert torch.equal(before.tensors["weights"], after.tensors["weights"])


def test_more_is_asked_of_a_plan_with_more_factors():
    trainer = LINEAR.prepare(DATA)
    few, many = ({UNGROUPED: Play(Space([Identity()], basics=basics))} for basics in ([Flip()], many_basics()))
    short, long = (plan_for(QUICK, Budget(20.0, 1.0), trainer, plays) for plays in (few, many))
    assert long.trunk < short.trunk
    assert planned_steps(short, QUICK, trainer, few) == pytest.approx(
        planned_steps(long, QUICK, trainer, many), rel=0.1
    )


def many_basics():
    return [Flip(), VerticalFlip(), *(at.wrap(lambda picture: picture, name=f"Same{i}") for i in range(8))]
