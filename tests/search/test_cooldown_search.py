"""A whole search by cool-downs: what it spends, what it counts, and what it reports."""

import dataclasses
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError
from augtree.runs.events import Began, Finished, Planned, Working
from augtree.runs.warnings import SHORT_TRAINING
from augtree.search import Cooldown, search_tree
from augtree.search.cooldown_search import (
    closing_notes,
    without_failing_transforms,
    without_preprocess,
)
from augtree.search.cooldowns import MIN_VAL_TO_CHOOSE
from augtree.search.grow import NodeBuilt
from augtree.search.trunk_events import CooledDown, FactorTested, TrunkTrained
from augtree.search.verdict import UNTESTED
from augtree.tasks import Classification
from augtree.transforms import Cutout, Flip, Identity, Posterize, Space, VerticalFlip
from support.searches import CORNERS, INVERT, LINEAR, QUICK, bright_or_dark, corners, linear_model

DATA = corners(64, 128)


def search(data=DATA, task=LINEAR, space=CORNERS, **more):
    return search_tree(data, task, space, **{"scorer": QUICK, "budget": 6, **more})


def planned(events):
    """The plan, which is the first event after the beginning."""
    assert isinstance(events[1], Planned)
    return events[1]


# ---- what a budget buys


def test_a_budget_of_time_is_a_search_of_that_length(monkeypatch):
    monkeypatch.setattr("augtree.search.budget.time.perf_counter", iter(np.arange(0, 1000, 5.0)).__next__)
    events = []
    search(budget="4m", watch=events.append)
    (line,) = [line for line in planned(events).lines if line.startswith("Budget: ")]
    assert line.startswith(
        "Budget: 6 trainings, about 4 min here; trunk "
    )  # 5 s for 10 steps, so 40 s for a training


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
    events = []
    found = search(watch=events.append)
    trunk = max(event.steps for event in events if isinstance(event, TrunkTrained))
    made = trunk + sum(row["steps"] for row in found.history)
    assert 0.8 * planned(events).steps < made <= planned(events).steps


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


# ---- notes and events


def notes_with(result, words):
    return [note for note in result.notes if words in note]


def test_a_budget_without_room_for_looks_is_told_once():
    found = search(budget=0.8)
    (note,) = notes_with(found, "no room for looks")
    enough = float(re.search(r"no room for looks \(--budget ([\d.]+) would have\): ", note)[1])
    events = []
    for budget in (enough - 0.2, enough):
        search(budget=budget, watch=events.append)
    assert ["a look after" in " ".join(e.lines) for e in events if isinstance(e, Planned)] == [False, True]
    assert [e.lines[0].count("nothing is tested on the way") for e in events if isinstance(e, Planned)] == [1, 0]
    assert found.findings == []
    assert found.verdict().startswith(UNTESTED)
    assert not notes_with(search(), "no room for looks")


def test_looks_that_are_not_wanted_are_not_missed():
    found = search(scorer=replace(QUICK, looks=()))
    assert found.findings == []
    assert UNTESTED in found.verdict()
    assert not notes_with(found, "--budget")


def test_a_short_training_is_told():
    (note,) = notes_with(search(), "too short to tell")
    assert note.startswith("A training has 80 steps")
    assert not notes_with(search(task=replace(LINEAR, steps=SHORT_TRAINING), budget=1), "too short to tell")


def test_few_validation_samples_are_told():
    few = corners(64, MIN_VAL_TO_CHOOSE - 1)
    (note,) = notes_with(search(few), "validation samples")
    assert note.startswith(f"Only {MIN_VAL_TO_CHOOSE - 1} validation samples")
    assert not notes_with(search(), "validation samples:")


def test_a_perfect_accuracy_is_told():
    assert notes_with(search(bright_or_dark(), space=Space([Identity()], basics=[VerticalFlip()])), "is perfect")
    rng = np.random.default_rng(0)
    unclear = dataclasses.replace(DATA, labels=torch.from_numpy(rng.permutation(DATA.labels.numpy())))
    assert not notes_with(search(unclear), "is perfect")


def test_no_error_is_perfect_too():
    trainer = replace(LINEAR, metric="error").prepare(DATA)
    assert "The validation error is perfect" in next(iter(closing_notes(trainer, {"error": 0.0})))
    assert list(closing_notes(trainer, {"error": 1.0})) == []
    trainer = replace(LINEAR, metric="loss").prepare(DATA)
    assert list(closing_notes(trainer, {"loss": 0.0})) == []


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
    space, notes = without_failing_transforms(
        Space([Posterize(0.2)], basics=[Flip(1.0), wrong]), LINEAR.prepare(DATA)
    )
    assert [basic.name for basic in space.basics] == ["Flip"]
    assert list(space.distinct) == [Identity(), Posterize(0.2)]
    assert len(notes) == 1


def test_a_full_disk_is_no_fault_of_a_transform(monkeypatch):
    trainer = LINEAR.prepare(DATA)
    monkeypatch.setattr(trainer, "augmented", lambda *_: (_ for _ in ()).throw(OSError("no space left on device")))
    with pytest.raises(OSError, match="no space left"):
        without_failing_transforms(CORNERS, trainer)


def test_what_comes_with_the_data_is_searched_and_not_done_beforehand():
    flipped = dataclasses.replace(DATA, preprocess=Flip())
    assert without_preprocess(LINEAR, CORNERS, flipped).preprocess is None
    assert without_preprocess(LINEAR, Space([INVERT]), flipped).preprocess == "default"
    mine = replace(LINEAR, preprocess=Flip())
    assert without_preprocess(mine, CORNERS, flipped).preprocess == Flip()
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


# ---- events


def test_every_step_and_every_cool_down_is_an_event():
    events = []
    found = search(watch=events.append)
    kinds = Counter(type(event) for event in events)
    assert kinds.keys() == {Began, Planned, TrunkTrained, Working, CooledDown, FactorTested, NodeBuilt, Finished}
    assert kinds[Working] == kinds[CooledDown]  # each is announced before it begins
    assert [event.text for event in events if isinstance(event, Working)][-1].startswith("cool-down on ")
    assert planned(events).notes == [note for note in found.notes if "is perfect" not in note]
    assert kinds[Planned] == 1
    assert kinds[CooledDown] == len(found.history)
    assert kinds[FactorTested] == len(found.findings)
    cooled = [event for event in events if isinstance(event, CooledDown)]
    assert [(e.candidate, e.loss, e.steps, e.look) for e in cooled] == [
        (row["candidate"], row["loss"], row["steps"], row.get("look")) for row in found.history
    ]
    assert [event.finding.row() for event in events if isinstance(event, FactorTested)] == list(found.findings)
    (node,) = [event for event in events if isinstance(event, NodeBuilt)]
    assert (node.node, node.growth.tree) == (1, found.tree)


def test_the_length_of_the_trunk_rises_to_its_end():
    events = []
    found = search(watch=events.append)
    steps = [event.steps for event in events if isinstance(event, TrunkTrained)]
    assert steps == sorted(steps)
    assert 0 < steps[-1] < found.cost.model_equivalents * 80
