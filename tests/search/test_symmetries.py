"""Which flips and turns data bear: worked examples, and pictures in which the answer is known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import augtree as at
from augtree.data import from_arrays
from augtree.runs.events import Planned
from augtree.search import Cooldown, search_tree
from augtree.search.factorial import Effect
from augtree.search.play import UNGROUPED, Play
from augtree.search.prediction_test import PredictionTest
from augtree.search.scorers.cooldown import Plan
from augtree.search.symmetries import LEARNED, Reoriented, symmetry, uninformed_losses, ways
from augtree.search.trunk_events import FactorTested, Finding, describe_test
from augtree.transforms import Flip, Identity, QuarterTurn, Space, VerticalFlip
from augtree.transforms.traits import EVERY_SAMPLE
from support.searches import CORNERS, LINEAR, QUICK, corners, trunk_on

TESTED = replace(QUICK, tests=(0.5,), looks=(), test=0.2)
TURNS = Space([Identity()], basics=[Flip(), VerticalFlip(), QuarterTurn()])
ALL = {UNGROUPED: np.ones(4, bool)}


# ---- the figures


def test_orientations_are_those_of_torch():
    pictures = torch.arange(2 * 3 * 2 * 2).view(2, 3, 2, 2)
    assert Reoriented(mirrored=(-1,))(pictures)[0, 0].tolist() == [[1, 0], [3, 2]]
    assert Reoriented(mirrored=(-2,))(pictures)[0, 0].tolist() == [[2, 3], [0, 1]]
    assert Reoriented(quarters=1)(pictures)[0, 0].tolist() == [[1, 3], [0, 2]]


@pytest.mark.parametrize("square", [True, False])
def test_a_factor_s_orientations_are_those_that_its_transform_draws(square):
    picture = torch.arange(6 if not square else 9, dtype=torch.uint8).view(1, 1, 3 if square else 2, 3)
    for transform in (Flip(1.0), VerticalFlip(1.0), QuarterTurn()):
        drawn = {tuple(transform(picture, seed=seed).flatten().tolist()) for seed in range(40)}
        expected = {tuple(way(picture).flatten().tolist()) for way in ways(transform.name, square=square)}
        whole = tuple(picture.flatten().tolist())
        half = {tuple(picture.rot90(2, (-2, -1)).flatten().tolist())} if square else set()
        assert drawn - {whole} - half == expected  # half a turn is borne where the quarters are


def test_what_is_lost_is_compared_with_what_is_known():
    information, fall = np.array([1.0, 2.0, 1.0, 2.0]), np.array([0.0, 0.6, 0.0, 0.6])
    found = symmetry(information, fall, ALL, 0.9)
    assert found.kept[UNGROUPED] == pytest.approx(1 - 0.3 / 1.5)
    assert found.common.harm == pytest.approx(0.3 - 0.1 * 1.5)
    assert found.common.se == pytest.approx(np.hypot(np.std([-0.1, 0.4, -0.1, 0.4], ddof=1) / 2, 0.015))
    assert found.borne_by == []
    assert symmetry(information, fall, ALL, 0.79).borne_by == [UNGROUPED]
    assert symmetry(information, 0 * fall, ALL, 1.0).borne_by == [UNGROUPED]


def test_the_share_that_is_kept_lies_between_nothing_and_all():
    information = np.array([1.0, 1.1, 0.9, 1.0])
    assert symmetry(information, np.full(4, 5.0), ALL, 0.9).kept == {UNGROUPED: 0.0}
    assert symmetry(information, np.full(4, -5.0), ALL, 0.9).kept == {UNGROUPED: 1.0}


def test_a_model_that_knows_little_tells_nothing():
    spread = np.array([-1.0, 1.0, -1.0, 1.0])
    error = spread.std(ddof=1) / 2
    assert symmetry(spread + 0.99 * LEARNED * error, spread, ALL, 0.9) is None
    assert symmetry(spread + 1.01 * LEARNED * error, spread, ALL, 0.9) is not None


def test_groups_that_differ_by_noise_are_judged_together_and_others_alone():
    rng = np.random.default_rng(0)
    groups = {name: np.arange(300) // 100 == i for i, name in enumerate("abc")}
    information = rng.normal(1.0, 0.1, 300)
    alike = symmetry(information, rng.normal(0.0, 0.5, 300), groups, 0.9)
    assert len({round(effect.harm, 9) for effect in alike.groups.values()}) == 1
    fall = rng.normal(0.0, 0.1, 300) + 0.8 * groups["b"]
    assert symmetry(information, fall, groups, 0.9).borne_by == ["a", "c"]


def test_uninformed_losses_are_those_of_the_classes_shares_in_a_group():
    labels = torch.tensor([0] * 300 + [1] * 100 + [2] * 200 + [3] * 200)
    groups = [np.arange(800) < 400, np.arange(800) >= 400]
    own, everywhere = np.array([0.75, 0.25]), np.array([0.375, 0.125])
    first = -np.log((400 * own + 10 * everywhere) / 410)
    losses = uninformed_losses(labels, groups)
    assert losses[[0, 300, 400]] == pytest.approx([*first, -np.log((400 * 0.5 + 10 * 0.25) / 410)])
    everything = uninformed_losses(labels, [np.ones(800, bool)])
    assert everything[[0, 300, 799]] == pytest.approx(-np.log([0.375, 0.125, 0.25]))
    several = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert uninformed_losses(several, [np.ones(2, bool)]) == pytest.approx([np.log(2) / 2] * 2, abs=1e-4)


def test_a_group_of_one_class_is_not_said_to_keep_nothing():
    labels = torch.tensor([0, 1] * 100 + [0] * 20)
    groups = {"big": np.arange(220) < 200, "small": np.arange(220) >= 200}
    information = uninformed_losses(labels, groups.values()) - 0.05
    found = symmetry(information, np.full(220, 0.001), groups, 0.9)
    assert found.borne_by == ["big", "small"]
    assert found.kept["small"] > 0.9


def test_small_groups_do_not_outvote_a_large_one():
    """Few samples lose anything, so most small groups have no such sample, and no spread."""
    rng, borne = np.random.default_rng(0), []
    sizes = [200] + [8] * 15
    number = np.repeat(np.arange(16), sizes)
    groups = {str(i): number == i for i in range(16)}
    for _ in range(20):
        information = rng.normal(1.0, 0.1, 320)
        fall = 2.2 * (rng.random(320) < 0.1)  # 78 % are kept
        borne.append(len(symmetry(information, fall, groups, 0.9).borne_by))
    assert np.mean(borne) < 2


def test_a_group_that_the_model_knows_nothing_of_has_the_answer_of_all_together():
    rng = np.random.default_rng(0)
    groups = {"a": np.arange(200) < 100, "b": np.arange(200) >= 100}
    information = np.where(groups["a"], 1.0, 0.0) + rng.normal(0, 0.05, 200) - 0.01 * groups["b"]
    for lost, answer in ((0.5, []), (0.0, ["a", "b"])):
        found = symmetry(information, lost * groups["a"] + rng.normal(0, 0.01, 200), groups, 0.9)
        assert found.borne_by == answer
        assert found.kept.keys() == {"a"}
        assert found.groups["b"] == found.common


# ---- pictures in which the answer is known


def halves(seed=0, groups=None):
    """A bright half, left or right (the class), of pictures that have no up and down."""
    rng, labels = np.random.default_rng(seed), np.arange(256) % 2
    pictures = rng.integers(0, 120, (256, 6, 6))
    for i, right in enumerate(labels):
        pictures[i, :, 3 * right : 3 * right + 3] += 60
    split = ["train"] * 128 + ["val"] * 128
    return from_arrays(pictures.astype(np.uint8), labels, split=split, groups=groups, name="halves")


def searched(data, space=TURNS, scorer=TESTED, **more):
    return search_tree(data, LINEAR, space, **{"scorer": scorer, "budget": 4, "seed": 0, **more})


@pytest.mark.parametrize("seed", range(3))
def test_what_is_borne_comes_into_play_and_nothing_else(seed):
    found = searched(halves(seed), seed=seed)
    *flips, alone = found.findings
    kept = {finding["factor"]: finding["kept"][UNGROUPED] for finding in flips}
    assert (alone["factor"], alone["left"]) == (EVERY_SAMPLE, [])
    assert kept["VerticalFlip"] > 0.9
    assert kept["Flip"] < 0.1
    assert kept["QuarterTurn"] < 0.5
    assert set(found.out_of_play) == {"Flip", "QuarterTurn"}
    assert str(found.mixture[1].transform) == "Chain(VerticalFlip p=0.5)"
    assert found.measures["accuracy"] > 0.95


def test_flips_come_into_play_after_the_test_and_not_before():
    policies = []
    trunk = trunk_on(halves(), {UNGROUPED: Play(TURNS)}, TESTED, Plan(1.0, (), 0.3, 1, (0.5,)))
    train = trunk.trainer.train
    trunk.trainer.train = lambda state, policy, rates, *more, **more_: (
        policies.append((state.step, len(rates), policy)) or train(state, policy, rates, *more, **more_)
    )
    trunk.grow()
    none, vertical = (Play(TURNS).without(out) for out in (Play(TURNS).symmetries, ["Flip", "QuarterTurn"]))
    assert policies == [
        (0, 40, none.mixture_with_shared_draws()),
        (40, 16, none.mixture_with_shared_draws()),
        (40, 40, vertical.mixture_with_shared_draws()),
    ]


def test_a_test_leaves_no_trace_in_the_trunk():
    plan = Plan(1.0, (), 0.3, 1, (0.5,))
    tested = trunk_on(halves(), {UNGROUPED: Play(TURNS)}, replace(TESTED, borne=1.0), plan)
    predict = tested.trainer.logits
    tested.trainer.logits = lambda state, rows, policy=None, seed=0: (-1 if policy else 1) * predict(state, rows)
    straight = trunk_on(halves(), {UNGROUPED: Play(TURNS)}, TESTED, replace(plan, tests=()))
    one, other = tested.grow()(), straight.grow()()
    assert len(tested.findings) == 4
    assert straight.findings == []
    assert one.step == other.step
    assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())


def test_groups_get_what_each_of_them_bears():
    """The same pictures, in half of which the class is above or below."""
    labels = np.arange(256) % 2
    lying = np.arange(256) // 2 % 2 == 1
    pictures = np.random.default_rng(0).integers(0, 120, (256, 6, 6))
    for i in range(256):
        part = slice(3 * labels[i], 3 * labels[i] + 3)
        pictures[i][(part, slice(None)) if lying[i] else (slice(None), part)] += 60
    for corner in ((0, 0), (0, 5), (5, 0), (5, 5)):  # a model can see which group a picture is of
        pictures[:, *corner] = 255 * lying
    names = np.where(lying, "lying", "upright").tolist()
    split = ["train"] * 128 + ["val"] * 128
    data = from_arrays(pictures.astype(np.uint8), labels, split=split, groups=names)
    task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=150, batch_size=32, device="cpu")
    space = Space([Identity()], basics=[Flip(), VerticalFlip()])
    found = at.search_forest(data, task, space, scorer=TESTED, budget=3, alpha=10)
    assert found.out_of_play == {"lying": ["VerticalFlip"], "upright": ["Flip"]}
    assert "Out of play in upright: flips left-right: predictions for such samples keep" in found.verdict()


def test_without_tests_all_is_in_play_from_the_start():
    trunk = trunk_on(corners(), {UNGROUPED: Play(TURNS)}, replace(TESTED, tests=()))
    assert trunk.plays == {UNGROUPED: Play(TURNS)}


def test_what_could_not_be_tested_stays_out_and_is_tested_again():
    data = halves()
    noise = replace(data, labels=data.labels[torch.randperm(256, generator=torch.Generator().manual_seed(0))])
    found = searched(noise, scorer=replace(TESTED, tests=(0.2, 0.5)))
    assert [finding["kept"] for finding in found.findings if finding["factor"] != EVERY_SAMPLE] == [{}] * 6
    assert set(found.out_of_play) >= {"Flip", "VerticalFlip", "QuarterTurn"}
    assert "flips left-right, untested, since the model knew too little" in found.verdict()
    again = searched(halves(), scorer=replace(TESTED, tests=(0.2, 0.5)))
    assert len(again.findings) == 4  # what is decided is not tested again


def test_a_budget_without_room_for_the_test_says_which_would_have(tmp_path):
    events = []
    found = searched(halves(), budget=0.6, watch=events.append)
    assert list(found.findings) == []
    (note,) = [note for note in found.notes if note.startswith("The budget has no room")]
    needed = float(note.split("--budget ")[1].split()[0])
    assert note.endswith("they are left out.")
    assert any(isinstance(event, Planned) for event in events)
    assert searched(halves(), budget=needed).findings
    assert not searched(halves(), budget=needed - 0.1).findings


def test_other_sizes_of_pictures_and_channels():
    rng, labels = np.random.default_rng(0), np.arange(128) % 2
    pictures = rng.integers(0, 120, (128, 8, 12, 3)) + 100 * labels[:, None, None, None]
    data = from_arrays(pictures.astype(np.uint8), labels, split=["train"] * 64 + ["val"] * 64)
    task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=60, device="cpu")
    found = search_tree(data, task, TURNS, scorer=TESTED, budget=2)
    assert found.out_of_play == {}
    assert found.verdict().startswith(
        "Nothing that was tested does harm: everything is in play. Your data bear flips left-right (100.0 ± 1.0 % of"
        " the information kept), flips up-down (100.0 ± 1.0 % of the information kept), quarter turns"
    )


def with_own(space, **more):
    mirror = at.wrap(lambda picture: picture.flip(-1), name="Mirror")
    return Space([*space, mirror], basics=space.basics, own=[mirror], **more)


def test_what_a_later_test_admits_no_look_removes_and_looks_do_not_ask_for_flips():
    """The model knows too little at the first test; the look judges the user's own transform alone."""
    scorer = replace(TESTED, tests=(0.02, 0.5), looks=(0.7,), test=0.02, shortest=1, styles=False)
    found = searched(halves(), with_own(TURNS), scorer, budget=4)
    first = [finding["kept"] for finding in found.findings if finding["factor"] == "VerticalFlip"]
    assert len(first) in (1, 2)
    assert "VerticalFlip" in str(found.mixture)
    assert "Mirror" in found.out_of_play
    assert {f["factor"] for f in found.findings if "kept" not in f and "gap" not in f} == {"Mirror"}
    assert {"Flip", "Mirror"} <= set(found.out_of_play)


