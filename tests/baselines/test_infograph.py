"""InfoGraph: the estimator against a double loop, and a training that finds the graph of a node."""

import copy
import math

import pytest
import torch
from torch import nn

from augtree.baselines import infograph
from augtree.baselines.infograph import InfoGraph, PairScores, jensen_shannon
from augtree.errors import ArgumentError
from augtree.transforms import Identity
from support.blobs import blobs, same
from support.contrastive import graphs
from support.small_graphs import encoder_task

DATA = graphs()


@torch.no_grad()
def test_the_estimator_against_a_double_loop():
    torch.manual_seed(0)
    members, network = torch.tensor([0, 0, 0, 1, 2, 2]), PairScores(4)
    nodes, pooled = torch.randn(6, 4), torch.randn(3, 4)
    positive, negative = [], []
    for i, node in enumerate(nodes):
        for j, graph in enumerate(pooled):
            score = float(network.nodes(node) @ network.graphs(graph))
            if members[i] == j:
                positive.append(-math.log1p(math.exp(-score)))
            else:
                negative.append(math.log1p(math.exp(score)))
    estimate = sum(positive) / len(positive) - sum(negative) / len(negative)
    assert float(jensen_shannon(network(nodes, pooled), members)) == pytest.approx(-estimate, abs=1e-5)


def test_the_nodes_of_a_model_are_what_its_features_are_sums_of():
    for model in ("gin", "resgcn"):
        trainer = encoder_task(model=model, options={"layers": 2, "hidden": 4}).prepare(DATA)
        trainer.load(trainer.fresh(0))
        trainer.model.eval()
        batch = trainer.samples_on_device(trainer.rows[:5])
        pooled, nodes, members = trainer.model.with_nodes(batch)
        assert torch.equal(members, batch.batch)
        torch.testing.assert_close(pooled, trainer.model.features(batch))
        sums = torch.stack([nodes[batch.batch == i].sum(0) for i in range(5)])
        torch.testing.assert_close(pooled, sums)


@pytest.mark.parametrize("model", ["gin", "resgcn"])
def test_training_lowers_the_loss(model, monkeypatch):
    seen, measured = [], infograph.jensen_shannon

    def noted(*arguments):
        out = measured(*arguments)
        seen.append(out.item())
        return out

    monkeypatch.setattr(infograph, "jensen_shannon", noted)
    options = {"layers": 2, "hidden": 8}
    task = encoder_task(model=model, options=options, steps=60, batch_size=24, optimizer="adamw", lr=0.01)
    InfoGraph().fit(task.prepare(DATA), 0)
    assert sum(seen[-5:]) / 5 < sum(seen[:5]) / 5 - 0.1
    assert seen[-1] < 2 * math.log(2) - 0.1  # that of scores without information


def test_a_training_repeats_counts_its_cost_and_is_not_the_plain_one():
    task = encoder_task(steps=5)
    ends = []
    for seed in (3, 3, 4):
        trainer = task.prepare(DATA)
        state, figures = InfoGraph().fit(trainer, seed)
        assert (trainer.passes.forward, trainer.passes.backward) == (5 * 8, 5 * 8)
        assert (figures, state.step) == ({}, 5)
        assert trainer.features(state, trainer.rows).isfinite().all()
        ends.append(state)
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])
    assert not same(ends[0], task.prepare(DATA).fit(Identity(), 3))


def test_the_networks_of_the_scores_are_trained_too(monkeypatch):
    made = []

    class Seen(PairScores):
        def __init__(self, width):
            super().__init__(width)
            made.append((self, copy.deepcopy(self.state_dict())))

    monkeypatch.setattr(infograph, "PairScores", Seen)
    InfoGraph().fit(encoder_task(steps=3).prepare(DATA), 0)
    [(network, before)] = made
    assert all(not torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_what_it_is_not_for_is_refused():
    InfoGraph().check(encoder_task(), DATA)
    with pytest.raises(ArgumentError, match="graph.*image"):
        InfoGraph().check(encoder_task(), blobs())
    own = encoder_task(model=lambda: nn.Linear(2, 2), options={})
    with pytest.raises(ArgumentError, match="model must be gin or resgcn for infograph, which needs its nodes, got"):
        InfoGraph().check(own, DATA)
