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
from augtree.search.play import Play
from augtree.search.scorers.cooldown import Plan
from augtree.search.trunk import EVERYBODY, MOST, Finding, asked_at, branched, common_play, runs_of, same_play
from augtree.tasks import Classification
from augtree.training.trainer import seed_of
from augtree.transforms import Cutout, Flip, Identity, Posterize, RandAugment, Space, VerticalFlip
from augtree.transforms.traits import ALONE, GEOMETRY, TONES
from support.searches import (
    CORNERS,
    INVERT,
    LINEAR,
    QUICK,
    bright_or_dark,
    corners,
    linear_model,
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
    trunk = trunk_on(corners(), {EVERYBODY: Play(Space([RandAugment()], basics=[Flip(1.0)]))})
    trunk.losses = lambda number, plays: np.stack([
        np.full(128, 2.0) + np.random.default_rng(1).normal(0, 0.1, 128) - (ALONE in play[EVERYBODY].out)
        for play in plays
    ])  # fmt: skip
    trunk.look(0, 0.5, last=True)
    assert trunk.plays[EVERYBODY].out == {ALONE}


# ---- no difference


@pytest.mark.parametrize("seed", range(2))
def test_what_makes_no_difference_has_a_difference_of_exactly_zero(seed):
    found = searched(symmetric(seed), CORNERS, seed)
    harms = [finding["harm"] for finding in found.findings if finding["factor"] == "Flip"]
    assert harms == [0.0, 0.0]
    assert "Flip" not in found.out_of_play


def test_branches_with_the_same_pictures_end_with_the_same_weights():
    trunk = trunk_on(symmetric(), {EVERYBODY: PLAY})
    trunk.train_to(0.2)
    plays = [trunk.plays, trunk.without(["Flip"]), trunk.without(["VerticalFlip"])]
    branches = {
        f"cool/{i}": Branch(trunk.mixture(play), (0.02, 0.01), 7, trunk.rows, kept=True)
        for i, play in enumerate(plays)
    }
    (_, whole, one), (_, less, other), (_, upright, third) = branched(trunk, branches, {})
    assert (whole == less).all()
    assert torch.equal(one().tensors["weights"], other().tensors["weights"])
    assert (whole != upright).any()
    assert not torch.equal(one().tensors["weights"], third().tensors["weights"])


# ---- the trunk itself


def test_where_nothing_leaves_the_trunk_is_one_long_training():
    """Looks leave no trace: in parts or as a whole it is the same to the last bit."""
    options = replace(QUICK, clear=1000, likely=1000, sure=1000, slow=1000)
    trunk = trunk_on(corners(), {EVERYBODY: PLAY}, options)
    grown = trunk.grow()()
    trainer = LINEAR.prepare(corners())
    half = PLAY.without([ALONE]).mixture()
    place = round(trunk.plan.looks[-1] * 80)  # until the last look half of the samples are left alone
    straight = trainer.train(trainer.fresh(0), half, trunk.rates(0, place), seed_of(0, "trunk"))
    straight = trainer.train(straight, PLAY.mixture(), trunk.rates(place, 80), seed_of(0, "trunk"))
    assert grown.step == straight.step == 80
    assert all(torch.equal(tensor, straight.tensors[name]) for name, tensor in grown.tensors.items())


def test_the_rate_rises_as_in_a_training_and_stays():
    task = replace(LINEAR, warmup=0.1)
    rates = trunk_on(corners(), {EVERYBODY: PLAY}, task=task).rates(0, 300)
    assert rates[:8] == sorted(rates[:8])
    assert rates[0] < 0.02
    assert set(rates[8:]) == {0.02}


def test_after_a_look_the_trunk_trains_on_what_is_left():
    policies = []
    trunk = trunk_on(corners(), {EVERYBODY: PLAY})
    train = trunk.trainer.train
    trunk.trainer.train = lambda state, policy, rates, *more, **told: (
        policies.append((state.step, len(rates), policy)) or train(state, policy, rates, *more, **told)
    )
    trunk.grow()
    parts = [(step, count, policy) for step, count, policy in policies if count > 16]
    assert [(step, count) for step, count, _ in parts] == [(0, 20), (20, 20), (40, 40)]
    assert parts[0][2] == PLAY.without([ALONE]).drawn_alike()
    assert parts[2][2] == PLAY.without(["Flip"]).drawn_alike()


def test_in_doubt_half_of_the_samples_are_left_alone_until_the_trunk_s_end():
    trunk = trunk_on(corners(), {EVERYBODY: PLAY})
    assert trunk.trained_on == {EVERYBODY: PLAY.without([ALONE])}
    trunk.looked = len(trunk.plan.looks)
    assert trunk.trained_on == {EVERYBODY: PLAY}
    bar = trunk.options.clear
    for z, trained_on in ((bar - 0.1, PLAY), (bar + 0.1, PLAY.without([ALONE]))):
        harm = Effect(z, 1.0)
        trunk.findings = [Finding(1, 0.6, ALONE, harm, {EVERYBODY: harm}, (), {EVERYBODY: harm})]
        assert trunk.trained_on == {EVERYBODY: trained_on}


def test_the_last_cool_downs_settle_whether_samples_are_left_alone():
    told = []
    trunk = trunk_on(corners(), {EVERYBODY: PLAY})
    trunk.told = lambda what, **about: told.append((what, about["finding"].left))
    trunk.settle(Effect(0.1, 0.2), left=False)
    assert trunk.plays == {EVERYBODY: PLAY}
    trunk.settle(Effect(0.5, 0.1), left=True)
    assert trunk.plays == {EVERYBODY: PLAY.without([ALONE])}
    assert told == [("finding", ()), ("finding", (EVERYBODY,))]


# ---- what is asked


def test_basics_are_asked_for_by_design_and_styles_at_the_last_look_one_by_one():
    play = {EVERYBODY: Play(Space([RandAugment(), Cutout(0.5)], basics=[Flip(), VerticalFlip()]))}
    assert asked_at(play, last=False) == (["Flip", "VerticalFlip"], [])
    basics, beside = asked_at(play, last=True)
    assert basics == ["Flip", "VerticalFlip"]
    assert set(beside) == {TONES, GEOMETRY, "Cutout", ALONE}


def test_what_is_in_play_somewhere_is_asked_for():
    plays = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["VerticalFlip"])}
    assert set(asked_at(plays, last=False)[0]) == {"Flip", "VerticalFlip"}
    everywhere = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip"])}
    assert asked_at(everywhere, last=False)[0] == ["VerticalFlip"]