def test_without_tests_looks_judge_flips():
    found = searched(halves(), scorer=replace(QUICK, tests=(), looks=None, look=0.2), budget=8)
    assert "Flip" in found.out_of_play
    assert all("kept" not in finding for finding in found.findings)


def test_what_a_look_has_removed_does_not_return():
    trunk = trunk_on(halves(), {UNGROUPED: Play(TURNS)}, TESTED)
    trunk.add(Finding(0, 0.3, EVERY_SAMPLE, Effect(9.0, 1.0), {}, (UNGROUPED,), {}))
    trunk.plays = trunk.without([EVERY_SAMPLE])
    trunk.settle(Finding(1, 0.5, EVERY_SAMPLE, Effect(0.0, 0.0), {}, (), {}, gap=0.9))
    assert EVERY_SAMPLE in trunk.plays[UNGROUPED].out


# ---- overfitting


@pytest.mark.parametrize(("overfit", "alone"), [(0.5, False), (0.9, True)])
def test_half_are_left_alone_while_the_model_does_not_overfit(overfit, alone):
    plan = Plan(1.0, (), 0.3, 1, (0.2, 0.5))
    trunk = trunk_on(halves(), {UNGROUPED: Play(TURNS)}, replace(TESTED, overfit=overfit), plan)
    validation = set(trunk.rows.tolist())
    judge = trunk.trainer.calibrated_losses

    def losses(state, rows, policy=None):
        known = judge(state, rows, policy)
        return np.full(len(rows), 0.4 if set(rows.tolist()) <= validation else 0.1) if policy is None else known

    trunk.trainer.calibrated_losses = losses
    trunk.train_to(0.2)
    PredictionTest(trunk, 0, 0.2).run()
    (found,) = [finding for finding in trunk.findings if finding.factor == EVERY_SAMPLE]
    assert found.gap == pytest.approx(0.75)
    assert (EVERY_SAMPLE in trunk.plays[UNGROUPED].out) == alone
    expected = "half of the samples are left alone from here on." if alone else "every sample is augmented."
    loss = "the loss on training samples is 75 % below that on validation samples"
    assert FactorTested(found, grouped=False).describe() == [f"Test after 0.20 trainings: {loss}; {expected}"]


