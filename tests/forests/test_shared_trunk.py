"""Forests from one trunk: each group's play, the weights, and runs that can be stopped anywhere."""

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, DataError, OtherRunError, RunError
from augtree.forests import Weighting, search_forest
from augtree.forests.search import search_on_shared_trunk
from augtree.forests.shared_trunk import FOREST, ONE_FOR_ALL, SharedTrunk
from augtree.runs import faults
from augtree.runs.events import Note, Planned
from augtree.runs.store import VERSION, Run
from augtree.search import Cooldown, Density
from augtree.search.options import SearchOptions
from augtree.search.scorers.cooldown import Plan
from augtree.search.trunk import Trunk
from augtree.tasks import Classification
from augtree.transforms import Cutout, Flip, Identity, RandAugment, Space, VerticalFlip
from support.damage import write_spec
from support.inline import Inline
from support.searches import context_on
from support.sided import ALIKE, APART, HOW, QUICK, SPACE, TASK, linear, sided

pytestmark = pytest.mark.usefixtures("quick_disk")


def search(data=APART, task=TASK, space=SPACE, **more):
    return search_forest(data, task, space, **{**HOW, **more})


def search_by(kind):
    """A search, in memory, by a shared trunk of some kind."""
    context = context_on(APART, SPACE, task=TASK)
    made = kind(context, SearchOptions(scorer=QUICK, budget=6), Weighting(alpha=8, eta=0.3))
    return search_on_shared_trunk(made, SPACE, plain=False, pairs=False)


def kept(folder):
    """What must be the same to the byte, but for times."""
    names = ("forest.json", "model.safetensors", "weights.csv", "groups.csv")
    result = json.loads((folder / "result.json").read_text())
    del result["cost"]["search_seconds"]
    return {name: (folder / name).read_bytes() for name in names} | {"result": result}


def names_in(tree):
    return {part.name for part, _ in tree[1].transform.pairs}


# ---- planted differences between groups


@pytest.mark.parametrize("seed", range(3))
def test_what_harms_one_group_leaves_the_play_of_that_group_alone(seed):
    """Classes of a are told by left and right, those of b by above and below."""
    found = search(sided("left or right", "upper or lower", seed=seed), seed=seed)
    assert found.out_of_play == {"a": ["Flip"], "b": ["VerticalFlip"]}
    assert names_in(found.forest["a"].tree) == {"VerticalFlip", "OneOf"}
    assert names_in(found.forest["b"].tree) == {"Flip", "OneOf"}
    (note,) = [note for note in found.notes if "one policy for all" in note]
    assert note.startswith("The forest is better than one policy for all groups by ")


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_are_alike_have_the_same_in_play(seed):
    found = search(sided("left or right", "left or right", seed=seed), seed=seed)
    assert found.out_of_play == {"a": ["Flip"], "b": ["Flip"]}
    assert found.forest["a"].tree == found.forest["b"].tree
    assert not [note for note in found.notes if "one policy for all" in note]
    for finding in found.findings:
        harms = [group["harm"] for group in finding["groups"].values()]
        assert max(harms) - min(harms) < 0.05


def test_a_forest_that_is_clearly_worse_gives_way_to_one_policy_for_all():
    class Worse(SharedTrunk):
        def losses(self, *asked):
            return super().losses(*asked) + 1.0

    found = search_by(Worse)
    assert found.out_of_play == {"a": [], "b": []}
    assert found.forest["a"].tree == found.forest["b"].tree
    assert names_in(found.forest["a"].tree) == {"Flip", "VerticalFlip", "OneOf"}
    (note,) = [note for note in found.notes if "was better than the forest" in note]
    assert note.endswith("in validation loss: all groups have it.")
    assert found.cooled[FOREST][0] == pytest.approx(1.0, abs=0.8)
    assert ONE_FOR_ALL in found.members


def test_a_forest_that_is_worse_within_noise_stays():
    noise = np.random.default_rng(0).normal(0, 30, 256)

    class Noisy(SharedTrunk):
        def losses(self, *asked):
            return super().losses(*asked) + noise - noise.mean() + 1.0

    found = search_by(Noisy)
    assert found.out_of_play == {"a": ["Flip"], "b": ["VerticalFlip"]}
    assert [note for note in found.notes if note.startswith("The forest is worse, within noise, than one policy")]


