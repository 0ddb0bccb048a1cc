"""What a look decides, given the losses of its cool-downs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import augtree as at
from augtree.search import search_tree
from augtree.search.factorial import Effect
from augtree.search.play import UNGROUPED, Play
from augtree.search.scorers.cooldown import Plan
from augtree.tasks import Classification
from augtree.transforms import Posterize
from augtree.transforms.traits import EVERY_SAMPLE, TONES
from support.searches import (
    CORNERS,
    QUICK,
    corners,
    linear_model,
    trunk_on,
)

PLAY = Play(CORNERS)


def planted(harm, luck=0.0, groups=None, seed=0, options=QUICK):
    """A look at losses that are known: what each factor does to each group's samples, and the luck of each branch."""
    names = ["a", "b", "c"] if groups else [UNGROUPED]
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
    for factor, harm in (("Flip", 0.3), ("VerticalFlip", -0.2), (TONES, 0.1), (EVERY_SAMPLE, 0.0)):
        assert found[factor].effect.harm == pytest.approx(harm, abs=4 * found[factor].effect.se)
        assert found[factor].effect.se < 0.02
    assert trunk.plays[UNGROUPED].out == {"Flip", TONES}


def test_the_luck_of_branches_is_no_harm():
    """Branches that differ by more than what is planted: in thirty looks next to nothing leaves by chance."""
    out = 0
    for seed in range(30):
        trunk = planted({"Flip": 0.02}, luck=0.2, seed=seed)
        trunk.look(0, 0.5, last=False)
        out += len(trunk.plays[UNGROUPED].out)
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
    finding = trunk.judge(0, 0.5, "Flip", groups, 2.0)
    assert finding.removed_in == ("a", "b", "c")
    alone = trunk.judge(0, 0.5, "Flip", {"a": groups["c"]}, 2.0)
    assert alone.removed_in == ()


def test_a_group_that_it_clearly_helps_keeps_what_leaves_all_others():
    trunk = planted({}, groups=True)
    groups = {name: Effect(0.5, 0.05) for name in "abdefg"}
    finding = trunk.judge(0, 0.5, "Flip", {**groups, "c": Effect(-0.2, 0.05)}, 2.0)
    assert finding.effect.z > 2
    assert finding.removed_in == tuple("abdefg")
    unsure = trunk.judge(0, 0.5, "Flip", {**groups, "c": Effect(-0.2, 0.3)}, 2.0)
    assert "c" in unsure.removed_in


def test_before_the_last_look_a_factor_stays_where_a_group_s_own_samples_do_not_agree():
    groups = {"a": Effect(0.25, 0.1), "b": Effect(0.25, 0.1), "c": Effect(0.08, 0.1)}
    for looks, left in (((0.3, 0.6), ("a", "b")), ((0.3,), ("a", "b", "c"))):
        trunk = trunk_on(corners(), {UNGROUPED: PLAY}, plan=Plan(1.0, looks, 0.3, 2))
        finding = trunk.judge(0, 0.3, "Flip", groups, 2.0)
        assert finding.effect.z > 2
        assert len(set(finding.groups.values())) == 1  # the differences are no more than noise
        assert finding.removed_in == left


def test_a_group_that_it_certainly_harms_loses_what_harms_nobody_else():
    trunk = planted({}, groups=True)
    groups = {"a": Effect(0.5, 0.05), "b": Effect(0.07, 0.05), "c": Effect(-0.5, 0.05)}
    finding = trunk.judge(0, 0.5, "Flip", groups, 1.0)
    assert finding.effect.z < 1
    assert finding.groups["b"].z > 1
    assert finding.removed_in == ("a",)


@pytest.mark.parametrize(("sure", "out"), [(0.5, True), (3.0, False)])
def test_the_last_look_has_a_bar_of_its_own(sure, out):
    for last, left in ((True, out), (False, False)):
        trunk = planted({"Flip": 0.03}, luck=0.02, options=replace(QUICK, sure=sure))
        trunk.look(0, 0.5, last=last)
        assert 0.5 < trunk.findings[0].effect.z < 3
        assert ("Flip" in trunk.plays[UNGROUPED].out) == left


def test_the_evidence_of_all_looks_counts():
    trunk = trunk_on(corners(), {UNGROUPED: PLAY})
    for number in range(2):
        trunk.findings.append(trunk.judge(number, 0.5, "Flip", {UNGROUPED: Effect(0.3, 0.2)}, 2.0))
    first, second = trunk.findings
    assert (first.removed_in, second.removed_in) == ((), (UNGROUPED,))
    assert second.effect == pytest.approx((0.3, 0.2 / np.sqrt(2)))
    assert second.seen[UNGROUPED] == (0.3, 0.2)


def test_a_look_that_is_not_the_last_asks_for_more():
    options = replace(QUICK, clear=1000)
    trunk = trunk_on(corners(), {UNGROUPED: PLAY}, options)
    trunk.train_to(0.25)
    trunk.look(0, 0.25, last=False)
    assert trunk.plays[UNGROUPED].out == frozenset()
    trunk.look(1, 0.25, last=True)
    assert "Flip" in trunk.plays[UNGROUPED].out


def test_a_model_that_diverges_is_told():
    class Broken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = linear_model()

        def forward(self, x):
            return self.inner(x) * float("nan")

    with pytest.raises(at.errors.TaskError, match=r"the training diverged with lr=0\.1 after \d+ steps \(trunk/1\)"):
        search_tree(corners(), Classification(model=Broken, steps=20, device="cpu"), CORNERS, scorer=QUICK, budget=6)


def test_findings_are_rows_of_numbers():
    trunk = planted({"Flip": 0.3})
    trunk.look(0, 0.5, last=False)
    row = trunk.findings[0].row()
    assert (row["look"], row["at"], row["factor"], row["left"]) == (0, 0.5, "Flip", [UNGROUPED])
    assert row["groups"] == {UNGROUPED: {"harm": row["harm"], "se": row["se"]}}
    assert Posterize(0.2) in trunk.plays[UNGROUPED].styles