def test_a_model_that_cannot_overfit_leaves_half_alone_and_the_verdict_says_so():
    """The validation samples are the training samples; some labels are wrong, so that losses are above zero."""
    data = halves()
    labels = data.labels[:128].clone()
    labels[::9] = 1 - labels[::9]
    twice = [torch.cat([each] * 2).numpy() for each in (data.samples[:128], labels)]
    found = searched(from_arrays(*twice, split=["train"] * 128 + ["val"] * 128), CORNERS)
    assert found.out_of_play[EVERY_SAMPLE]["gap"] == pytest.approx(0.0, abs=1e-6)
    assert found.mixture[1].p == 0.5
    assert "Half of the samples are left alone, since the model hardly overfits (its loss on" in found.verdict()


def test_overfitting_is_tested_in_short_trainings_alone():
    assert (Cooldown().least_gap(875), Cooldown().least_gap(876)) == (0.2, None)
    assert Cooldown(overfit=0.5).least_gap(5000) == 0.5
    long = search_tree(halves(), replace(LINEAR, steps=900), TURNS, scorer=TESTED, budget=1.5)
    assert [finding["factor"] for finding in long.findings] == ["Flip", "VerticalFlip", "QuarterTurn"]


# ---- runs


def test_a_finding_is_in_the_files(tmp_path):
    found = searched(halves(), out=tmp_path / "a")
    content = json.loads((tmp_path / "a" / "result.json").read_text())
    assert content["findings"] == [dict(finding) for finding in found.findings]
    assert [row["test"] for row in found.history if "test" in row] == [0]
    assert (tmp_path / "a" / "history.csv").read_text().splitlines()[0].split(",")[:3] == ["node", "round", "look"]
    assert at.resume(tmp_path / "a", data=halves(), task=LINEAR).verdict() == found.verdict()


def test_findings_in_words():
    found = Finding(0, 0.5, "Flip", Effect(0.1, 0.1), {}, ("b",), {}, kept={"a": 0.95, "b": 0.2})
    assert describe_test(found, grouped=True) == (
        "Test after 0.50 trainings: flips left-right: predictions keep 95 % in a, 20 % in b of their information;"
        " out of play in b."
    )
    alone = replace(found, kept={"": 0.95}, removed_in=())
    assert describe_test(alone, grouped=False).endswith("predictions keep 95 % of their information; in play.")
    nothing = replace(found, kept={})
    assert FactorTested(nothing, grouped=False).describe() == [
        "Test after 0.50 trainings: flips left-right: the model knows too little to tell; out of play."
    ]