def test_a_look_has_as_many_cool_downs_as_are_foretold():
    for last in (False, True):
        trunk, seen = trunk_on(corners(), {EVERYBODY: PLAY}), []
        trunk.losses = lambda number, plays, seen=seen: seen.append(len(plays)) or np.zeros((len(plays), 128))
        trunk.look(0, 0.3, last=last)
        assert seen == [runs_of({EVERYBODY: PLAY}, first=True, last=last)]
        assert seen[0] == (8 if not last else 8 + 2)  # tones, and samples left alone


def test_there_is_an_end_to_what_is_asked_for():
    own = [at.wrap(lambda picture: picture, name=f"Own{i}") for i in range(70)]
    plays = {EVERYBODY: Play(Space([Identity(), *own], basics=[Flip()], own=own))}
    assert len(asked_at(plays, last=False)[0]) == MOST == 62
    assert runs_of(plays, first=False, last=False) == 64


def test_with_nothing_left_to_ask_a_look_costs_nothing():
    play = Play(Space([Identity()], basics=[Flip()])).without(["Flip", ALONE])
    trunk = trunk_on(corners(), {EVERYBODY: play})
    trunk.look(0, 0.3, last=True)
    assert trunk.findings == []
    assert trunk.trainer.passes.total == 0


# ---- what is decided


