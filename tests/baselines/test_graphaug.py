"""GraphAug: the reward falls where a step changes the label, and the generator learns from it."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from augtree.baselines.graph_generator import Generated
from augtree.baselines.graphaug import GraphAug, drawn_pairs, policy_loss
from augtree.errors import ArgumentError
from augtree.keys import Key
from augtree.transforms import Identity
from support.blobs import blobs, same
from support.contrastive import graphs
from support.small_graphs import classifier_task, encoder_task, marked_rings, paths

DATA = marked_rings(80)
TASK = classifier_task(steps=150, batch_size=32, optimizer="adamw", lr=0.01)


@pytest.fixture(scope="module")
def learned():
    """The trainer, and a reward model and a generator that know the marked node."""
    trainer, method = TASK.prepare(DATA), GraphAug(learning=1.0, lr=0.01, length=1)
    reward = method.reward_model(trainer, 0)
    return trainer, reward, *method.generator(trainer, reward, 0)


def masked(graph, node):
    out = graph.clone()
    out.x = out.x.clone()
    out.x[node] = 0
    return out


@torch.no_grad()
def test_the_reward_falls_for_a_step_that_changes_the_label(learned):
    _, reward, *_ = learned
    marked = [graph for graph in DATA.samples if graph.x[:, 1].any()]
    places = [int(graph.x[:, 1].argmax()) for graph in marked]
    before = Batch.from_data_list(marked)
    changing = Batch.from_data_list([masked(g, i) for g, i in zip(marked, places, strict=True)])
    keeping = Batch.from_data_list([masked(g, (i + 2) % g.num_nodes) for g, i in zip(marked, places, strict=True)])
    changed, kept = (reward.rewards(before, after).exp() for after in (changing, keeping))
    assert (changed < kept).all()
    assert changed.mean() < 0.2
    assert kept.mean() > 0.5


@torch.no_grad()
def test_the_generator_learns_to_leave_what_the_label_depends_on(learned):
    _, reward, generator, _ = learned
    marked = Batch.from_data_list([graph for graph in DATA.samples if graph.x[:, 1].any()] * 20)
    lost, kept = {}, {}
    fresh = type(generator)(2, 1).eval()
    for name, model in (("fresh", fresh), ("learned", generator)):
        made = Generated(model)(marked, seed=1)
        lost[name] = 1 - sum(bool(one.x[:, 1].any()) for one in made.to_data_list()) / marked.num_graphs
        kept[name] = float(reward.rewards(marked, made).exp().mean())
    assert lost["learned"] < lost["fresh"] / 2
    assert kept["learned"] > kept["fresh"]
    assert made.num_edges < 0.9 * marked.num_edges  # which the label does not need


def test_the_policy_gradient_is_that_of_the_expected_reward():
    """One choice with probability p and reward 2, else 0.5: the derivative by its score is 1.5 p (1 - p)."""
    score = torch.tensor(-0.4, requires_grad=True)
    p = torch.sigmoid(score.detach())
    taken = torch.rand(40000, generator=torch.Generator().manual_seed(0)) < p
    log_probability = torch.nn.functional.logsigmoid(torch.where(taken, score, -score))
    policy_loss(torch.where(taken, 2.0, 0.5), log_probability).backward()
    assert float(score.grad) == pytest.approx(-1.5 * float(p * (1 - p)), abs=0.01)


def test_half_of_the_pairs_have_the_same_label():
    labels, rows = np.array([0, 0, 1, 1, 1, 2]), np.arange(6)
    found = np.stack([drawn_pairs(labels, rows, rows, Key.of(seed, rows)) for seed in range(600)])
    alike = (labels[found] == labels).mean(0)
    assert alike == pytest.approx([0.5] * 6, abs=0.08)
    assert (found[:, :5] != rows[:5])[labels[found][:, :5] == labels[:5]].all()  # another sample of that label
    assert (found[:, 5][labels[found[:, 5]] == 2] == 5).all()  # which there is none of


def test_a_training_repeats_counts_its_cost_and_is_not_the_plain_one():
    ends, task, data = [], classifier_task(steps=6, batch_size=8), marked_rings(24)
    for seed in (3, 3, 4):
        trainer = task.prepare(data)
        state, figures = GraphAug().fit(trainer, seed)
        # 3 steps of the reward model, 3 of the generator, 6 of the classifier, whose graphs the generator makes.
        forward = 3 * 2 * 8 + 3 * 4 * 8 + 6 * 3 * 8
        assert (trainer.passes.forward, trainer.passes.backward) == (forward, 3 * 2 * 8 + 3 * 2 * 8 + 6 * 8)
        assert (list(figures), state.step, state.is_finite) == (["label kept", "elements changed"], 6, True)
        ends.append((state, figures))
    assert same(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1] != ends[2][1]
    assert not same(ends[0][0], ends[2][0])
    assert not same(ends[0][0], task.prepare(data).fit(Identity(), 3))
    assert trainer.passes.total / (6 * 2 * 8) == 4.5  # as `costs` says


def test_what_it_is_not_for_is_refused():
    GraphAug().check(TASK, DATA)
    with pytest.raises(ArgumentError, match="labels must be one for each graph, for graphaug, got 'several'"):
        GraphAug().check(TASK, paths(np.eye(4, dtype=int), np.array(["a"] * 4)))
    with pytest.raises(ArgumentError, match="supervised.*contrastive"):
        GraphAug().check(encoder_task(), graphs())
    with pytest.raises(ArgumentError, match="graph.*image"):
        GraphAug().check(TASK, blobs())
    with pytest.raises(ArgumentError, match="length must"):
        GraphAug(length=0)
