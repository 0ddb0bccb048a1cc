"""A whole search by cool-downs: what it may spend, what it counts, and what it tells."""

import dataclasses
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError
from augtree.search import Cooldown, search_tree
from augtree.search.play import Play
from augtree.search.rounds import (
    FEW,
    SHORT,
    Budget,
    budget_of,
    duration,
    plan_for,
    searched_space,
    steps_of,
    told_at_the_end,
    usable,
)
from augtree.search.scorers.cooldown import BUDGET, Plan
from augtree.search.trunk import EVERYBODY
from augtree.tasks import Classification
from augtree.transforms import Cutout, Flip, Identity, Posterize, Space, VerticalFlip
from augtree.transforms.traits import ALONE
from support.searches import CORNERS, INVERT, LINEAR, QUICK, bench_on, bright_or_dark, corners, linear_model

DATA = corners(64, 128)
UNBOUNDED = float("inf")


def search(data=DATA, task=LINEAR, space=CORNERS, **more):
    return search_tree(data, task, space, **{"scorer": QUICK, "budget": 6, **more})


# ---- how a budget is spent


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
        ({"looks": [0.3]}, "looks must be places in order"),
        ({"looks": (0.6, 0.3)}, "looks must be places in order"),
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


def test_plans_and_budgets_in_words():
    assert str(Plan(1.5, (0.3, 0.6), 0.2, 2)) == "trunk 1.50, looks after 0.3 and 0.6, then 2 cool-downs of 0.2"
    assert str(Plan(0.7, (), 0.3, 1)) == "trunk 0.70, no looks, then a cool-down of 0.3"
    assert str(Budget(2.0, 45.0)) == "2 trainings, about 90 s here"
    assert [duration(t) for t in (3, 119, 600, 8000)] == ["3 s", "119 s", "10 min", "2.2 h"]


@pytest.mark.parametrize(
    ("trainings", "seconds", "wanted"),
    [(UNBOUNDED, 90.0, 2.25), (UNBOUNDED, UNBOUNDED, BUDGET), (3.5, UNBOUNDED, 3.5)],
)
def test_a_time_is_so_many_trainings_as_this_machine_makes_in_it(trainings, seconds, wanted):
    bench = bench_on(DATA, task=LINEAR)
    bench.run.unit("speed", lambda: ({"seconds_a_step": 0.5}, None))  # 80 steps: 40 s
    assert budget_of(bench, at.Tree(), trainings, seconds) == Budget(wanted, 40.0)


def test_the_speed_is_measured_once_and_changes_no_model():
    bench = bench_on(DATA, task=LINEAR)
    before = bench.trainer.fresh(0)
    found = budget_of(bench, Play(CORNERS).drawn_alike(), UNBOUNDED, 1000.0)
    assert found.trainings == pytest.approx(1000 / found.seconds_a_training)
    assert bench.trainer.passes.forward == 20 * 64
    assert budget_of(bench, at.Tree(), UNBOUNDED, 1000.0) == found
    after = bench.trainer.fresh(0)
    assert torch.equal(before.tensors["weights"], after.tensors["weights"])


def test_a_budget_of_time_is_a_search_of_that_length(monkeypatch):
    monkeypatch.setattr("augtree.search.rounds.time.perf_counter", iter(np.arange(0, 1000, 5.0)).__next__)
    told = {}
    search(budget="4m", watch=lambda what, **about: what == "plan" and told.update(about))
    assert told["search"] == "6 trainings, about 4 min here"  # 5 s for 10 steps, so 40 s for a training


@pytest.mark.parametrize("budget", [0.5, 2, 6])
def test_a_search_costs_what_it_may(budget):
    task = replace(LINEAR, steps=400)
    found = search(task=task, budget=budget, scorer=Cooldown(), workers=1)
    assert 0.88 * budget < found.cost.training_equivalents < 1.02 * budget
    assert found.cost.model_equivalents < found.cost.training_equivalents
    if budget >= 2:
        assert found.cost.model_equivalents > 0.6 * budget


def test_as_many_steps_as_are_foretold():
    """Looks have fewer, since what has left play is not asked for again."""
    foretold = []
    found = search(watch=lambda what, **about: what == "plan" and foretold.append((about["steps"], about["plan"])))
    (steps, plan), rows = foretold[0], found.history
    made = round(plan.trunk * 80) + sum(row["steps"] for row in rows)
    assert 0.8 * steps < made <= steps