# ---- the weights


@pytest.mark.parametrize("steps", [20, 400])
def test_what_the_weights_add_to_short_trainings_is_told_before(steps):
    events = []
    brief = {"task": replace(TASK, steps=steps), "scorer": replace(QUICK, looks=()), "budget": 2, "alpha": 50}
    found = search(**brief, watch=events.append)
    more = [
        float(m[1]) for note in found.notes if (m := re.match(r"The forest will cost about ([\d.]+) train", note))
    ]
    told = [i for i, event in enumerate(events) if isinstance(event, Note) and "will cost about" in event.text]
    assert told == ([2] if steps == 20 else [])  # right after the beginning and the plan
    assert found.cost["search_equivalents"] == pytest.approx(2 + sum(more), rel=0.15)


def test_the_weights_begin_with_the_groups_shares_and_are_learned_at_the_end():
    found = search(eta=0.3)
    events = []
    still = search(eta=0, watch=events.append)
    assert still.weights == {"a": 0.5, "b": 0.5}
    assert still.history == []
    assert found.weights != still.weights
    assert sum(found.weights.values()) == pytest.approx(1)
    assert {name: member.weight for name, member in found.forest.groups.items()} == found.weights
    (planned,) = [event for event in events if isinstance(event, Planned)]
    trunk = 80 * float(re.search(r"trunk ([\d.]+)", " ".join(planned.lines))[1])
    assert trunk - 20 < found.history[0]["step"] < trunk  # in the last part of the trunk
    cool = QUICK.cool / 2  # the groups differ
    assert found.history[-1]["step"] == pytest.approx(trunk + cool * 80, abs=8)
    assert found.history[-1]["w"] == found.weights


def test_both_cool_downs_begin_where_the_weights_end_of_the_trunk(whole):
    with Run.open(whole, write=False) as run:
        tail, forest, other = (run.find(key).value for key in ("leg/0", "leg/1", "cool/1"))
    assert other["candidate"] == ONE_FOR_ALL
    assert other["step"] - other["steps"] == tail["step"]
    assert other["step"] == forest["step"]


def test_where_groups_do_not_differ_there_is_one_whole_cool_down(tmp_path):
    search(ALIKE, eta=0, out=tmp_path)
    with Run.open(tmp_path, write=False) as run:
        tail, forest, other = (run.find(key) for key in ("leg/0", "leg/1", "cool/1"))
    assert other is None
    assert forest.value["step"] - tail.value["step"] == round(QUICK.cool * 80)


def test_unequal_groups_begin_with_unequal_weights():
    rows = np.sort(np.concatenate([APART.indices(None, "a"), APART.indices("train", "b")[:32], APART.indices("val")]))
    assert search(APART.take(np.unique(rows)), eta=0).weights == pytest.approx({"a": 2 / 3, "b": 1 / 3})


# ---- what it costs and tells

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
        self.inner = linear()

    def forward(self, pictures):
        return Counting.apply(self.inner(pictures))


@pytest.mark.parametrize("folder", [None, "f"])
def test_the_cost_is_what_went_through_the_model(tmp_path, folder):
    COUNTED.clear()
    found = search(task=replace(TASK, model=Counted), eta=0, out=folder and tmp_path / folder)
    assert (found.passes.forward, found.passes.backward) == (COUNTED["forward"], COUNTED["backward"])
    assert found.cost["search_equivalents"] == pytest.approx(sum(COUNTED.values()) / (2 * 80 * 64), abs=1e-3)


def test_it_costs_what_a_search_may_whatever_the_number_of_groups():
    task = replace(TASK, steps=300)
    for groups in (2, 6):
        names = cycle(f"g{i}" for i in range(groups))
        data = at.data.group(APART, lambda _, names=names: next(names))
        found = search(data, task, scorer=Cooldown(), budget=2, eta=0)
        assert len(found.weights) == groups
        assert 1.8 < found.cost["search_equivalents"] < 2.2