def planted(harm, luck=0.0, groups=None, seed=0, options=QUICK):
    """A look at losses that are known: what each factor does to each group's samples, and the luck of each branch."""
    names = ["a", "b", "c"] if groups else [EVERYBODY]
    data = corners(66, 150, groups=[names[i % len(names)] for i in range(216)] if groups else None)
    trunk = trunk_on(data, dict.fromkeys(names, PLAY), options, Plan(1.0, (0.5,), 0.3, 2))
    rng = np.random.default_rng(seed)
    base = rng.gamma(1.0, 0.3, 150)

    def losses(number, plays):
        out = []
        for play in plays:
            row = base + rng.normal(0, luck) + rng.normal(0, 0.05, 150)
            for group in names:
                here = trunk.group_of_rows == group
                for factor, cost in harm.items():
                    row[here] += (cost[group] if groups else cost) * (factor not in play[group].out)
            out.append(row)
        return np.stack(out)

    trunk.losses = losses
    return trunk


def test_a_look_finds_the_harm_that_is_planted():
    trunk = planted({"Flip": 0.3, "VerticalFlip": -0.2, TONES: 0.1})
    trunk.look(0, 0.5, last=True)
    found = {finding.factor: finding for finding in trunk.findings}
    for factor, harm in (("Flip", 0.3), ("VerticalFlip", -0.2), (TONES, 0.1), (ALONE, 0.0)):
        assert found[factor].harm.harm == pytest.approx(harm, abs=4 * found[factor].harm.se)
        assert found[factor].harm.se < 0.02
    assert trunk.plays[EVERYBODY].out == {"Flip", TONES}


def test_the_luck_of_branches_is_no_harm():
    """Branches that differ by more than what is planted: in thirty looks next to nothing leaves by chance."""
    out = 0
    for seed in range(30):
        trunk = planted({"Flip": 0.02}, luck=0.2, seed=seed)
        trunk.look(0, 0.5, last=False)
        out += len(trunk.plays[EVERYBODY].out)
    assert out <= 2


def test_what_harms_one_group_leaves_its_play_alone():
    trunk = planted({"Flip": {"a": 0.5, "b": 0.0, "c": 0.0}}, groups=True)
    trunk.look(0, 0.5, last=True)
    assert {group: play.out for group, play in trunk.plays.items()} == {"a": {"Flip"}, "b": set(), "c": set()}


def test_what_harms_all_leaves_all():
    trunk = planted({"Flip": {"a": 0.3, "b": 0.3, "c": 0.3}}, groups=True)
    trunk.look(0, 0.5, last=True)
    assert {play.out for play in trunk.plays.values()} == {frozenset({"Flip"})}


def test_what_harms_most_and_helps_one_stays_with_that_one():
    trunk = planted({"Flip": {"a": 0.5, "b": 0.6, "c": -0.2}}, groups=True)
    trunk.look(0, 0.5, last=True)
    assert {group: play.out for group, play in trunk.plays.items()} == {"a": {"Flip"}, "b": {"Flip"}, "c": set()}


def test_groups_whose_differences_are_noise_are_decided_for_together():
    """A harm that is clear in all groups together, and in no group by itself."""
    trunk = planted({}, groups=True)
    groups = {"a": Effect(0.10, 0.06), "b": Effect(0.12, 0.06), "c": Effect(0.09, 0.06)}
    assert all(effect.z < 2.01 for effect in groups.values())
    finding = trunk.decided(0, 0.5, "Flip", groups, 2.0)
    assert finding.left == ("a", "b", "c")
    alone = trunk.decided(0, 0.5, "Flip", {"a": groups["c"]}, 2.0)
    assert alone.left == ()


def test_a_group_that_it_clearly_helps_keeps_what_leaves_all_others():
    trunk = planted({}, groups=True)
    groups = {name: Effect(0.5, 0.05) for name in "abdefg"}
    finding = trunk.decided(0, 0.5, "Flip", {**groups, "c": Effect(-0.2, 0.05)}, 2.0)
    assert finding.harm.z > 2
    assert finding.left == tuple("abdefg")
    unsure = trunk.decided(0, 0.5, "Flip", {**groups, "c": Effect(-0.2, 0.3)}, 2.0)
    assert "c" in unsure.left


