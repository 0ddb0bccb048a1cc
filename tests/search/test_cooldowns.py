"""The end of a search: who takes the mixture's place, and which models are averaged."""

from types import SimpleNamespace

import numpy as np
import pytest

import augtree as at
from augtree.keys import Key
from augtree.policies import Tree
from augtree.runs.failures import BudgetSpentError
from augtree.search.cooldown_search import best_single
from augtree.search.cooldowns import (
    MIN_VAL_TO_CHOOSE,
    CooledModel,
    FinalCooldowns,
    default_randaugment,
    policy_name,
)
from augtree.search.grow import grow
from augtree.search.importance import importances
from augtree.search.play import UNGROUPED, Play
from augtree.search.scorers.cooldown import Plan
from augtree.transforms import AutoAugment, Cutout, Flip, Identity, Posterize, RandAugment, Space, TrivialAugment
from augtree.transforms.traits import EVERY_SAMPLE
from support.searches import INVERT

BASE = np.random.default_rng(0).gamma(1.0, 0.3, 400)
STYLES = Space([RandAugment(m=5), RandAugment(), TrivialAugment(), Cutout(0.5)], basics=[Flip()])


def cooldowns_with(play=None, last=20, sure=2.0, seed=0):
    """The end of a search in which nothing is trained: `losses` says what each policy would have."""
    trunk = SimpleNamespace(
        trainer=None,
        seed=seed,
        plan=Plan(1.0, (), 0.2, last),
        plays={UNGROUPED: play or Play(STYLES)},
        options=SimpleNamespace(sure=sure),
    )
    return FinalCooldowns(trunk)


def planted(cooldowns, losses):
    """Cool-downs that end with these losses by name, the base where none are given."""

    def run(policies):
        for name, policy in policies.items():
            cooldowns.done[name] = CooledModel(name, policy, losses.get(name, BASE), None)
            cooldowns.remaining -= 1

    cooldowns.run = run
    return cooldowns


def cooled(name, losses):
    return CooledModel(name, Tree(), losses, None)


# ---- who takes the mixture's place


def test_a_clear_winner_takes_its_place_and_gains_what_it_gains():
    rng = np.random.default_rng(1)
    better, same = BASE - 0.1 + rng.normal(0, 0.1, 400), BASE + rng.normal(0, 0.1, 400)
    winner, gain, error = cooldowns_with().best(cooled("it", BASE), [cooled("same", same), cooled("better", better)])
    assert winner.name == "better"
    assert gain == pytest.approx((BASE - better).mean())
    assert error == pytest.approx((BASE - better).std(ddof=1) / 20)


def test_few_validation_samples_let_the_mixture_stay():
    cooldowns = cooldowns_with()
    for count, stays in ((MIN_VAL_TO_CHOOSE - 1, True), (MIN_VAL_TO_CHOOSE, False)):
        standing, rival = cooled("it", np.ones(count)), cooled("rival", np.zeros(count))
        assert (cooldowns.best(standing, [rival])[0] is standing) == stays


def test_a_tie_lets_the_mixture_stay():
    standing = cooled("it", BASE)
    assert cooldowns_with().best(standing, [cooled("same", BASE.copy())]) == (standing, 0.0, 0.0)
    assert cooldowns_with().best(standing, []) == (standing, 0.0, 0.0)


def test_the_luckiest_of_many_does_not_win():
    """Forty rivals that are as good as what stands: the best of them looks better by two standard errors or more."""
    wins = lucky = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rivals = [cooled(str(i), BASE + rng.normal(0, 0.1, 400)) for i in range(40)]
        gains = [BASE - rival.losses for rival in rivals]
        lucky += max(gain.mean() / (gain.std(ddof=1) / 20) for gain in gains) > 2
        wins += cooldowns_with(seed=seed).best(cooled("it", BASE), rivals)[0].name != "it"
    assert lucky > 20
    assert wins <= 2


def test_what_is_chosen_by_one_half_is_judged_on_the_other():
    turn = Key.of(0, np.arange(400), role="halves").uniform() < 0.5
    assert 150 < turn.sum() < 250
    here, there = BASE - np.where(turn, 1.0, -0.2), BASE - np.where(turn, -0.3, 1.0)
    standing = cooled("it", BASE)
    winner, gain, _ = cooldowns_with().best(standing, [cooled("here", here), cooled("there", there)])
    assert winner is standing
    assert gain == pytest.approx((-0.2 * (~turn).sum() - 0.3 * turn.sum()) / 400)


def test_how_clear_it_must_be():
    rng = np.random.default_rng(3)
    rival = cooled("rival", BASE - 0.012 + rng.normal(0, 0.1, 400))
    gains = BASE - rival.losses
    z = gains.mean() / (gains.std(ddof=1) / 20)
    assert 1 < z < 4
    assert cooldowns_with(sure=z - 0.01).best(cooled("it", BASE), [rival])[0] is rival
    assert cooldowns_with(sure=z + 0.01).best(cooled("it", BASE), [rival])[0].name == "it"


# ---- Algorithm 1 with cool-downs


def test_the_mixture_is_cooled_twice_and_then_the_published_policies_in_play():
    cooldowns = planted(cooldowns_with(last=6), {})
    built = cooldowns.build_one_node(1, Tree(), None)
    mixture = policy_name(cooldowns.play.mixture())
    over = [
        policy_name(cooldowns.play.over_basics(style))
        for style in (RandAugment(), RandAugment(m=5), TrivialAugment())
    ]
    assert list(cooldowns.done) == [mixture, f"{mixture}, again", *over]
    assert built.transform == cooldowns.play.mixture()[1].transform
    assert built.why == "nothing beat the mixture"