def test_the_folder_has_what_the_result_has(tmp_path):
    found = search(out=tmp_path / "f")
    content = json.loads((tmp_path / "f" / "result.json").read_text())
    assert at.load(tmp_path / "f" / "forest.json") == found.forest
    assert content["out_of_play"] == {"a": ["Flip"], "b": ["VerticalFlip"]}
    assert content["verdict"] == found.verdict()
    assert list(content["cooled"]) == [FOREST, ONE_FOR_ALL]
    assert content["members"] == list(found.members)
    assert {finding["factor"] for finding in content["findings"]} >= {"Flip", "VerticalFlip"}
    assert "| a " in found.to_text()
    assert "flips left-right" in found.to_text()
    accuracy = found.measures["val"]["all"]["accuracy"]
    assert f"accuracy on val data: {accuracy:.4f} on average" in found.verdict()
    with torch.no_grad():
        rows = torch.from_numpy(APART.indices("val"))
        mean, std = (torch.tensor(value).view(1, -1, 1, 1) for value in (found.mean, found.std))
        said = found.model((APART.samples[rows].float() / 255 - mean) / std).argmax(1)
    assert accuracy == pytest.approx(float((said == APART.labels[rows]).float().mean()))


def test_what_a_small_budget_and_a_short_training_cost_is_told_once():
    found = search(budget=0.8)
    for words in ("no room for looks", "too short to tell"):
        assert len([note for note in found.notes if words in note]) == 1
    assert found.findings == []
    assert found.out_of_play == {"a": [], "b": []}


def test_what_fails_is_left_out_and_told():
    def broken(picture):
        raise ValueError("never")

    wrong = at.wrap(broken, name="Wrong")
    found = search(space=Space([Identity(), wrong], basics=[Flip(1.0), VerticalFlip()]))
    assert [note for note in found.notes if note.startswith("Wrong failed and is left out")]
    assert "Wrong" not in str(found.forest)


def test_beside_a_plain_model(tmp_path):
    found = search(plain=True, pairs=True, out=tmp_path / "f")
    assert search(plain=True, pairs=True, out=tmp_path / "f").cost == found.cost
    assert set(found.plain["val"]) == {"all", "a", "b"}
    assert found.similarity["pairs"][0]["groups"] == ["a", "b"]
    assert "without augmentation and weights" in found.verdict()


# ---- killed and resumed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "f"
    search(out=folder)
    return folder


def points(cut, tmp_path):
    passed = cut(10**9)
    search(out=tmp_path / "counted")
    return list(passed)


def test_the_same_seed_gives_the_same_files_and_another_does_not(whole, tmp_path):
    torch.manual_seed(123)
    search(out=tmp_path / "a")
    search(out=tmp_path / "b", seed=1)
    assert kept(tmp_path / "a") == kept(whole)
    assert kept(tmp_path / "b")["model.safetensors"] != kept(whole)["model.safetensors"]


def test_killed_at_any_point_it_ends_the_same(whole, cut, tmp_path):
    """The first and the last time that each named point is passed, and some between."""
    passed = points(cut, tmp_path)
    assert set(passed) == set(faults.POINTS) - {"node.built"}
    last = {name: i for i, name in enumerate(passed, 1)}
    first = {name: i for i, name in reversed(list(enumerate(passed, 1)))}
    for number in sorted({*first.values(), *last.values(), *range(5, len(passed), 29)}):
        out = tmp_path / str(number)
        cut(number)
        with pytest.raises(cut.Error):
            search(out=out)
        cut(10**9)
        at.resume(out, data=APART, task=TASK)
        assert kept(out) == kept(whole), (number, passed[number - 1])


def test_lost_checkpoints_are_made_again(whole, cut, tmp_path):
    kills = 0
    while True:
        cut(8, "unit.recorded")
        try:
            search(out=tmp_path / "f")
            break
        except cut.Error:
            kills += 1
        for path in (tmp_path / "f" / "checkpoints").iterdir():
            path.unlink()
    assert kills > 2
    assert kept(tmp_path / "f") == kept(whole)


