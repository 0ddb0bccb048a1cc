"""The trunk and its looks: what is planted is found, what makes no difference has none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import augtree as at
from augtree.data import from_arrays
from augtree.search import search_tree
from augtree.search.branches import Branch
from augtree.search.factorial import Effect
from augtree.search.play import UNGROUPED, Play
from augtree.search.trunk import (
    MAX_FACTORS,
    common_play,
    cooldowns_of_look,
)
from augtree.search.trunk import tested_factors as factors_of_look
from augtree.search.trunk_events import Finding, describe
from augtree.training.state import seed_of
from augtree.transforms import Cutout, Flip, Identity, RandAugment, Space, VerticalFlip
from augtree.transforms.traits import EVERY_SAMPLE, GEOMETRY, TONES
from support.searches import (
    CORNERS,
    INVERT,
    LINEAR,
    QUICK,
    bright_or_dark,
    corners,
    trunk_on,
)

PLAY = Play(CORNERS)


def searched(data, space, seed=0, **more):
    return search_tree(data, LINEAR, space, **{"scorer": QUICK, "budget": 6, "seed": seed, **more})


def symmetric(seed=0):
    """Pictures that are their own mirror images."""
    rng, labels = np.random.default_rng(seed), np.arange(192) % 2
    left = rng.integers(0, 160, (192, 6, 3))
    left[labels == 1, :3] += 40
    pictures = np.concatenate([left, left[:, :, ::-1]], axis=2).astype(np.uint8)
    return from_arrays(pictures, labels, split=["train"] * 64 + ["val"] * 128, name="symmetric")


# ---- planted


@pytest.mark.parametrize("seed", range(4))
def test_what_harms_leaves_play_and_what_helps_stays(seed):
    """Left and right are the classes; half of the validation data are upside down, and no training data are."""
    found = searched(corners(64, 128, seed=seed), CORNERS, seed)
    assert "Flip" in found.out_of_play
    assert "VerticalFlip" not in found.out_of_play
    assert all(finding["harm"] < 0 for finding in found.findings if finding["factor"] == "VerticalFlip")
    assert "Flip" not in [part.name for part, _ in found.mixture[1].transform.pairs]
    assert "VerticalFlip" in [part.name for part, _ in found.mixture[1].transform.pairs]


@pytest.mark.parametrize("seed", range(2))
def test_what_helps_is_seen_to_help(seed):
    """Before the model has learned it from the mixture."""
    early = replace(QUICK, looks=(0.05,))
    found = searched(corners(64, 128, seed=seed), Space([Identity()], basics=[VerticalFlip()]), seed, scorer=early)
    helps = found.findings[0]
    assert helps["factor"] == "VerticalFlip"
    assert helps["harm"] < -4 * helps["se"] < 0
    assert found.out_of_play == {}


@pytest.mark.parametrize("seed", range(2))
def test_a_harmful_trait_of_the_styles_leaves_play(seed):
    found = searched(bright_or_dark(seed), Space([INVERT], basics=[Flip(1.0)]), seed)
    assert TONES in found.out_of_play
    harms = {finding["factor"]: finding["harm"] for finding in found.findings}
    assert abs(harms["Flip"]) < 0.05 < harms[TONES]
    assert "Invert" not in str(found.mixture)


def test_in_a_space_without_basics_traits_are_asked_for_by_design():
    found = searched(bright_or_dark(), Space([INVERT]))
    assert [finding["factor"] for finding in found.findings if finding["look"] == 0] == [TONES]
    assert list(found.out_of_play) == [TONES]


def test_a_harmful_function_of_the_user_leaves_play():
    mirror = at.wrap(lambda picture: picture.flip(-1), name="Mirror")
    found = searched(corners(64, 128), Space([Identity(), mirror], basics=[VerticalFlip()], own=[mirror]))
    assert "Mirror" in found.out_of_play
    assert "Mirror" not in str(found.mixture)


def test_where_every_sample_is_spoilt_half_of_them_are_left_alone():
    """A style that erases nearly all, and is no factor that could leave: all styles have it."""
    trunk = trunk_on(corners(), {UNGROUPED: Play(Space([RandAugment()], basics=[Flip(1.0)]))})
    trunk.losses = lambda number, plays: np.stack([
        np.full(128, 2.0) + np.random.default_rng(1).normal(0, 0.1, 128) - (EVERY_SAMPLE in play[UNGROUPED].out)
        for play in plays
    ])  # fmt: skip
    trunk.look(0, 0.5, last=True)
    assert trunk.plays[UNGROUPED].out == {EVERY_SAMPLE}


# ---- no difference


@pytest.mark.parametrize("seed", range(2))
def test_what_makes_no_difference_has_a_difference_of_exactly_zero(seed):
    found = searched(symmetric(seed), CORNERS, seed)
    harms = [finding["harm"] for finding in found.findings if finding["factor"] == "Flip"]
    assert harms == [0.0, 0.0]
    assert "Flip" not in found.out_of_play


def test_branches_with_the_same_pictures_end_with_the_same_weights():
    trunk = trunk_on(symmetric(), {UNGROUPED: PLAY})
    trunk.train_to(0.2)
    plays = [trunk.plays, trunk.without(["Flip"]), trunk.without(["VerticalFlip"])]
    branches = {
        f"cool/{i}": Branch(trunk.mixture(play), (0.02, 0.01), 7, trunk.rows, keep_model=True)
        for i, play in enumerate(plays)
    }
    (whole, one), (less, other), (upright, third) = trunk.run_branches(branches, {"steps": 2})
    assert (whole == less).all()
    assert torch.equal(one().tensors["weights"], other().tensors["weights"])
    assert (whole != upright).any()
    assert not torch.equal(one().tensors["weights"], third().tensors["weights"])


# ---- the trunk itself


def test_where_nothing_leaves_the_trunk_is_one_long_training():
    """Looks leave no trace: in parts or as a whole it is the same to the last bit."""
    options = replace(QUICK, clear=1000, sure=1000, slow=1000)
    trunk = trunk_on(corners(), {UNGROUPED: PLAY}, options)
    grown = trunk.grow()()
    trainer = LINEAR.prepare(corners())
    half = PLAY.without([EVERY_SAMPLE]).mixture()
    place = round(trunk.plan.looks[-1] * 80)  # until the last look half of the samples are left alone
    straight = trainer.train(trainer.fresh(0), half, trunk.rates(0, place), seed_of(0, "trunk"))
    straight = trainer.train(straight, PLAY.mixture(), trunk.rates(place, 80), seed_of(0, "trunk"))
    assert grown.step == straight.step == 80
    assert all(torch.equal(tensor, straight.tensors[name]) for name, tensor in grown.tensors.items())


def test_the_rate_rises_as_in_a_training_and_stays():
    task = replace(LINEAR, warmup=0.1)
    rates = trunk_on(corners(), {UNGROUPED: PLAY}, task=task).rates(0, 300)
    assert rates[:8] == sorted(rates[:8])
    assert rates[0] < 0.02
    assert set(rates[8:]) == {0.02}


def test_after_a_look_the_trunk_trains_on_what_is_left():
    policies = []
    trunk = trunk_on(corners(), {UNGROUPED: PLAY})
    train = trunk.trainer.train
    trunk.trainer.train = lambda state, policy, rates, *more, **more_: (
        policies.append((state.step, len(rates), policy)) or train(state, policy, rates, *more, **more_)
    )
    trunk.grow()
    parts = [(step, count, policy) for step, count, policy in policies if count > 16]
    assert [(step, count) for step, count, _ in parts] == [(0, 20), (20, 20), (40, 40)]
    assert parts[0][2] == PLAY.without([EVERY_SAMPLE]).mixture_with_shared_draws()
    assert parts[2][2] == PLAY.without(["Flip"]).mixture_with_shared_draws()


def test_half_of_the_samples_are_left_alone_until_the_last_look():
    trunk = trunk_on(corners(), {UNGROUPED: PLAY})
    half = PLAY.without([EVERY_SAMPLE])
    for looks_done, training_plays in enumerate((half, half, PLAY)):
        trunk.looks_done = looks_done
        assert trunk.training_plays == {UNGROUPED: training_plays}


def test_half_stay_alone_where_augmenting_every_sample_is_plainly_harmful():
    """What is learned slowly looks harmful for a while, so the bar is the high one."""
    for harm, out in ((QUICK.slow - 0.5, PLAY), (QUICK.slow + 0.5, PLAY.without([EVERY_SAMPLE]))):
        trunk = trunk_on(corners(), {UNGROUPED: PLAY})
        found = Effect(harm, 1.0)
        trunk.add(trunk.judge(1, 0.6, EVERY_SAMPLE, {UNGROUPED: found}, QUICK.slow))
        removed = trunk.findings[0].removed_in
        trunk.plays = {g: play.without([EVERY_SAMPLE] if g in removed else []) for g, play in trunk.plays.items()}
        trunk.looks_done = len(trunk.plan.looks)
        assert trunk.training_plays == {UNGROUPED: out}


# ---- what is asked


def test_basics_are_asked_for_by_design_and_styles_at_the_last_look_one_by_one():
    play = {UNGROUPED: Play(Space([RandAugment(), Cutout(0.5)], basics=[Flip(), VerticalFlip()]))}
    assert factors_of_look(play, (), styles=False) == (["Flip", "VerticalFlip"], [])
    basics, beside = factors_of_look(play, (), styles=True)
    assert basics == ["Flip", "VerticalFlip"]
    assert set(beside) == {TONES, GEOMETRY, "Cutout", EVERY_SAMPLE}


def test_what_is_in_play_somewhere_is_asked_for():
    plays = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["VerticalFlip"])}
    assert set(factors_of_look(plays, (), styles=False)[0]) == {"Flip", "VerticalFlip"}
    everywhere = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip"])}
    assert factors_of_look(everywhere, (), styles=False)[0] == ["VerticalFlip"]


def test_a_look_has_as_many_cool_downs_as_are_foretold():
    for last in (False, True):
        trunk, seen = trunk_on(corners(), {UNGROUPED: PLAY}), []
        trunk.losses = lambda number, plays, seen=seen: seen.append(len(plays)) or np.zeros((len(plays), 128))
        trunk.look(0, 0.3, last=last)
        assert seen == [cooldowns_of_look({UNGROUPED: PLAY}, (), first=True, styles=last)]
        assert seen[0] == (8 if not last else 8 + 2)  # tones, and samples left alone


def test_there_is_an_end_to_what_is_asked_for():
    own = [at.wrap(lambda picture: picture, name=f"Own{i}") for i in range(70)]
    plays = {UNGROUPED: Play(Space([Identity(), *own], basics=[Flip()], own=own))}
    assert len(factors_of_look(plays, (), styles=False)[0]) == MAX_FACTORS == 62
    assert cooldowns_of_look(plays, (), first=False, styles=False) == 64


def test_with_nothing_left_to_ask_a_look_costs_nothing():
    play = Play(Space([Identity()], basics=[Flip()])).without(["Flip", EVERY_SAMPLE])
    trunk = trunk_on(corners(), {UNGROUPED: play})
    trunk.look(0, 0.3, last=True)
    assert trunk.findings == []
    assert trunk.trainer.passes.total == 0


# ---- plays of groups


def test_what_most_groups_have_left_out_is_the_common_play():
    plays = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip", TONES]), "c": PLAY}
    assert common_play(plays).out == {"Flip"}
    assert common_play({"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip"])}) == PLAY.without(["Flip"])


def test_findings_in_words():
    harm, help_ = (Effect(sign * 0.25, 0.0625) for sign in (1, -1))
    findings = [Finding(0, 0.3, "Flip", effect, {}, (), {}) for effect in (harm, help_)]
    assert [describe(finding) for finding in findings] == [
        "flips left-right: raises the validation loss by 0.250 ± 0.062",
        "flips left-right: lowers the validation loss by 0.250 ± 0.062",
    ]
    nothing = Finding(0, 0.3, "Flip", Effect(-0.0001, 0.0001), {}, (), {})
    assert describe(nothing) == "flips left-right: lowers the validation loss by less than 0.001"
