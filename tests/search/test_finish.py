"""The end of a search: who takes the mixture's place, and which models are averaged."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import augtree as at
from augtree.keys import Key
from augtree.policies import Tree
from augtree.search.finish import FEW, HALF_ALONE, Cooled, Finish, averaged, named, usual
from augtree.search.grow import BudgetSpentError, grow
from augtree.search.play import Play
from augtree.search.rounds import importances, single_of
from augtree.search.scorers.base import Model
from augtree.search.scorers.cooldown import Plan
from augtree.search.trunk import EVERYBODY
from augtree.tasks import Classification
from augtree.training.trainer import State
from augtree.transforms import AutoAugment, Cutout, Flip, Identity, Posterize, RandAugment, Space, TrivialAugment
from augtree.transforms.traits import ALONE
from support.searches import CORNERS, INVERT, LINEAR, corners, trunk_on

BASE = np.random.default_rng(0).gamma(1.0, 0.3, 400)
STYLES = Space([RandAugment(m=5), RandAugment(), TrivialAugment(), Cutout(0.5)], basics=[Flip()])


def finish_with(play=None, last=20, sure=2.0, seed=0):
    """The end of a search in which nothing is trained: `losses` says what each policy would have."""
    trunk = SimpleNamespace(
        trainer=None,
        seed=seed,
        plan=Plan(1.0, (), 0.2, last),
        plays={EVERYBODY: play or Play(STYLES)},
        options=SimpleNamespace(sure=sure),
        settled=[],
    )

    def settle(harm, left):
        trunk.settled.append((harm, left))
        if left:
            trunk.plays = {EVERYBODY: trunk.plays[EVERYBODY].without([ALONE])}

    trunk.settle = settle
    return Finish(trunk)


def planted(finish, losses):
    """Cool-downs that end with these losses by name, the base where none are given."""

    def cool(policies):
        for name, policy in policies.items():
            finish.done[name] = Cooled(name, policy, losses.get(name, BASE), None)
            finish.left -= 1

    finish.cool = cool
    return finish


def cooled(name, losses):
    return Cooled(name, Tree(), losses, None)


# ---- who takes the mixture's place


def test_a_clear_winner_takes_its_place_and_gains_what_it_gains():
    rng = np.random.default_rng(1)
    better, same = BASE - 0.1 + rng.normal(0, 0.1, 400), BASE + rng.normal(0, 0.1, 400)
    winner, gain, error = finish_with().best(cooled("it", BASE), [cooled("same", same), cooled("better", better)])
    assert winner.name == "better"
    assert gain == pytest.approx((BASE - better).mean())
    assert error == pytest.approx((BASE - better).std(ddof=1) / 20)


def test_few_validation_samples_let_the_mixture_stay():
    finish = finish_with()
    for count, stays in ((FEW - 1, True), (FEW, False)):
        standing, rival = cooled("it", np.ones(count)), cooled("rival", np.zeros(count))
        assert (finish.best(standing, [rival])[0] is standing) == stays


def test_a_tie_lets_the_mixture_stay():
    standing = cooled("it", BASE)
    assert finish_with().best(standing, [cooled("same", BASE.copy())]) == (standing, 0.0, 0.0)
    assert finish_with().best(standing, []) == (standing, 0.0, 0.0)


def test_the_luckiest_of_many_does_not_win():
    """Forty rivals that are as good as what stands: the best of them looks better by two standard errors or more."""
    wins = lucky = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rivals = [cooled(str(i), BASE + rng.normal(0, 0.1, 400)) for i in range(40)]
        gains = [BASE - rival.losses for rival in rivals]
        lucky += max(gain.mean() / (gain.std(ddof=1) / 20) for gain in gains) > 2
        wins += finish_with(seed=seed).best(cooled("it", BASE), rivals)[0].name != "it"
    assert lucky > 20
    assert wins <= 2


def test_what_is_chosen_by_one_half_is_judged_on_the_other():
    turn = Key.of(0, np.arange(400), role="halves").uniform() < 0.5
    assert 150 < turn.sum() < 250
    here, there = BASE - np.where(turn, 1.0, -0.2), BASE - np.where(turn, -0.3, 1.0)
    standing = cooled("it", BASE)
    winner, gain, _ = finish_with().best(standing, [cooled("here", here), cooled("there", there)])
    assert winner is standing
    assert gain == pytest.approx((-0.2 * (~turn).sum() - 0.3 * turn.sum()) / 400)


def test_how_clear_it_must_be():
    rng = np.random.default_rng(3)
    rival = cooled("rival", BASE - 0.012 + rng.normal(0, 0.1, 400))
    gains = BASE - rival.losses
    z = gains.mean() / (gains.std(ddof=1) / 20)
    assert 1 < z < 4
    assert finish_with(sure=z - 0.01).best(cooled("it", BASE), [rival])[0] is rival
    assert finish_with(sure=z + 0.01).best(cooled("it", BASE), [rival])[0].name == "it"


# ---- Algorithm 1 with cool-downs


def test_the_mixture_is_cooled_twice_and_then_the_published_policies_in_play():
    finish = planted(finish_with(last=6), {})
    built = finish.build_one_node(1, Tree(), None)
    mixture = named(finish.play.mixture())
    over = [named(finish.play.over_basics(style)) for style in (RandAugment(), RandAugment(m=5), TrivialAugment())]
    assert list(finish.done) == [mixture, mixture + HALF_ALONE, *over]
    assert built.transform == finish.play.mixture()[1].transform
    assert built.why == "nothing beat the mixture"


@pytest.mark.parametrize("last", [1, 2, 3])
def test_there_are_as_many_cool_downs_as_planned(last):
    finish = planted(finish_with(last=last), {})
    growth = grow(finish, 3, 0)
    assert len(finish.done) == last
    assert growth.tree == finish.play.mixture()


def test_a_policy_that_clearly_beats_the_mixture_is_the_root():
    play = Play(STYLES)
    best = play.over_basics(TrivialAugment())
    finish = planted(finish_with(last=6), {named(best): BASE - 0.2})
    built = finish.build_one_node(1, Tree(), None)
    assert (built.transform, built.p, built.improves) == (best[1].transform, 1.0, True)
    assert built.gain == pytest.approx(0.2)
    assert single_of(finish, play) == best


def test_what_comes_after_is_grown_where_it_brings_something():
    play = Play(STYLES)
    child = play.mixture().with_node(2, Cutout(0.5), 0.5)
    finish = planted(finish_with(last=30), {named(child): BASE - np.linspace(0.05, 0.15, 400)})
    growth = grow(finish, 2, seed=4)
    assert growth.tree.nodes.get(2, growth.tree.nodes.get(3)).transform == Cutout(0.5)
    assert all(found.why for node, found in growth.built if not found.improves)


def test_importances_are_the_gains_of_what_comes_after():
    finish = planted(finish_with(last=30), {})
    root = finish.build_one_node(1, Tree(), None)
    tree = Tree().with_node(1, root.transform, root.p)
    planted(finish, {named(tree.with_node(2, Cutout(0.5), 0.5)): BASE - np.linspace(0.05, 0.15, 400)})
    second = finish.build_one_node(2, tree, None)
    found = importances(finish, SimpleNamespace(built=((1, root), (2, second))), 0)
    assert list(found) == ["Cutout"]
    assert found["Cutout"].gain == pytest.approx(0.1)
    assert found["Cutout"].spread == pytest.approx(np.linspace(0.05, 0.15, 400).std() / 20, rel=0.1)


def test_presets_and_identity_do_not_come_after():
    finish = finish_with(Play(Space([*STYLES, AutoAugment(), Posterize(0.4)], basics=[Flip()])))
    tree = finish.play.mixture()
    chosen = [entry[2] for entry in finish.children(tree, 2, None)]
    assert [node.transform for node in chosen] == [Cutout(0.5), Posterize(0.4)]
    assert {node.p for node in chosen} == {0.5}
    assert finish.children(tree, 3, 0.25)[0][3].p == 0.25


def test_with_no_cool_down_left_nothing_comes_after():
    finish = finish_with(last=20)
    finish.left = 0
    with pytest.raises(BudgetSpentError):
        finish.children(finish.play.mixture(), 2, None)


def test_with_nothing_in_play_the_tree_is_empty():
    play = Play(Space([INVERT], basics=[Flip()])).without(["Flip", "tones"])
    growth = grow(planted(finish_with(play), {}), 2, 0)
    assert growth.tree == Tree()
    assert growth.built[0][1].why == "nothing is in play"


def test_a_policy_is_cooled_once():
    finish = planted(finish_with(), {})
    assert finish.cooled(Tree()) is finish.cooled(Tree())
    assert finish.left == 19


def test_policies_that_are_called_the_same_are_cooled_each():
    finish = planted(finish_with(), {})
    black, grey = (Tree().with_node(1, RandAugment(fill=fill), 1.0) for fill in (0, 128))
    assert named(black) == named(grey)
    assert finish.cooled(black).policy == black
    assert finish.cooled(grey).policy == grey
    assert len(finish.done) == 2


def test_randaugment_at_its_own_strength_is_known_whatever_it_fills_with():
    assert usual(RandAugment(m=3, fill=7)) == RandAugment(fill=7)
    assert usual(Cutout(0.5, fill=9)) == RandAugment(fill=9)


def test_half_of_the_samples_are_left_alone_where_that_is_clearly_better():
    finish = finish_with(last=6)
    whole = named(finish.play.mixture())
    planted(finish, {whole + HALF_ALONE: BASE - np.linspace(0.05, 0.15, 400)})
    built = finish.build_one_node(1, Tree(), None)
    ((harm, left),) = finish.trunk.settled
    assert left
    assert harm.harm == pytest.approx(0.1)
    assert harm.se == pytest.approx(np.linspace(0.05, 0.15, 400).std(ddof=1) / 20)
    assert (built.p, finish.play.augmented) == (0.5, 0.5)
    assert list(finish.done)[2] == named(finish.play.over_basics(RandAugment()))
    assert finish.done[list(finish.done)[2]].policy[1].p == 0.5


@pytest.mark.parametrize("better", [0.0, -0.1, 0.001])
def test_without_clear_harm_every_sample_is_augmented(better):
    noise = np.random.default_rng(1).normal(0, 0.1, 400)
    finish = finish_with(last=2)
    planted(finish, {named(finish.play.mixture()) + HALF_ALONE: BASE - better + noise - noise.mean()})
    built = finish.build_one_node(1, Tree(), None)
    assert [left for _, left in finish.trunk.settled] == [False]
    assert built.p == 1.0
    assert single_of(finish, finish.play) == finish.play.mixture()


def test_with_few_validation_samples_nothing_is_settled():
    finish = finish_with(last=2)
    few = BASE[: FEW - 1]
    whole = named(finish.play.mixture())
    planted(finish, {whole: few, whole + HALF_ALONE: few - 1})
    assert finish.build_one_node(1, Tree(), None).p == 1.0
    assert finish.trunk.settled == []


def test_where_half_are_left_alone_the_two_on_the_mixture_differ_in_their_draws_alone():
    finish = planted(finish_with(Play(STYLES).without([ALONE]), last=2), {})
    finish.build_one_node(1, Tree(), None)
    mixture = named(finish.play.mixture())
    assert list(finish.done) == [mixture, f"{mixture}, again"]
    first, second = finish.done.values()
    assert first.policy == second.policy == finish.play.mixture()


# ---- averages


def state(*values, step=3):
    numbers = {"weights": torch.tensor(values), "count": torch.tensor([int(10 * values[0])])}
    return State(numbers, step)


def test_the_average_of_equal_states_is_that_state():
    one = state(0.1, 1 / 3, 7e-9, 3e8)
    found = averaged([one] * 3)
    assert torch.equal(found.tensors["weights"], one.tensors["weights"])
    assert found.step == 3


def test_the_average_of_two_is_their_mean_but_for_whole_numbers():
    found = averaged([state(1.0, -2.0), state(2.0, 5.0)])
    assert found.tensors["weights"].tolist() == [1.5, 1.5]
    assert found.tensors["weights"].dtype == torch.float32
    assert found.tensors["count"].tolist() == [10]


def with_models(states, renew=0, model=LINEAR):
    """The end of a search whose cool-downs are these states, with their own losses."""
    trunk = trunk_on(corners(lower=0), {EVERYBODY: Play(CORNERS)}, at.search.Cooldown(renew=renew), task=model)
    finish = Finish(trunk)
    for name, each in states(trunk.trainer).items():
        losses = trunk.trainer.calibrated_losses(each, trunk.rows)
        finish.done[name] = Cooled(name, Tree(), losses, Model(lambda each=each: each, each))
    return finish


def moved(base, direction, length):
    tensors = {**base.tensors, "weights": base.tensors["weights"] + length * direction}
    return State(tensors, base.step)


def trained(trainer):
    base = trainer.fit(Tree(), 0)
    torch.manual_seed(0)
    direction = torch.randn_like(base.tensors["weights"])
    return base, direction / direction.norm() * base.tensors["weights"].norm()


def test_an_average_keeps_no_member_that_raises_the_loss():
    def states(trainer):
        base, direction = trained(trainer)
        worse = State({**base.tensors, "weights": -base.tensors["weights"]}, base.step)
        return {"good": base, "upside down": worse, "astray": moved(base, direction, 5.0)}

    finish = with_models(states)
    found, members = finish.average(Tree())
    assert members == ["good"]
    assert torch.equal(found.tensors["weights"], finish.done["good"].model().tensors["weights"])


def test_an_average_keeps_members_whose_faults_cancel():
    def states(trainer):
        base, direction = trained(trainer)
        return {"one": moved(base, direction, 2.0), "other": moved(base, direction, -2.0)}

    finish = with_models(states)
    found, members = finish.average(Tree())
    assert sorted(members) == ["one", "other"]
    trainer, rows = finish.trainer, finish.trunk.rows
    mean_loss = trainer.calibrated_losses(found, rows).mean()
    assert mean_loss < min(cooled.losses.mean() for cooled in finish.done.values())
    middle = sum(cooled.model().tensors["weights"] for cooled in finish.done.values()) / 2
    assert torch.allclose(found.tensors["weights"], middle)


def test_members_are_tried_from_the_best_on():
    def states(trainer):
        base, direction = trained(trainer)
        return {name: moved(base, direction, by) for name, by in (("far", 0.9), ("best", 0.0), ("near", 0.2))}

    finish = with_models(states)
    order = sorted(finish.done, key=lambda name: finish.done[name].losses.mean())
    finish.average(Tree())
    tried = [unit.value["average"] for unit in finish.trunk.bench.run.units("average/") if "average" in unit.value]
    assert tried[0] == order[:2]
    assert tried[1][-1] == order[2]


def normed():
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 2))


def test_an_average_renews_its_batch_statistics_and_no_weight():
    task = Classification(model=normed, steps=40, batch_size=64, lr=0.02, device="cpu")

    def states(trainer):
        return {"one": trainer.fit(Tree(), 0), "same": trainer.fit(Tree(), 0)}

    finish = with_models(states, renew=30, model=task)
    for name, tensor in finish.done["same"].model().tensors.items():
        if "running" in name:
            tensor.fill_(9.0)
    finish.done["one"].losses[:] = finish.done["same"].losses[:] = 100.0  # whatever comes is better
    found, members = finish.average(Tree())
    assert members == ["one", "same"]
    one = finish.done["one"].model().tensors
    assert torch.equal(found.tensors["weights"], one["weights"])
    running = next(name for name in one if "running_mean" in name)
    assert (found.tensors[running] - one[running]).abs().max() < 0.4  # half of what was spoilt is 4.5
    assert not torch.equal(found.tensors[running], one[running])


def test_a_forest_is_called_a_forest():
    forest = at.Forest({"a": (Tree(), 0.5), "b": (Tree(), 0.5)})
    assert named(forest) == "forest"
    assert named(Tree().with_node(1, Identity(), 1.0)) == named(Tree())