def test_workers_change_nothing(whole, tmp_path):
    """Branches that go to others and come back; the processes themselves: tests/runs/executors."""
    others = Inline()
    search(out=tmp_path / "two", executor=others)
    assert len(others.begun) > 8
    assert kept(tmp_path / "two") == kept(whole)


def test_another_search_in_the_same_folder_is_refused(whole):
    for changes, place in (({"budget": 5}, "/budget"), ({"eta": 0.2}, "/weighting/eta"), ({"seed": 1}, "/seed")):
        with pytest.raises(OtherRunError, match=f"differs in .*{place}"):
            search(out=whole, **changes)


def test_a_run_with_a_check_recorded_is_resumed(whole, tmp_path):
    """Nothing checks a forest from one trunk, but its specification holds the argument."""
    old = shutil.copytree(whole, tmp_path / "old")
    spec = json.loads((old / "spec.json").read_text())
    write_spec(old, {**spec, "check": 0.5})
    at.resume(old, data=APART, task=TASK)
    assert kept(old) == kept(whole)


def test_a_run_by_a_scorer_that_is_gone_is_refused_with_one_clear_word(tmp_path):
    spec = {"version": VERSION, "kind": "forest", "scorer": {"name": "anneal", "rungs": [0.1, 0.2]}}
    Run.begin(tmp_path / "old", spec).close()
    message = "old was begun by another version of augtree, with the scorer 'anneal': begin it again"
    with pytest.raises(RunError, match=message):
        at.resume(tmp_path / "old")


# ---- data and options


def test_groups_that_are_too_small_are_told_before_anything_runs(tmp_path):
    rows = np.sort(
        np.concatenate([APART.indices(None, "a"), APART.indices("train", "b"), APART.indices("val", "b")[:7]])
    )
    with pytest.raises(DataError, match="group b has 7 validation samples of at least 8"):
        search(APART.take(rows), out=tmp_path / "f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scorer": Density()}, "scorer must be cooldown with method shared"),
        ({"workers": 0}, "workers must be a whole number from 1"),
        ({"task": Classification(model=lambda: linear(), device="cpu"), "workers": 2}, "workers must be 1 where"),
        ({"alpha": 0}, "alpha must be a whole number from 1"),
        ({"rungs": 3}, "rungs must be one of alpha, eta"),
    ],
)
def test_wrong_options_leave_no_run(tmp_path, changes, message):
    with pytest.raises(ArgumentError, match=message):
        search(out=tmp_path / "f", **changes)
    assert not (tmp_path / "f").exists()


def test_one_group_is_a_search_as_well():
    found = search(at.data.group(ALIKE, lambda _: "one"))
    assert found.weights == {"one": 1.0}
    assert found.out_of_play == {"one": ["Flip"]}


@pytest.mark.parametrize(("trunk", "alpha", "tail"), [(1.0, 8, 16), (1.0, 50, 50), (0.2, 4, 8), (5.0, 3, 15)])
def test_the_weights_are_learned_in_whole_rounds_of_the_trunk_s_last_fifth(trunk, alpha, tail):
    context = context_on(APART, SPACE, task=TASK)
    made = SharedTrunk(context, SearchOptions(scorer=QUICK), Weighting(alpha=alpha))
    assert made.weighted_steps(Plan(trunk, (), 0.3, 2)) == tail


def test_every_look_trains_on_the_groups_own_mixtures(monkeypatch):
    """A group's samples by what that group has in play: the design leaves factors out of all groups at once."""
    seen = []
    losses = Trunk.losses
    monkeypatch.setattr(
        Trunk, "losses", lambda self, number, plays: seen.append(plays) or losses(self, number, plays)
    )
    search(space=Space([RandAugment(), Cutout(0.4)], basics=[Flip(1.0), VerticalFlip()]))
    first, second = seen
    assert all(plays["a"].out == plays["b"].out for plays in first)
    assert len({plays["a"].out for plays in first}) == 4  # two factors
    assert all("Flip" in plays["a"].out for plays in second)
    assert any("Flip" not in plays["b"].out for plays in second)
