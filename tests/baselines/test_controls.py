"""Controls: as long as a search took, averages of cool-downs, whole searches."""

import numpy as np
import pytest
import torch

import augtree as at
from augtree.baselines.controls import restore_control
from augtree.comparison import Longer, Searched, Soup, compare, resume
from augtree.errors import ArgumentError, DataError, TaskError
from augtree.policies.codec import Reader
from augtree.search import Cooldown, Retrain
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates, rates, warm_up
from augtree.transforms import DropNodes, Flip, Posterize, RandAugment, Rotate, Space
from support.blobs import MINE, blobs, same, task

SPACE = Space([Posterize(0.2)], basics=[Flip()])
QUICK = Cooldown(looks=(0.3, 0.6), look=0.2, shortest=4, cool=0.3, renew=4)
POLICY = RandAugment()


@pytest.fixture
def trained(monkeypatch):
    """Every call of Trainer.train: where it began, its policy, its rates, its seed, and what it gave."""
    calls, train = [], Trainer.train

    def told(self, state, policy, rates, seed, *more, **others):
        out = train(self, state, policy, rates, seed, *more, **others)
        calls.append((state, policy, list(rates), seed, out))
        return out

    monkeypatch.setattr(Trainer, "train", told)
    return calls


# ---- Longer


@pytest.mark.parametrize(("length", "steps"), [(2.5, 50), (1, 20), (0.24, 5), (1e-6, 1)])
def test_a_longer_training_has_so_many_steps_and_its_schedule_is_stretched(length, steps, trained):
    trainer = task(steps=20, warmup=0.1, decay=0.4).prepare(blobs())
    state = Longer(length, POLICY).fit(trainer, POLICY, 3)
    assert state.step == steps
    assert [calls[2] for calls in trained] == [
        [0.05 * rate for rate in rates("constant-linear", steps, warmup=0.1, decay=0.4)]
    ]
    assert trainer.passes.total == 2 * steps * 16


def test_a_longer_training_is_a_training_with_more_steps():
    """To the last bit that of a task which asks for so many."""
    other = task(steps=15).prepare(blobs())
    assert same(Longer(2.5).fit(task(steps=6).prepare(blobs()), MINE, 1), other.fit(MINE, 1))


def test_what_it_costs_is_what_it_says():
    policies = {"none": None, "double": Longer(2, POLICY), "triple": Longer(3)}
    policies |= {"once": Longer(1, POLICY), "ra": POLICY}
    found = {row["policy"]: row for row in compare(blobs(), task(), policies, seeds=1).rows}
    judging = 32 / (6 * 2 * 16)  # forward through 16 validation and 16 test pictures
    assert found["none"]["cost"] == pytest.approx(1 + judging, abs=1e-3)
    assert found["double"]["cost"] == pytest.approx(2 + judging, abs=1e-3)
    assert found["triple"]["cost"] == pytest.approx(3 + judging, abs=1e-3)
    assert {**found["once"], "policy": "ra"} == found["ra"]


# ---- Soup


@pytest.mark.parametrize("how", [{}, {"cool": 0.1, "count": 5}, {"count": 1}, {"cool": 2.0, "count": 3}])
@pytest.mark.parametrize("length", [0.5, 1.0, 2.3])
def test_a_soup_costs_its_length_whatever_it_is_made_of(length, how):
    trainer = task(steps=100).prepare(blobs())
    Soup(length, POLICY, **how).fit(trainer, POLICY, 0)
    assert trainer.passes.total / (100 * trainer.passes_per_step) == pytest.approx(length, abs=0.02)


def test_it_costs_its_length_where_a_training_is_short():
    trainer = task(steps=6).prepare(blobs())
    Soup(2).fit(trainer, POLICY, 0)
    assert trainer.passes.total == 2 * 12 * 16


def test_a_soup_is_a_trunk_cool_downs_from_its_end_and_their_average(trained):
    trainer = task(steps=100, warmup=0.04).prepare(blobs())
    final = Soup(2.0, POLICY, cool=0.1, count=3).fit(trainer, POLICY, 5)
    trunk, *downs, renewed = trained
    # 2 trainings of 100 steps, without 3 cool-downs of 10 and 10 steps at rate zero
    assert trunk[2] == [0.05 * rate for rate in [*warm_up(4), *[1.0] * 156]]
    assert same(trunk[0], trainer.fresh(5))
    for begin, policy, falling, _, _ in downs:
        assert begin is trunk[4]
        assert policy is POLICY
        assert falling == [0.05 * rate for rate in cooldown_rates(10)]
    assert len({seed for _, _, _, seed, _ in downs}) == 3
    assert renewed[2] == [0.0] * 10
    assert same(final, renewed[4])


