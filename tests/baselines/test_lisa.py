"""LISA: blends within a label across groups, or within a group across labels, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augtree.baselines.lisa import Lisa, Partners
from augtree.errors import ArgumentError, TaskError
from support.blobs import blobs, by_hand, same
from support.contrastive import nt_xent_by_loops
from support.contrastive import task as contrastive
from support.methods import batch_of, grouped, grouped_graphs, task


def draws(trainer, method, steps=40):
    """For each of some steps: the rows, and those of their partners."""
    partners = Partners(trainer.data)
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

    def told(self, *drawn):
        seen.append(of(self, *drawn))
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
    partners, batch = Partners(data), batch_of(trainer, [3, 8, 11, 20])
    share, rows = method.draw(partners, batch)
    share = float(share[0])  # that of all
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
    partners, batch = Partners(data), batch_of(trainer, trainer.rows[:6])
    share, rows = method.draw(partners, batch)
    features = torch.cat([trainer.model.features(trainer.samples_on_device(np.array([row]))) for row in batch.rows])
    others = torch.cat([trainer.model.features(trainer.samples_on_device(np.array([row]))) for row in rows])
    share = float(share[0])
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


# ---- contrastive training


def encoder(**more):
    return contrastive(**{"options": {"width": 2}, "steps": 4, "dim": 4, **more})


def evaluated(asked, data):
    """A trainer whose model gives the same for a sample whatever its batch."""
    trainer = asked.prepare(data)
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    return trainer


def views_of(method, trainer, rows):
    """The batch, its partners' object, and shares and partners of both views."""
    partners, batch = Partners(trainer.data), batch_of(trainer, rows)
    return partners, batch, [method.draw(partners, batch, view) for view in (1, 2)]


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_each_view_has_a_partner_and_a_larger_share_of_its_own(p):
    trainer = encoder().prepare(grouped())
    labels, groups = trainer.data.labels.numpy(), trainer.data.groups
    same, other = (labels, groups) if p == 1 else (groups, labels)
    shares = []
    for step in range(40):
        partners, batch = Partners(trainer.data), batch_of(trainer, trainer.rows[::3], step)
        (one, first), (two, second) = (Lisa(p=p).draw(partners, batch, view) for view in (1, 2))
        for found in (first, second):
            assert (same[batch.rows] == same[found]).all()
            assert (other[batch.rows] != other[found]).all()
        assert (first != second).any()
        shares.append([one[0], two[0]])
    shares = np.array(shares)
    assert (shares >= 0.5).all()
    assert abs(shares.mean() - 0.6875) < 0.04  # 1/2 + E|x - 1/2| of Beta(2, 2), which is 3/16
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.5


@pytest.mark.parametrize("views", ["both", "one"])
def test_the_loss_is_that_of_two_blended_views(views):
    data, method = grouped(), Lisa()
    trainer = evaluated(encoder(views=views), data)
    partners, batch, drawn = views_of(method, trainer, [3, 8, 11, 20])
    made = [
        share[:, None, None, None] * by_hand(data.samples[batch.rows], data)
        + (1 - share[:, None, None, None]) * by_hand(data.samples[rows], data)
        for share, rows in drawn
    ]
    if views == "one":
        made[0] = by_hand(data.samples[batch.rows], data)
    one, two = (trainer.model(view).tolist() for view in made)
    expected = np.mean(nt_xent_by_loops(one, two, 0.5))
    assert method.view_loss(trainer, partners, batch).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("views", "passes"), [("both", 4), ("one", 3)])
def test_graphs_are_blended_before_the_projection(views, passes):
    data, method = grouped_graphs(), Lisa()
    asked = encoder(model="gin", options={"hidden": 4}, views=views)
    method.check(asked, data)
    trainer = evaluated(asked, data)
    partners, batch, drawn = views_of(method, trainer, trainer.rows[:6])
    alone = lambda row: trainer.model.features(trainer.samples_on_device(np.array([row])))[0]  # noqa: E731
    made = []
    for view, (share, rows) in enumerate(drawn, 1):
        share = share if view == 2 or views == "both" else torch.ones(6)
        pairs = zip(share, batch.rows, rows, strict=True)
        blended = [part * alone(row) + (1 - part) * alone(other) for part, row, other in pairs]
        made.append(trainer.model.fc(torch.stack(blended)).tolist())
    expected = np.mean(nt_xent_by_loops(*made, 0.5))
    assert method.view_loss(trainer, partners, batch).item() == pytest.approx(expected, abs=1e-5)
    state, _ = method.fit(trainer, 0)
    assert state.is_finite
    assert trainer.passes.forward == trainer.passes.backward == passes * 4 * 16


def test_samples_without_a_known_label_stay_as_they_are_and_nobody_s_partners():
    data = grouped().with_labels(20)
    trainer = encoder(samples="all").prepare(data)
    known = data.indices("train")
    unknown = np.setdiff1d(trainer.rows, known)
    assert len(known) == 20
    assert len(unknown) == 76
    _, _, drawn = views_of(Lisa(), trainer, trainer.rows)
    for share, rows in drawn:
        assert (rows[unknown] == unknown).all()
        assert (share[unknown] == 1).all()
        assert np.isin(rows[known], known).all()
        assert (rows[known] != known).all()


def test_labels_beyond_the_training_samples_are_not_read():
    data, asked = grouped().with_labels(20), encoder(samples="all")
    other = data.labels.clone()
    other[data.split != 0] = 0
    one, two = (Lisa().fit(asked.prepare(each), 0)[0] for each in (data, replace(data, labels=other)))
    assert same(one, two)
    other = replace(data, labels=1 - data.labels, groups=1 - data.groups)  # as good as before
    assert same(one, Lisa().fit(asked.prepare(other), 0)[0])
    shuffled = replace(data, groups=np.roll(data.groups, 1))
    assert not same(one, Lisa().fit(asked.prepare(shuffled), 0)[0])


def test_a_contrastive_task_needs_groups_and_labels():
    with pytest.raises(ArgumentError, match="lisa must have training samples of two groups or more"):
        Lisa().check(encoder(), blobs())
    data = grouped()
    split = np.where(np.isin(data.groups, 0) | (data.split != 0), data.split, np.int8(3))
    only_a = replace(data, split=split)  # the other group is unlabelled
    with pytest.raises(ArgumentError, match=r"lisa must have training samples of two groups .* got \['a'\]"):
        Lisa().check(encoder(), only_a)
    Lisa().check(encoder(), data.with_labels(20))