@pytest.mark.parametrize("last", [1, 2, 3])
def test_there_are_as_many_cool_downs_as_planned(last):
    cooldowns = planted(cooldowns_with(last=last), {})
    growth = grow(cooldowns, 3, 0)
    assert len(cooldowns.done) == last
    assert growth.tree == cooldowns.play.mixture()


def test_a_policy_that_clearly_beats_the_mixture_is_the_root():
    play = Play(STYLES)
    best = play.over_basics(TrivialAugment())
    cooldowns = planted(cooldowns_with(last=6), {policy_name(best): BASE - 0.2})
    built = cooldowns.build_one_node(1, Tree(), None)
    assert (built.transform, built.p, built.improves) == (best[1].transform, 1.0, True)
    assert built.gain == pytest.approx(0.2)
    assert best_single(cooldowns, play) == best


def test_what_comes_after_is_grown_where_it_brings_something():
    play = Play(STYLES)
    child = play.mixture().with_node(2, Cutout(0.5), 0.5)
    cooldowns = planted(cooldowns_with(last=30), {policy_name(child): BASE - np.linspace(0.05, 0.15, 400)})
    growth = grow(cooldowns, 2, seed=4)
    assert growth.tree.nodes.get(2, growth.tree.nodes.get(3)).transform == Cutout(0.5)
    assert all(found.why for node, found in growth.built if not found.improves)


def test_importances_are_the_gains_of_what_comes_after():
    cooldowns = planted(cooldowns_with(last=30), {})
    root = cooldowns.build_one_node(1, Tree(), None)
    tree = Tree().with_node(1, root.transform, root.p)
    planted(cooldowns, {policy_name(tree.with_node(2, Cutout(0.5), 0.5)): BASE - np.linspace(0.05, 0.15, 400)})
    second = cooldowns.build_one_node(2, tree, None)
    found = importances(SimpleNamespace(built=((1, root), (2, second))), cooldowns.gains, 0)
    assert list(found) == ["Cutout"]
    assert found["Cutout"].gain == pytest.approx(0.1)
    assert found["Cutout"].spread == pytest.approx(np.linspace(0.05, 0.15, 400).std() / 20, rel=0.1)


def test_presets_and_identity_do_not_come_after():
    cooldowns = cooldowns_with(Play(Space([*STYLES, AutoAugment(), Posterize(0.4)], basics=[Flip()])))
    tree = cooldowns.play.mixture()
    chosen = [entry[2] for entry in cooldowns.children(tree, 2, None)]
    assert [node.transform for node in chosen] == [Cutout(0.5), Posterize(0.4)]
    assert {node.p for node in chosen} == {0.5}
    assert cooldowns.children(tree, 3, 0.25)[0][3].p == 0.25


def test_with_no_cool_down_left_nothing_comes_after():
    cooldowns = cooldowns_with(last=20)
    cooldowns.remaining = 0
    with pytest.raises(BudgetSpentError):
        cooldowns.children(cooldowns.play.mixture(), 2, None)


def test_with_nothing_in_play_the_tree_is_empty():
    play = Play(Space([INVERT], basics=[Flip()])).without(["Flip", "tones"])
    growth = grow(planted(cooldowns_with(play), {}), 2, 0)
    assert growth.tree == Tree()
    assert growth.built[0][1].why == "nothing is in play"


def test_a_policy_is_cooled_once():
    cooldowns = planted(cooldowns_with(), {})
    assert cooldowns.cooled_on(Tree()) is cooldowns.cooled_on(Tree())
    assert cooldowns.remaining == 19


def test_policies_that_are_called_the_same_are_cooled_each():
    cooldowns = planted(cooldowns_with(), {})
    black, grey = (Tree().with_node(1, RandAugment(fill=fill), 1.0) for fill in (0, 128))
    assert policy_name(black) == policy_name(grey)
    assert cooldowns.cooled_on(black).policy == black
    assert cooldowns.cooled_on(grey).policy == grey
    assert len(cooldowns.done) == 2


def test_randaugment_at_its_own_strength_is_known_whatever_it_fills_with():
    assert default_randaugment(RandAugment(m=3, fill=7)) == RandAugment(fill=7)
    assert default_randaugment(Cutout(0.5, fill=9)) == RandAugment(fill=9)


def test_one_cool_down_is_on_the_mixture():
    cooldowns = planted(cooldowns_with(Play(STYLES).without([EVERY_SAMPLE]), last=1), {})
    built = cooldowns.build_one_node(1, Tree(), None)
    assert list(cooldowns.done) == [policy_name(cooldowns.play.mixture())]
    assert built.p == cooldowns.play.augmented_share == 0.5
    assert built.why == "the mixture of what is in play"  # compared with nothing
    assert best_single(cooldowns, cooldowns.play) == cooldowns.play.mixture()


def test_two_cool_downs_on_the_mixture_differ_in_their_draws_alone():
    cooldowns = planted(cooldowns_with(Play(STYLES), last=2), {})
    cooldowns.build_one_node(1, Tree(), None)
    mixture = policy_name(cooldowns.play.mixture())
    assert list(cooldowns.done) == [mixture, f"{mixture}, again"]
    first, second = cooldowns.done.values()
    assert first.policy == second.policy == cooldowns.play.mixture()


def test_a_forest_is_called_a_forest():
    forest = at.Forest({"a": (Tree(), 0.5), "b": (Tree(), 0.5)})
    assert policy_name(forest) == "forest"
    assert policy_name(Tree().with_node(1, Identity(), 1.0)) == policy_name(Tree())