def test_the_weights_are_the_mean_of_the_cool_downs_and_the_statistics_are_new(trained):
    trainer = task(steps=100).prepare(blobs())
    final = Soup(1.0).fit(trainer, POLICY, 0)
    states = [out for *_, out in trained[1:-1]]
    mean = np.mean([state.tensors["weights"].double().numpy() for state in states], axis=0)
    assert np.array_equal(final.tensors["weights"].numpy(), mean.astype(np.float32))
    assert not torch.equal(states[0].tensors["weights"], states[1].tensors["weights"])
    name = next(name for name in final.tensors if name.endswith("running_mean"))
    old = np.mean([state.tensors[name].numpy() for state in states], axis=0)
    assert not np.allclose(final.tensors[name].numpy(), old, atol=1e-4)


def test_at_most_half_of_a_soup_is_cool_downs(trained):
    Soup(0.4, cool=0.3, count=2).fit(task(steps=100).prepare(blobs()), POLICY, 0)
    assert [len(rates) for _, _, rates, _, _ in trained] == [18, 10, 10, 2]


def test_a_soup_of_one_is_a_trunk_and_its_cool_down(trained):
    trainer = task(steps=20).prepare(blobs())
    final = Soup(1.0, cool=0.25, count=1).fit(trainer, POLICY, 0)
    assert torch.equal(final.tensors["weights"], trained[1][4].tensors["weights"])


# ---- Searched


def test_a_searched_row_is_the_finished_model_of_a_search_with_the_seed():
    data, asked = blobs(), task(steps=20, metric="loss")
    found = compare(data, asked, {"none": None, "search": Searched(SPACE, 3, QUICK, 1)}, seeds=[4]).rows[1]
    result = at.search_tree(data, asked, SPACE, depth=1, scorer=QUICK, budget=3, seed=4)
    trainer = asked.prepare(data)
    for split in ("val", "test"):
        assert found[split] == trainer.measures(result.state, data.indices(split))["loss"]
    judging = 32 / (20 * 2 * 16)
    assert found["cost"] == pytest.approx(result.cost.training_equivalents + judging, abs=2e-3)


