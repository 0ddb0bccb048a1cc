"""JOAO: the distribution stays one, moves towards the harder transforms, and is what samples are drawn from."""

import numpy as np
import pytest
import torch

from augtree.baselines.joao import Game, Joao, drawn_pairs, moved, projected_on_simplex
from augtree.errors import ArgumentError
from augtree.keys import Key
from augtree.transforms import DropNodes, Identity, MaskNodes, PermuteEdges, Subgraph
from support.blobs import blobs, same
from support.contrastive import graphs, nt_xent_by_loops
from support.small_graphs import encoder_task

DATA = graphs()


def by_bisection(values):
    """The root of sum(max(values - mu, 0)) = 1, as the paper finds it."""
    low, high = values.min() - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(values - low, 0)


def test_the_projection_is_the_nearest_distribution():
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 25):
        values = rng.normal(0, 2, size)
        found = projected_on_simplex(values)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        assert found == pytest.approx(by_bisection(values), abs=1e-9)
        others = rng.dirichlet(np.full(size, 0.5), 3000)
        assert ((found - values) ** 2).sum() <= ((others - values) ** 2).sum(1).min() + 1e-12
    assert projected_on_simplex(np.array([[0.5, 0.25], [0.25, 0.0]])).tolist() == [[0.5, 0.25], [0.25, 0.0]]


def test_a_step_by_hand():
    """0.5 + 0.5 (1 - 0.1 * 0), 0.5 + 0.5 * 0.6: 1.0 and 0.8, less 0.4 each."""
    assert moved(np.array([0.5, 0.5]), np.array([1.0, 0.6]), 0.1, 0.5) == pytest.approx([0.6, 0.4])
    assert moved(np.array([0.9, 0.1]), np.array([1.0, 1.0]), 0.5, 1.0) == pytest.approx([0.7, 0.3])


def test_the_distribution_moves_towards_the_harder_and_comes_to_rest_where_the_paper_says():
    losses = np.array([[1.0, 1.2], [1.1, 1.6]])
    p = start = np.full((2, 2), 0.25)
    for _ in range(300):
        p = moved(p, losses, 2.0, 0.1)
    assert p.sum() == pytest.approx(1)
    assert np.argsort(p, axis=None).tolist() == np.argsort(losses, axis=None).tolist()
    assert (p * losses).sum() > (start * losses).sum()
    rng = np.random.default_rng(1)
    value = lambda q: (q * losses).sum((-2, -1)) - ((q - 0.25) ** 2).sum((-2, -1))  # noqa: E731
    assert value(p) >= value(rng.dirichlet(np.ones(4), 5000).reshape(-1, 2, 2)).max()


def test_pairs_are_drawn_from_the_distribution():
    p = np.array([[0.1, 0.0, 0.3], [0.0, 0.6, 0.0]])
    first, second = drawn_pairs(p, Key.of(0, np.arange(6000), role="joao"))
    counts = np.zeros_like(p)
    np.add.at(counts, (first, second), 1 / 6000)
    assert counts == pytest.approx(p, abs=0.03)
    assert (counts[p == 0] == 0).all()


def game(seed=0, method=None, **more):
    return Game.of(encoder_task(**more).prepare(DATA), method or Joao(), seed)


def test_the_loss_of_each_pair_is_nt_xent_of_its_views():
    player = game(batch_size=24)
    trainer, state = player.trainer, player.trainer.fit(DropNodes(0.3), 0)
    before = trainer.passes.forward
    found = player.losses(state, 5)
    assert found.shape == (5, 5)
    assert trainer.passes.forward - before == 2 * 5 * 24
    assert found[0, 0] == found.min()  # both views as they are
    same_views = trainer.predict(state, trainer.rows, lambda batch, _: trainer.forward(batch)).tolist()
    assert found[0, 0] == pytest.approx(np.mean(nt_xent_by_loops(same_views, same_views, 0.5)), abs=1e-4)


