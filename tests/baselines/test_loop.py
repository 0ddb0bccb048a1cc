"""A training by another loss: with the task's own loss it is that of the trainer, to the bit."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from augtree.baselines.loop import Batch, Learner, descend, fit_by, outputs_of, preprocessed, shares, train_by
from augtree.keys import Key
from augtree.transforms import DropNodes, Identity
from support.blobs import MINE, forgetful_net, same
from support.contrastive import graphs
from support.methods import grouped, task
from support.small_graphs import classifier_task

RATES = [0.1, 0.05, 0.02]
TARGETS = torch.tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 0.0]])


@pytest.mark.parametrize("more", [{}, {"optimizer": "adamw", "lr": 0.01}, {"model": forgetful_net, "options": {}}])
@pytest.mark.parametrize("policy", [None, MINE])
def test_with_the_loss_of_the_task_it_is_the_training_of_the_task(more, policy):
    trainer = task(**more, label_smoothing=0.1).prepare(grouped())

    def loss(batch):
        outputs = outputs_of(trainer, batch.inputs, len(batch.labels))
        return trainer.output_losses(outputs, batch.labels).mean()

    one, counted = fit_by(trainer, 5, loss, policy=policy), trainer.passes.total
    assert same(one, trainer.fit(policy or Identity(), 5))
    assert trainer.passes.total == 2 * counted


def test_the_loss_sees_whose_samples_it_has_and_after_is_called_after_each_step():
    trainer = task().prepare(grouped())
    seen, done = [], []

    def loss(batch):
        assert (trainer.samples_on_device(batch.rows) == batch.inputs).all()
        assert (trainer.labels_of(batch.rows) == batch.labels).all()
        seen.append(batch.step)
        return outputs_of(trainer, batch.inputs, len(batch.labels)).square().mean()

    state = fit_by(trainer, 5, loss, passes=2, after=lambda batch: done.append((batch.step, len(seen))))
    assert seen == [*range(8)]
    assert done == [(i, i + 1) for i in range(8)]
    assert state.step == 8
    assert trainer.passes.forward == trainer.passes.backward == 2 * 8 * 16


def test_draws_depend_on_role_step_seed_and_sample():
    rows = np.arange(6)
    batch = Batch(None, None, rows, rows, 3, 1)
    base = batch.key("a").uniform()
    assert np.array_equal(base, Key.of(1, rows, role="a", step=3).uniform())
    others = [Batch(None, None, rows, rows, 4, 1), Batch(None, None, rows, rows, 3, 2)]
    for other in (batch.key("b"), *(each.key("a") for each in others)):
        assert not np.isin(other.uniform(), base).any()
    assert batch.key_of_step("a").uniform()[0] == base[0]


def test_shares_are_of_the_beta_distribution():
    drawn = shares(Key.of(0, np.arange(4000)), 2.0).numpy()
    assert abs(drawn.mean() - 0.5) < 0.02
    assert abs(drawn.var() - 0.05) < 0.005  # of Beta(2, 2)


# ---- networks beside the model


def by_torch(network, make):
    network = copy.deepcopy(network)
    optimizer = make(network.parameters())
    for rate, target in zip(RATES, TARGETS, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        (network(target) - target).square().sum().backward()
        optimizer.step()
    return network


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.0)


@pytest.mark.parametrize(("own", "make"), [(False, sgd), (True, adam)])
def test_a_network_of_the_method_s_own_is_trained_as_torch_does(own, make):
    torch.manual_seed(0)
    network = nn.Linear(2, 2)
    expected = by_torch(network, make)
    learner = Learner(network, classifier_task(optimizer="sgd").prepare(graphs()), adam=own)
    descend([learner], RATES, ((network(target) - target).square().sum() for target in TARGETS))
    for one, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_beside_the_model_is_trained_with_it_and_goes_on_where_it_was():
    torch.manual_seed(0)
    network = nn.Linear(2, 2)
    expected = by_torch(network, sgd)
    trainer = classifier_task(optimizer="sgd").prepare(graphs())
    learner, state = Learner(network, trainer), trainer.fresh(0)

    def loss(target):
        weights = sum(parameter.sum() for parameter in trainer.model.parameters())
        return (network(target) - target).square().sum() + weights

    for part in (slice(0, 1), slice(1, 3)):
        batches = [(target, 5) for target in TARGETS[part]]
        state = train_by(trainer, state, RATES[part], 0, batches, loss, learner)
    for one, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert state.step == 3
    assert (trainer.passes.forward, trainer.passes.backward) == (15, 15)
    assert not torch.equal(state.tensors["weights"], trainer.fresh(0).tensors["weights"])


def test_preprocessing_is_the_task_s():
    task = classifier_task(preprocess=DropNodes(0.5))
    trainer, rows = task.prepare(graphs()), np.arange(4)
    found = preprocessed(trainer, rows, rows, 5)
    assert found.num_nodes < trainer.samples_on_device(rows).num_nodes
    assert torch.equal(found.edge_index, trainer.augmented(Identity(), rows, rows, 5).edge_index)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_by_the_task_s_own_loss_it_is_the_task_s_training_and_goes_on_as_that_does(optimizer):
    trainer = classifier_task(optimizer=optimizer).prepare(graphs())
    batches = list(trainer.batches(DropNodes(0.3), trainer.rows, None, 7, 0, 3))
    losses = [((inputs, labels), len(labels)) for inputs, labels in batches]
    loss = lambda batch: trainer.step_losses(*batch).mean()  # noqa: E731
    own = expected = trainer.fresh(1)
    for part in (slice(0, 1), slice(1, 3)):
        own = train_by(trainer, own, RATES[part], 7, losses[part], loss)
        expected = trainer.train(expected, DropNodes(0.3), RATES[part], 7)
    assert same(own, expected)