def test_a_searched_forest_is_that_of_a_search_with_the_seed():
    groups = np.where(np.arange(192) // 2 % 2, "odd", "even")
    data, asked = blobs(96, 64, 32, groups=groups), task(steps=20, metric="loss")
    options = at.Weighting(alpha=4, eta=0.2)
    way = Searched(SPACE, 4, QUICK, 1, options)
    found = compare(data, asked, {"none": None, "forest": way}, seeds=1).rows[1]
    result = at.search_forest(data, asked, SPACE, depth=1, scorer=QUICK, budget=4, seed=0, alpha=4, eta=0.2)
    measures = asked.prepare(data).measures(result.state, data.indices("test"))
    assert found["test"] == measures["loss"]
    assert found["cost"] > 2


def test_a_search_that_fails_is_marked_and_the_others_go_on(monkeypatch):
    def judged(*_):
        raise TaskError("no")

    monkeypatch.setattr(Trainer, "calibrated_losses", judged)
    none, search = compare(blobs(), task(steps=20), {"none": None, "search": Searched(SPACE, 3, QUICK)}, seeds=1).rows
    assert "failed" not in none
    assert search["failed"] == "TaskError: no"


# ---- in a comparison


def test_a_control_without_a_policy_takes_the_free_one_that_is_best_by_validation_data():
    data, asked = blobs(), task(metric="loss", steps=12)
    policies = {"a": Longer(2), "none": None, "b": Soup(2), "ra": "randaugment", "c": Longer(2, MINE)}
    found = compare(data, asked, policies, seeds=2)
    free = {name: np.mean([row["val"] for row in found.rows if row["policy"] == name]) for name in ("none", "ra")}
    best = min(free, key=free.get)
    assert found.best_free == best
    assert f"The best free policy, by validation data, is {best}." in found.notes
    ready, policy = asked.prepare(data), {"none": at.transforms.Identity(), "ra": POLICY}[best]
    for row in [row for row in found.rows if row["policy"] in "ab"]:
        state = (
            ready.fit(policy, row["seed"], 24) if row["policy"] == "a" else Soup(2).fit(ready, policy, row["seed"])
        )
        assert row["val"] == ready.measures(state, data.indices("val"))["loss"]
    assert [row["policy"] for row in found.rows[:5]] == list(policies)
    assert (found.controls, found.finished) == (["a", "b", "c"], [])


def test_resumed_controls_are_what_they_were(tmp_path):
    policies = {
        "none": None,
        "longer": Longer(1.5),
        "mine": Longer(1.5, MINE),
        "soup": Soup(2, MINE, 0.3, 3),
        "search": Searched(SPACE, 3, QUICK, 1),
    }
    data, asked = blobs(), task(steps=20)
    found = compare(data, asked, policies, seeds=1, out=tmp_path)
    (tmp_path / "comparison.json").unlink()
    again = resume(tmp_path, data=data, task=asked)
    assert again.rows == found.rows
    assert (tmp_path / "comparison.json").exists()


def test_a_searched_forest_comes_back_from_its_specification(tmp_path):
    policies = [Searched(SPACE, "3h", QUICK, 2, at.Weighting(alpha=4)), Searched(SPACE), Longer(2), Soup(1, MINE)]
    for way in policies:
        assert restore_control(way.spec(), Reader(tmp_path / "spec.json", ())) == way


def test_where_every_free_training_fails_a_control_for_the_best_of_them_fails_too(monkeypatch):
    def fit(*_, **__):
        raise TaskError("no")

    monkeypatch.setattr(Trainer, "fit", fit)
    policies = {"longer": Longer(2), "none": None, "soup": Soup(2, MINE)}
    longer, none, soup = compare(blobs(), task(), policies, seeds=1).rows
    assert none["failed"] == "TaskError: no"
    assert longer["failed"].startswith("TaskError: the best free policy must be known, but every training with a")
    assert "failed" not in soup


def test_numbers_of_numpy_are_numbers(tmp_path):
    policies = {
        "none": None,
        "longer": Longer(np.float32(1.5)),
        "soup": Soup(np.int64(2), None, np.float32(0.25), np.int64(2)),
        "search": Searched(SPACE, np.int64(3), QUICK, np.int64(1)),
    }
    found = compare(blobs(), task(steps=20), policies, seeds=1, out=tmp_path)
    assert resume(tmp_path, data=blobs(), task=task(steps=20)).rows == found.rows
    assert all("failed" not in row for row in found.rows)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"a": Longer(2), "mine": MINE}, "policies must have a free policy where a control takes the best of them"),
        ({"none": None, "a": Longer(2, DropNodes(0.2))}, "policies/a must work on images as the data does"),
        ({"none": None, "a": Soup(2, DropNodes(0.2))}, "policies/a must work on images as the data does"),
        ({"none": None, "a": Searched(at.spaces.graphs())}, "space must work on images as the data does"),
    ],
)
def test_controls_that_do_not_fit_are_refused(policies, message):
    with pytest.raises(ArgumentError, match=message):
        compare(blobs(), task(), policies, seeds=1)


def test_data_that_no_search_can_use_are_told_before_anything_is_trained():
    with pytest.raises(DataError, match="a search needs at least 8 validation samples, got 4"):
        compare(blobs(val=4), task(), {"none": None, "a": Searched(SPACE)}, seeds=1)


def test_controls_are_not_for_trainings_on_validation_data_too():
    with pytest.raises(ArgumentError, match="train_on must be train where the validation data is needed"):
        compare(blobs(), task(), {"none": None, "a": Longer(2)}, seeds=1, train_on="train+val")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Longer(0), r"length must be a number in \(0, 1e\+06\], got 0"),
        (lambda: Longer("2"), "length must be a number"),
        (
            lambda: Longer(2, "randaugment"),
            "policy must be a policy, or None for the best free one of the comparison",
        ),
        (lambda: Soup(-1), "length must be a number"),
        (lambda: Soup(2, 3), "policy must be a policy, or None"),
        (lambda: Soup(2, cool=0), "cool must be a number in"),
        (lambda: Soup(2, count=0), "count must be a whole number from 1 to 1000, got 0"),
        (lambda: Searched([Rotate(0.2)]), r"space must be a space, such as spaces.auto\(data\)"),
        (lambda: Searched(SPACE, "soon"), "budget must be"),
        (lambda: Searched(SPACE, 0), "budget must be"),
        (lambda: Searched(SPACE, scorer=Retrain()), r"scorer must be augtree.search.Cooldown\(...\)"),
        (lambda: Searched(SPACE, scorer="cooldown"), r"scorer must be augtree.search.Cooldown\(...\)"),
        (lambda: Searched(SPACE, depth=11), "depth must be a whole number from 1 to 10, got 11"),
        (lambda: Searched(SPACE, weighting={"alpha": 3}), "weighting must be an augtree.Weighting, or None"),
    ],
)
def test_bad_arguments_are_refused(made, message):
    with pytest.raises(ArgumentError, match=message):
        made()