@pytest.mark.parametrize("views", ["one", "both"])
def test_with_one_pair_alone_it_is_contrastive_training_by_that_transform(views):
    player = game(views=views)
    trainer = player.trainer
    p = np.zeros(player.shape)
    assert [type(op) for op in player.operations] == [Identity, DropNodes, PermuteEdges, Subgraph, MaskNodes]
    p[-1 if views == "one" else 3, 3] = 1
    rates = trainer.task.rates(4)
    assert same(player.train(trainer.fresh(2), p, rates, 9), trainer.train(trainer.fresh(2), Subgraph(0.2), rates, 9))


def test_the_next_epoch_is_trained_on_the_distribution_that_the_last_one_led_to(monkeypatch):
    """Losses that leave one pair alone: an epoch on all of them, the rest on DropNodes and itself."""
    losses = np.zeros((5, 5))
    losses[1, 1] = 100
    monkeypatch.setattr(Game, "losses", lambda *_: losses)
    player = game(steps=7)
    state, p = player.play(3)
    assert p[1, 1] == p.sum() == 1
    trainer = player.trainer
    rates = trainer.task.rates(7)
    first = player.train(trainer.fresh(3), np.full((5, 5), 1 / 25), rates[:3], 3)
    assert same(state, trainer.train(first, DropNodes(0.2), rates[3:], 3))


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("views", ["one", "both"])
def test_a_training_repeats_counts_its_cost_and_is_not_the_plain_one(views, heads):
    task = encoder_task(views=views, steps=7)
    ends = []
    for seed in (3, 3, 4):
        trainer = task.prepare(DATA)
        state, figures = Joao(heads=heads).fit(trainer, seed)
        ends.append((state, figures))
        assert sum(figures.values()) == pytest.approx(1)
        judged = 3 * 8 * ((1 if views == "one" else 5) + 5)  # an epoch has 3 steps of 8
        assert (trainer.passes.forward, trainer.passes.backward) == (7 * 16 + judged, 7 * 16)
        assert state.step == 7
        assert state.is_finite
    (one, p), (again, q), (other, r) = ends
    assert same(one, again)
    assert p == q != r
    assert not same(one, other)
    assert not same(one, task.prepare(DATA).fit(Identity(), 3))


def test_the_distribution_leaves_the_transforms_that_are_easy():
    """Two views as they are have the lowest loss there is, so Identity loses its share."""
    task = encoder_task(steps=24, views="one")
    _, figures = Joao(gamma=1.0, rate=0.5, magnitude=0.6).fit(task.prepare(DATA), 0)
    assert figures["p Identity"] < min(share for name, share in figures.items() if name != "p Identity")


def test_without_steps_of_its_own_the_distribution_stays_uniform():
    _, figures = Joao(rate=0.0).fit(encoder_task().prepare(DATA), 0)
    assert list(figures.values()) == pytest.approx([0.2] * 5)


def test_each_transform_has_a_projection_of_its_own_in_v2():
    player = game(method=Joao(heads=True))
    trainer = player.trainer
    before = [head.state_dict()["0.weight"].clone() for head in player.heads.network]
    p = np.zeros(player.shape)
    p[1, 3] = 1
    player.train(trainer.fresh(0), p, [0.05] * 3, 0)
    moved_heads = [
        not torch.allclose(head.state_dict()["0.weight"], old, rtol=0, atol=1e-3)
        for head, old in zip(player.heads.network, before, strict=True)
    ]
    assert moved_heads == [False, True, False, True, False]


def test_what_it_is_not_for_is_refused():
    Joao().check(encoder_task(), DATA)
    with pytest.raises(ArgumentError, match="graph.*image"):
        Joao().check(encoder_task(), blobs())
    with pytest.raises(ArgumentError, match="gamma must"):
        Joao(gamma=-1)
    assert Joao(gamma=1).spec() == {"way": "joao", "gamma": 1, "rate": 1.0, "magnitude": 0.2, "heads": False}
