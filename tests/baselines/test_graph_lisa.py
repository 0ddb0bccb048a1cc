"""LISA on graphs: mixes only what it may, in the proportions that it says, and trains on the mixture."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

from augtree.baselines import graph_lisa
from augtree.baselines.graph_lisa import GraphLisa, beta_draws
from augtree.baselines.partners import drawn_partners
from augtree.errors import ArgumentError, TaskError
from augtree.keys import Key
from augtree.transforms import Identity
from support.blobs import blobs, same
from support.contrastive import graphs
from support.small_graphs import classifier_task, encoder_task, paths

LABELS = np.array([0, 0, 1, 1, 2, 0, 1, 0, 1, 2] * 4)
GROUPS = np.array(["a", "b", "a", "b", "a", "b", "a", "a", "b", "a"] * 4)
DATA = paths(LABELS, GROUPS)
ROWS = np.arange(40)


def kind(i, j):
    return ("label" if LABELS[i] == LABELS[j] else "", "group" if GROUPS[i] == GROUPS[j] else "")


def pairs(method, seed=0, data=DATA):
    return method.pairs(data, data.indices("train"), ROWS, Key.of(seed, ROWS, role="lisa"))


def test_only_one_label_across_groups_or_one_group_across_labels_is_mixed():
    seen = set()
    for seed in range(20):
        partners, shares = pairs(GraphLisa(), seed)
        for i, j in enumerate(partners):
            assert kind(i, j) in {("label", ""), ("", "group")}
            seen.add((kind(i, j), LABELS[i] == 2))
        assert ((shares > 0) & (shares < 1)).all()
    # Label 2 is in one group alone, so it has partners across labels only.
    assert seen == {(("label", ""), False), (("", "group"), False), (("", "group"), True)}


@pytest.mark.parametrize(("share", "expected"), [(1.0, ("label", "")), (0.0, ("", "group"))])
def test_the_kind_of_partner_is_what_was_asked_for_where_there_is_one(share, expected):
    partners, _ = pairs(GraphLisa(across_groups=share))
    assert {kind(i, j) for i, j in enumerate(partners) if LABELS[i] != 2} == {expected}


def test_both_kinds_come_in_the_proportion_that_was_asked_for():
    common = np.flatnonzero(LABELS != 2)
    found = [pairs(GraphLisa(across_groups=0.3), seed).partners[common] for seed in range(60)]
    across = np.mean([LABELS[partners] == LABELS[common] for partners in found])
    assert across == pytest.approx(0.3, abs=0.04)


def test_partners_are_from_the_training_samples_alone_and_one_without_stays_alone():
    data = paths(np.array([0, 1, 1, 1]), np.array(["a", "b", "b", "b"]))
    rows = np.arange(4)
    partners, shares = GraphLisa().pairs(data, rows, rows, Key.of(0, rows, role="lisa"))
    assert (partners.tolist(), shares.tolist()) == ([0, 1, 2, 3], [1.0] * 4)
    pool = np.arange(0, 20)
    for seed in range(10):
        key = Key.of(seed, pool, role="lisa")
        assert GraphLisa().pairs(DATA, pool, pool, key).partners.max() < 20


def test_partners_are_equally_likely():
    allowed = np.tile([True, False, True, True, False], (6000, 1))
    counts = np.bincount(drawn_partners(allowed, Key.of(0, np.arange(6000)).uniform()), minlength=5) / 6000
    assert counts == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0], abs=0.03)
    assert drawn_partners(np.zeros((2, 3), bool), np.array([0.0, 0.9])).tolist() == [-1, -1]


@pytest.mark.parametrize("alpha", [1, 2, 5])
def test_shares_are_from_a_beta_distribution(alpha):
    found = beta_draws(alpha, Key.of(1, np.arange(3000)))
    assert stats.kstest(found, stats.beta(alpha, alpha).cdf).pvalue > 0.01


def test_a_step_lowers_the_mixed_loss_of_mixed_representations(monkeypatch):
    """The first step's loss, in eval mode, against that of one pair at a time."""
    losses, batch = [], []
    method, trainer = GraphLisa(), classifier_task(steps=1, batch_size=10).prepare(DATA)

    def stopped(trainer, state, rates, seed, batches, loss):
        batch.append(next(iter(batches))[0])
        trainer.load(state)
        trainer.model.eval()
        losses.append(loss(batch[0]).item())
        return state

    monkeypatch.setattr(graph_lisa, "train_by", stopped)
    method.fit(trainer, 5)
    rows, ids = trainer.order_of(trainer.rows, 5)(0, 10)
    partners, shares = method.pairs(DATA, trainer.rows, rows, Key.of(5, ids, role="lisa"))
    wanted = []
    with torch.no_grad():
        for i, j, share in zip(rows, partners, shares, strict=True):
            one, two = (trainer.model.features(trainer.samples_on_device(np.array([k])))[0] for k in (i, j))
            logits = trainer.model.fc(share * one + (1 - share) * two)
            wanted.append(
                share * F.cross_entropy(logits, DATA.labels[i])
                + (1 - share) * F.cross_entropy(logits, DATA.labels[j])
            )
    assert losses[0] == pytest.approx(float(sum(wanted) / 10), abs=1e-4)


def test_a_training_repeats_counts_its_cost_and_is_not_the_plain_one():
    ends = []
    for seed in (3, 3, 4):
        trainer = classifier_task().prepare(DATA)
        state, figures = GraphLisa().fit(trainer, seed)
        assert (trainer.passes.forward, trainer.passes.backward) == (6 * 16, 6 * 16)
        assert (figures, state.step, state.is_finite) == ({}, 6, True)
        ends.append(state)
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])
    assert not same(ends[0], classifier_task().prepare(DATA).fit(Identity(), 3))


def test_several_labels_a_sample():
    labels = np.stack([LABELS % 2, LABELS // 2], 1)
    data = paths(labels, GROUPS)
    assert data.multilabel
    assert pairs(GraphLisa(), data=data).partners.tolist() == pairs(GraphLisa()).partners.tolist()
    assert GraphLisa().fit(classifier_task().prepare(data), 0)[0].is_finite


class Degrees(nn.Module):
    """A model without representations to mix."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, batch):
        return batch.ptr.diff()[:, None] * self.scale


def test_a_model_must_have_representations():
    with pytest.raises(TaskError, match="lisa needs a model with `features` .* and a layer `fc` .*; Degrees has not"):
        GraphLisa().fit(classifier_task(model=Degrees, options={}).prepare(DATA), 0)


def test_what_it_is_not_for_is_refused():
    GraphLisa().check(classifier_task(), DATA)
    with pytest.raises(ArgumentError, match="groups must be at least two among the training samples, for lisa, got"):
        GraphLisa().check(classifier_task(), graphs())
    with pytest.raises(ArgumentError, match="supervised.*contrastive"):
        GraphLisa().check(encoder_task(), DATA)
    with pytest.raises(ArgumentError, match="graph.*image"):
        GraphLisa().check(classifier_task(), blobs())