def test_more_is_asked_of_a_plan_with_more_factors():
    trainer = LINEAR.prepare(DATA)
    few, many = ({EVERYBODY: Play(Space([Identity()], basics=basics))} for basics in ([Flip()], many_basics()))
    short, long = (plan_for(QUICK, Budget(20.0, 1.0), trainer, plays) for plays in (few, many))
    assert long.trunk < short.trunk
    assert steps_of(short, QUICK, trainer, few) == pytest.approx(steps_of(long, QUICK, trainer, many), rel=0.1)


def many_basics():
    return [Flip(), VerticalFlip(), *(at.wrap(lambda picture: picture, name=f"Same{i}") for i in range(8))]


# ---- what is counted

COUNTED = Counter()


class Counting(torch.autograd.Function):
    """Counts the samples that pass."""

    @staticmethod
    def forward(ctx, logits):
        COUNTED["forward"] += len(logits)
        return logits.clone()

    @staticmethod
    def backward(ctx, gradient):
        COUNTED["backward"] += len(gradient)
        return gradient


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = linear_model()

    def forward(self, pictures):
        return Counting.apply(self.inner(pictures))


@pytest.mark.parametrize("folder", [None, "a"])
def test_the_cost_is_what_went_through_the_model(tmp_path, folder):
    COUNTED.clear()
    found = search(task=replace(LINEAR, model=Counted), out=folder and tmp_path / folder)
    assert (found.cost.forward, found.cost.backward) == (COUNTED["forward"], COUNTED["backward"])
    one = 2 * 80 * 64
    assert found.cost.training_equivalents == pytest.approx(sum(COUNTED.values()) / one, abs=1e-3)
    looks, last = sum("look" in row for row in found.history), len(found.cooled)
    assert found.cost.scorings == looks + last == len(found.history)
    assert sum(row["forward"] for row in found.history) < found.cost.forward


def test_what_lies_in_the_model_is_trunk_cool_downs_and_average(tmp_path):
    found = search(out=tmp_path / "a")
    looked = sum(row["forward"] + row["backward"] for row in found.history if "look" in row)
    speed, measures = 2 * 20 * 64, 128
    one = 2 * 80 * 64
    whole = found.cost.forward + found.cost.backward
    assert found.cost.model_equivalents == pytest.approx((whole - looked - speed - measures) / one, abs=1e-3)


# ---- what is told


def notes_with(result, words):
    return [note for note in result.notes if words in note]


def test_a_budget_without_room_for_looks_is_told_once():
    found = search(budget=0.8)
    (note,) = notes_with(found, "no room for looks")
    assert note.endswith("all of it stays in play (--budget).")
    assert found.findings == []
    assert found.verdict().startswith("Nothing was asked for harm: all of it stays in play.")
    assert not notes_with(search(), "no room for looks")


def test_looks_that_are_not_wanted_are_not_missed():
    found = search(scorer=replace(QUICK, looks=()))
    assert {finding["factor"] for finding in found.findings} == {ALONE}  # the last cool-downs tell of it
    assert "Nothing was asked for harm" in found.verdict()


def test_a_short_training_is_told():
    (note,) = notes_with(search(), "too short to tell")
    assert note.startswith("A training has 80 steps")
    assert not notes_with(search(task=replace(LINEAR, steps=SHORT), budget=1), "too short to tell")


def test_few_validation_samples_are_told():
    few = corners(64, FEW - 1)
    (note,) = notes_with(search(few), "validation samples")
    assert note.startswith(f"Only {FEW - 1} validation samples")
    assert not notes_with(search(), "validation samples:")


def test_a_perfect_accuracy_is_told():
    assert notes_with(search(bright_or_dark(), space=Space([Identity()], basics=[VerticalFlip()])), "is perfect")
    rng = np.random.default_rng(0)
    unclear = dataclasses.replace(DATA, labels=torch.from_numpy(rng.permutation(DATA.labels.numpy())))
    assert not notes_with(search(unclear), "is perfect")


def test_no_error_is_perfect_too():
    trainer = replace(LINEAR, metric="error").prepare(DATA)
    assert "The validation error is perfect" in next(iter(told_at_the_end(trainer, {"error": 0.0})))
    assert list(told_at_the_end(trainer, {"error": 1.0})) == []
    trainer = replace(LINEAR, metric="loss").prepare(DATA)
    assert list(told_at_the_end(trainer, {"loss": 0.0})) == []


