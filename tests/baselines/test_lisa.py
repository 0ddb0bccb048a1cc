"""LISA: blends within a label across groups, or within a group across labels, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augtree.baselines.lisa import Lisa, Partners
from augtree.errors import ArgumentError, TaskError
from support.blobs import blobs, by_hand
from support.methods import batch_of, grouped, grouped_graphs, task


def draws(trainer, method, steps=40):
    """For each of some steps: the rows, and those of their partners."""
    partners = Partners(trainer.data, trainer.rows)
    rows = trainer.rows[::2]
    for step in range(steps):
        yield rows, method.draw(partners, batch_of(trainer, rows, step))[1]


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_partners_are_of_one_label_and_other_groups_or_of_one_group_and_other_labels(p):
    trainer = task().prepare(grouped())
    labels, groups = trainer.data.labels.numpy(), trainer.data.groups
    same, other = (labels, groups) if p == 1 else (groups, labels)
    met = set()
    for rows, found in draws(trainer, Lisa(p=p)):
        assert (same[rows] == same[found]).all()
        assert (other[rows] != other[found]).all()
        met |= {*zip(rows.tolist(), found.tolist(), strict=True)}
    allowed = {(int(i), int(j)) for i in rows for j in trainer.rows if same[i] == same[j] and other[i] != other[j]}
    assert met <= allowed
    assert len(met) > 0.9 * len(allowed)  # any of them, and training samples alone


def test_a_training_blends_training_samples_alone(monkeypatch):
    trainer, seen, of = task().prepare(grouped()), [], Partners.of

    def told(self, batch, within_label):
        seen.append(of(self, batch, within_label))
        return seen[-1]

    monkeypatch.setattr(Partners, "of", told)
    Lisa().fit(trainer, 0)
    assert len(seen) == 8
    assert np.isin(np.concatenate(seen), trainer.rows).all()


def test_each_step_has_one_of_the_two_strategies():
    trainer = task().prepare(grouped())
    labels = trainer.data.labels.numpy()
    within = []
    for rows, found in draws(trainer, Lisa(p=0.5), 100):
        same = labels[rows] == labels[found]
        assert same.all() or not same.any()
        within.append(same.all())
    assert 30 < sum(within) < 70


def test_a_sample_without_a_partner_stays_as_it_is():
    data = grouped()
    trainer = task().prepare(replace(data, groups=np.where(data.labels.numpy() == 1, 0, data.groups)))
    for rows, found in draws(trainer, Lisa(p=1.0), 5):
        alone = trainer.data.labels.numpy()[rows] == 1  # that label is in group a alone
        assert (found[alone] == rows[alone]).all()
        assert (found[~alone] != rows[~alone]).all()


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_loss_is_that_of_blended_pictures_for_blended_labels(p):
    data, method = grouped(), Lisa(p=p)
    trainer = task().prepare(data)
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    partners, batch = Partners(data, trainer.rows), batch_of(trainer, [3, 8, 11, 20])
    share, rows = method.draw(partners, batch)
    blended = share * by_hand(batch.inputs, data) + (1 - share) * by_hand(data.samples[rows], data)
    hot = F.one_hot(data.labels, 2).float()
    soft = share * hot[batch.rows] + (1 - share) * hot[rows]
    by_formula = -(soft * torch.log_softmax(trainer.model(blended), 1)).sum(1).mean()
    assert torch.allclose(method.loss(trainer, partners, batch), by_formula, atol=1e-5)


def test_graphs_are_blended_where_the_classifier_takes_them():
    data, method = grouped_graphs(), Lisa()
    asked = task(model="gin", options={"hidden": 4})
    method.check(asked, data)
    trainer = asked.prepare(data)
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    partners, batch = Partners(data, trainer.rows), batch_of(trainer, trainer.rows[:6])
    share, rows = method.draw(partners, batch)
    features = torch.cat([trainer.model.features(trainer.samples_on_device(np.array([row]))) for row in batch.rows])
    others = torch.cat([trainer.model.features(trainer.samples_on_device(np.array([row]))) for row in rows])
    outputs = trainer.model.fc(share * features + (1 - share) * others)
    own, other = F.cross_entropy(outputs, batch.labels), F.cross_entropy(outputs, data.labels[rows])
    expected = share * own + (1 - share) * other
    assert torch.allclose(method.graph_loss(trainer, partners, batch), expected, atol=1e-5)
    before = trainer.passes.forward
    state, _ = method.fit(trainer, 0)
    assert state.is_finite
    assert trainer.passes.forward - before == 2 * 8 * 16


def test_a_model_of_graphs_without_features_is_refused():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Linear(1, 2)

        def forward(self, batch):
            return self.weight(torch.stack([graph.x.mean(0) for graph in batch.to_data_list()]))

    with pytest.raises(TaskError, match=r"lisa needs a model with features\(batch\) and fc for graphs, got Plain"):
        Lisa().fit(task(model=Plain, options={}).prepare(grouped_graphs()), 0)


def test_data_in_which_nothing_may_be_blended_is_refused():
    data = grouped()
    by_label = replace(data, groups=data.labels.numpy().astype(np.int64))
    with pytest.raises(
        ArgumentError, match="lisa must have a label that occurs in two groups, or p = 0, got 'blobs'"
    ):
        Lisa().check(task(), by_label)
    with pytest.raises(ArgumentError, match="lisa must have a group with two labels, or p = 1, got 'blobs'"):
        Lisa(p=0.0).check(task(), by_label)
    several = blobs(y=np.eye(3, dtype=np.uint8)[np.arange(80) % 3], groups=["a", "b"] * 40)
    with pytest.raises(ArgumentError, match="lisa must have one label a sample, not several, got '3 labels'"):
        Lisa().check(task(), several)
    for p in (0.0, 1.0):
        Lisa(p=p).check(task(), data)