def test_what_is_likely_to_harm_leaves_where_the_group_itself_says_so():
    """Where harm in all groups together is likely and not certain, each group has a word in it."""
    trunk = planted({}, groups=True)
    groups = {"a": Effect(0.3, 0.12), "b": Effect(0.2, 0.12), "c": Effect(-0.02, 0.12)}
    common = trunk.decided(0, 0.5, "Flip", groups, 1.0)
    assert 1 < common.harm.z < 2
    assert {name: effect.z > 1 for name, effect in common.groups.items()} == {"a": True, "b": True, "c": False}
    assert common.left == ("a", "b")
    assert trunk.decided(0, 0.5, "Flip", groups, 2.0).left == ("a",)


def test_what_is_less_than_likely_leaves_a_group_that_it_certainly_harms():
    trunk = planted({}, groups=True)
    groups = {"a": Effect(0.5, 0.05), "b": Effect(0.07, 0.05), "c": Effect(-0.5, 0.05)}
    finding = trunk.decided(0, 0.5, "Flip", groups, 1.0)
    assert finding.harm.z < 1
    assert finding.groups["b"].z > 1
    assert finding.left == ("a",)


@pytest.mark.parametrize(("likely", "out"), [(0.5, True), (3.0, False)])
def test_the_last_look_asks_for_less_than_the_others(likely, out):
    for last, left in ((True, out), (False, False)):
        trunk = planted({"Flip": 0.03}, luck=0.02, options=replace(QUICK, likely=likely))
        trunk.look(0, 0.5, last=last)
        assert 0.5 < trunk.findings[0].harm.z < 3
        assert ("Flip" in trunk.plays[EVERYBODY].out) == left


def test_the_evidence_of_all_looks_counts():
    trunk = trunk_on(corners(), {EVERYBODY: PLAY})
    for number in range(2):
        trunk.findings.append(trunk.decided(number, 0.5, "Flip", {EVERYBODY: Effect(0.3, 0.2)}, 2.0))
    first, second = trunk.findings
    assert (first.left, second.left) == ((), (EVERYBODY,))
    assert second.harm == pytest.approx((0.3, 0.2 / np.sqrt(2)))
    assert second.seen[EVERYBODY] == (0.3, 0.2)


def test_a_look_that_is_not_the_last_asks_for_more():
    options = replace(QUICK, clear=1000)
    trunk = trunk_on(corners(), {EVERYBODY: PLAY}, options)
    trunk.train_to(0.25)
    trunk.look(0, 0.25, last=False)
    assert trunk.plays[EVERYBODY].out == frozenset()
    trunk.look(1, 0.25, last=True)
    assert "Flip" in trunk.plays[EVERYBODY].out


def test_a_model_that_diverges_is_told():
    class Broken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = linear_model()

        def forward(self, x):
            return self.inner(x) * float("nan")

    with pytest.raises(
        at.errors.TaskError, match=r"must train on the mixture, but its losses are not finite \(look/0"
    ):
        search_tree(corners(), Classification(model=Broken, steps=20, device="cpu"), CORNERS, scorer=QUICK, budget=6)


# ---- plays of groups


def test_what_most_groups_have_left_out_is_the_common_play():
    plays = {"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip", TONES]), "c": PLAY}
    assert common_play(plays).out == {"Flip"}
    assert not same_play(plays)
    assert same_play({"a": PLAY.without(["Flip"]), "b": PLAY.without(["Flip"])})


def test_findings_are_rows_of_numbers():
    trunk = planted({"Flip": 0.3})
    trunk.look(0, 0.5, last=False)
    row = trunk.findings[0].row()
    assert (row["look"], row["at"], row["factor"], row["left"]) == (0, 0.5, "Flip", [EVERYBODY])
    assert row["groups"] == {EVERYBODY: {"harm": row["harm"], "se": row["se"]}}
    assert Posterize(0.2) in trunk.plays[EVERYBODY].styles