def broken(picture):
    raise ValueError(f"no picture of {picture.shape[-1]} pixels")


def test_what_fails_is_left_out_and_told():
    wrong = at.wrap(broken, name="Wrong")
    found = search(space=Space([INVERT, wrong], basics=[Flip(1.0)], own=[wrong]))
    (note,) = notes_with(found, "left out")
    assert note.startswith("Wrong failed and is left out: ")
    assert note.endswith("ValueError: no picture of 6 pixels")
    assert "Wrong" not in str(found.mixture) + str(found.findings)


def test_a_basic_that_fails_is_left_out():
    wrong = at.wrap(broken, name="Wrong")
    space, notes = usable(Space([Posterize(0.2)], basics=[Flip(1.0), wrong]), LINEAR.prepare(DATA))
    assert [basic.name for basic in space.basics] == ["Flip"]
    assert list(space.distinct) == [Identity(), Posterize(0.2)]
    assert len(notes) == 1


def test_a_full_disk_is_no_fault_of_a_transform(monkeypatch):
    trainer = LINEAR.prepare(DATA)
    monkeypatch.setattr(trainer, "augmented", lambda *_: (_ for _ in ()).throw(OSError("no space left on device")))
    with pytest.raises(OSError, match="no space left"):
        usable(CORNERS, trainer)


def test_what_comes_with_the_data_is_searched_and_not_done_beforehand():
    flipped = dataclasses.replace(DATA, preprocess=Flip())
    assert searched_space(CORNERS, flipped, LINEAR)[1].preprocess is None
    assert searched_space(Space([INVERT]), flipped, LINEAR)[1].preprocess == "default"
    mine = replace(LINEAR, preprocess=Flip())
    assert searched_space(CORNERS, flipped, mine)[1].preprocess == Flip()
    assert str(LINEAR.prepare(flipped).preprocess) == str(Flip())


# ---- what comes out


def test_the_folder_has_the_policies_and_a_model_that_does_as_it_says(tmp_path):
    from safetensors.torch import load_file

    found = search(out=tmp_path / "a")
    content = json.loads((tmp_path / "a" / "result.json").read_text())
    assert at.load(tmp_path / "a" / "tree.json") == found.tree
    assert at.load(tmp_path / "a" / "mixture.json") == found.mixture
    assert at.load(tmp_path / "a" / "single.json") == found.single
    assert content["verdict"] == found.verdict()
    assert content["findings"] == [dict(finding) for finding in found.findings]
    model = linear_model()
    model.load_state_dict(load_file(tmp_path / "a" / "model.safetensors"))
    rows = torch.from_numpy(DATA.indices("val"))
    mean, std = (torch.tensor(value).view(1, -1, 1, 1) for value in (found.mean, found.std))
    with torch.no_grad():
        said = model((DATA.samples[rows].float() / 255 - mean) / std).argmax(1)
    accuracy = float((said == DATA.labels[rows]).float().mean())
    assert accuracy == pytest.approx(found.measures["accuracy"])
    assert f"accuracy {accuracy:.4f} on the validation data" in found.verdict()


def test_workers_change_nothing(tmp_path):
    """Other processes, the same bytes."""
    task, space = replace(LINEAR, steps=40), Space([Cutout(0.3)], basics=[Flip(1.0)])
    for workers in (1, 2):
        search(task=task, space=space, out=tmp_path / str(workers), workers=workers)
    one, two = (tmp_path / str(workers) for workers in (1, 2))
    for name in ("tree.json", "mixture.json", "single.json", "model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    results = [json.loads((place / "result.json").read_text()) for place in (one, two)]
    for result in results:
        del result["cost"]["seconds"]
    assert results[0] == results[1]


def test_a_task_that_cannot_be_sent_needs_one_worker(tmp_path):
    task = Classification(model=lambda: linear_model(), steps=20, device="cpu")
    with pytest.raises(ArgumentError, match="workers must be 1 where the task or a transform cannot be sent"):
        search(task=task, workers=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert search(task=task, budget=2).tree is not None


def test_another_budget_is_another_search(tmp_path):
    search(out=tmp_path / "a", budget=2)
    with pytest.raises(at.errors.OtherRunError, match="differs in /budget"):
        search(out=tmp_path / "a", budget=3)
