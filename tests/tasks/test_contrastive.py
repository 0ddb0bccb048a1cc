import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import augtree as at
from augtree import Forest, Tree
from augtree.errors import ArgumentError, TaskError
from augtree.policies.presets import find
from augtree.tasks import Classification
from augtree.tasks.ridge import Ridge
from augtree.training import trainer as trainer_module
from augtree.training.metrics import METRICS
from augtree.transforms import Cutout, DropNodes, Flip, Identity, Rotate
from support.blobs import blobs, net, rows, same
from support.contrastive import graphs, nt_xent_by_loops, task

TREE = Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, Cutout(0.4), p=0.5)
DATA = blobs()
RATES = [0.05, 0.04, 0.03]


@pytest.fixture
def ready():
    return task(preprocess=Flip()).prepare(DATA)


# ---- the loss


def test_a_step_lowers_nt_xent_of_the_two_views(ready):
    which = where = np.arange(6)
    inputs = ready.augmented(TREE, which, where, 5)
    state = ready.fresh(1)
    ready.load(state)
    ready.model.train()
    losses = ready.step_losses(inputs, ready.labels[:6])
    z = ready.model(ready.normalised(inputs.flatten(0, 1))).detach().double()
    assert losses.view(6, 2).mean(1).tolist() == pytest.approx(
        nt_xent_by_loops(z[::2].tolist(), z[1::2].tolist(), 0.5), abs=1e-4
    )


def test_training_lowers_the_loss():
    ready = task(judge="contrastive", steps=40).prepare(DATA)
    start = ready.fresh(0)
    end = ready.fit(TREE, 0)
    assert ready.losses(end, rows(ready), TREE).mean() < ready.losses(start, rows(ready), TREE).mean() - 0.1


# ---- views


def test_views_are_independent_and_repeatable(ready):
    which = np.arange(40)
    once, again = (ready.augmented(TREE, which, which, 5) for _ in range(2))
    assert once.shape == (40, 2, 3, 8, 8)
    assert torch.equal(once, again)
    other = ready.augmented(TREE, which, which, 6)
    differs = [(a != b).flatten(1).any(1).float().mean() for a, b in
               ((once[:, 0], once[:, 1]), (once[:, 0], other[:, 0]), (once[:, 1], other[:, 1]))]  # fmt: skip
    assert min(differs) > 0.6
    parts = torch.cat([ready.augmented(TREE, part, part, 5) for part in (which[:7], which[7:])])
    assert torch.equal(once, parts)  # whatever the batch


def test_who_is_transformed_in_one_view_says_nothing_of_the_other():
    data = blobs(train=400, val=0, test=0)
    ready = task().prepare(data)
    both = ready.augmented(Tree().with_node(1, Cutout(1.0, fill=0), p=0.5), *[np.arange(400)] * 2, 3)
    hit = (both != data.samples[:, None]).flatten(2).any(2).numpy()
    table = np.array([[(hit[:, 0] == a) & (hit[:, 1] == b) for b in (0, 1)] for a in (0, 1)]).sum(2)
    assert (np.abs(table - 100) < 35).all()  # a quarter each, four deviations


def test_one_view_is_the_sample_as_it_is():
    ready = task(views="one").prepare(DATA)
    found = ready.augmented(TREE, np.arange(9), np.arange(9), 5)
    assert torch.equal(found[:, 0], DATA.samples[:9])
    assert not torch.equal(found[:, 1], DATA.samples[:9])


def test_the_preprocessing_comes_before_both_views(ready):
    found = ready.augmented(Identity(), np.arange(40), np.arange(40), 5)
    turned = [(found[:, i] != DATA.samples[:40]).flatten(1).any(1) for i in (0, 1)]
    assert all(5 < int(one.sum()) < 35 for one in turned)
    assert not torch.equal(*turned)
    assert all(torch.equal(found[turned[i], i], DATA.samples[:40].flip(3)[turned[i]]) for i in (0, 1))


def test_a_training_is_the_same_again_and_in_two_parts(ready):
    whole = ready.train(ready.fresh(1), TREE, RATES, 7)
    ready.measures(ready.fresh(2), rows(ready))
    half = ready.train(ready.fresh(1), TREE, RATES[:1], 7)
    assert same(whole, ready.train(half, TREE, RATES[1:], 7))
    assert not same(whole, ready.train(ready.fresh(1), TREE, RATES, 8))


def batches(ready, rates, state=None):
    """The rows of each batch of a training, what their draws depend on, and where it ends."""
    which, where, augmented = [], [], ready.augmented

    def seen(policy, rows, places, seed):
        which.append(rows)
        where.append(places)
        return augmented(policy, rows, places, seed)

    ready.augmented = seen
    state = ready.train(ready.fresh(1) if state is None else state, TREE, rates, 7)
    ready.augmented = augmented
    return np.concatenate(which).reshape(len(rates), -1), np.concatenate(where), state


def test_no_batch_holds_a_sample_twice():
    ready = task(batch_size=20).prepare(DATA)  # of 48: an epoch is two batches, and eight are left out
    which, where, state = batches(ready, [0.01] * 12)
    assert which.shape == (12, 20)
    assert state.step == 12
    assert all(len(set(epoch)) == 40 for epoch in which.reshape(6, 40).tolist())
    left_out = [frozenset(ready.rows) - set(epoch) for epoch in which.reshape(6, 40).tolist()]
    assert len(set(left_out)) == 6
    assert set(which.flat) == set(ready.rows)
    assert len(set(where.tolist())) == 240  # each epoch has draws of its own


def test_a_training_goes_on_in_the_middle_of_an_epoch():
    ready = task(batch_size=20).prepare(DATA)
    which, _, whole = batches(ready, [0.01] * 7)
    for middle in (1, 2, 3, 5):
        first, _, half = batches(ready, [0.01] * middle)
        rest, _, end = batches(ready, [0.01] * (7 - middle), half)
        assert np.array_equal(np.concatenate([first, rest]), which)
        assert same(end, whole)


def test_labels_play_no_part_in_training():
    other = blobs(y=np.random.default_rng(3).integers(0, 2, 80))
    one, two = (task().prepare(data).fit(TREE, 3) for data in (DATA, other))
    assert same(one, two)


def test_what_is_trained_on():
    labels = DATA.with_labels(8)
    assert len(task().prepare(labels).rows) == 48  # unlabelled samples too
    assert len(task().prepare(labels).labelled) == 8  # but only these vote
    assert len(task(samples="all").prepare(DATA).rows) == 80


# ---- judging


def flipped(data, rows):
    """The data with other labels for some samples."""
    labels = data.labels.clone()
    labels[rows] = 1 - labels[rows]
    return replace(data, labels=labels)


@pytest.mark.parametrize("judge", ["knn", "ridge"])
@pytest.mark.parametrize("samples", ["train", "all"])
@pytest.mark.parametrize("split", ["val", "test"])
def test_only_the_labels_of_training_samples_and_of_those_that_are_judged_are_read(samples, split, judge):
    data = DATA.with_labels(8)
    judged = data.indices(split)
    others = np.setdiff1d(np.arange(80), np.concatenate([data.indices("train"), judged]))
    assert {len(data.indices("unlabelled")), len(others)} == {40, 56}
    original = task(samples=samples, neighbours=5, judge=judge)
    one, two = (original.prepare(d) for d in (data, flipped(data, others)))
    state = one.fit(TREE, 3)
    assert same(state, two.fit(TREE, 3))
    assert np.array_equal(one.losses(state, judged), two.losses(state, judged))
    assert np.array_equal(one.losses(state, judged, TREE, 1), two.losses(state, judged, TREE, 1))
    assert np.array_equal(one.calibrated_losses(state, judged), two.calibrated_losses(state, judged))
    assert one.measures(state, judged) == two.measures(state, judged)


@pytest.mark.parametrize("judge", ["knn", "ridge"])
@pytest.mark.parametrize("samples", ["train", "all"])
def test_predictions_depend_on_the_labels_of_training_samples_alone(samples, judge):
    data = DATA.with_labels(8)
    judged = data.indices("val")
    rest = np.setdiff1d(np.arange(80), data.indices("train"))
    one, two, three = (
        task(samples=samples, neighbours=5, judge=judge).prepare(d)
        for d in (data, flipped(data, rest), flipped(data, data.indices("train")[:4]))
    )
    state = one.fit(TREE, 3)
    features = one.features(state, judged).double().numpy()
    assert torch.equal(one.logits(state, judged), two.logits(state, judged))
    assert np.array_equal(one.probe(state).logits(features), two.probe(state).logits(features))
    assert not torch.equal(one.logits(state, judged), three.logits(state, judged))
    assert not np.array_equal(one.probe(state).logits(features), three.probe(state).logits(features))


def test_measures_take_each_judged_sample_through_the_model_once():
    ready = task(steps=30).prepare(blobs(test=24, y=np.random.default_rng(0).integers(0, 2, 88)))
    state, judged = ready.fit(TREE, 0), rows(ready, "test")
    labels, spent = ready.data.labels.numpy()[judged], []
    for _ in range(2):
        before = ready.passes.forward
        found = ready.measures(state, judged)
        spent.append(ready.passes.forward - before)
    assert spent == [48 + 48 + 24, 48 + 24]  # the probe's training samples, the memory, the judged
    near = METRICS["accuracy"].compute(ready.logits(state, judged).double().numpy(), labels)
    features = ready.features(state, judged).double().numpy()
    assert found == {**ready.probe(state).measures(features, labels, "accuracy"), "knn": near}


def test_a_training_that_diverged_has_no_measures(ready):
    state = ready.fresh(1)
    state.tensors["weights"].fill_(math.nan)
    with pytest.raises(TaskError, match="must give finite numbers, but the training diverged with lr=0.05"):
        ready.measures(state, rows(ready))


def test_losses_are_minus_the_logarithm_of_the_smoothed_votes():
    ready = task(neighbours=5).prepare(DATA)
    state = ready.fit(TREE, 0)
    val, train = DATA.indices("val"), DATA.indices("train")
    features = nn.functional.normalize(ready.features(state, np.arange(80)), dim=1)
    for row, loss in zip(val, ready.losses(state, val), strict=True):
        cosines = features[train] @ features[row]
        near = cosines.argsort(descending=True)[:5]
        weight = (cosines[near] / 0.1).exp()
        right = float(weight[DATA.labels[train][near] == DATA.labels[row]].sum() / weight.sum())
        assert loss == pytest.approx(-math.log(0.98 * right + 0.01), abs=1e-4)


@pytest.mark.parametrize("data", [DATA, blobs(y=np.random.default_rng(0).integers(0, 2, (80, 3))), graphs()])
def test_a_ridge_judges_by_what_it_says_of_the_features(data):
    """For graphs with a kernel, for pictures without; one label a sample, or several."""
    graph = data.domain == "graph"
    ready = task(judge="ridge", **({"model": "gin"} if graph else {})).prepare(data)
    state, val, train = ready.fit(Identity(), 0), data.indices("val"), data.indices("train")
    features = ready.features(state, np.arange(len(data)))
    wanted = data.labels.double() if data.multilabel else nn.functional.one_hot(data.labels).double()
    predicted = Ridge.fitted(features[train], wanted[train], kernel=graph)(features[val]).clamp(-1, 2)
    before, logits = ready.passes.forward, ready.logits(state, val)
    assert ready.passes.forward - before == len(train) + len(val)
    right = data.labels[val]
    if data.multilabel:
        chance = torch.sigmoid(4 * (2 * predicted - 1))
        losses = -torch.where(right == 1, chance, 1 - chance).log().mean(1)
    else:
        losses = -torch.softmax(8 * predicted, 1)[torch.arange(len(val)), right].log()
    assert ready.losses(state, val) == pytest.approx(losses.numpy(), abs=1e-4)
    assert torch.equal(logits, ready.logits(state, val))
    assert ready.calibrated_losses(state, val).mean() <= ready.losses(state, val).mean()


def test_a_picture_far_out_does_not_count_for_a_hundred(monkeypatch):
    ready = task(judge="ridge").prepare(DATA)
    state, val = ready.fresh(0), rows(ready)
    features, plain, worst = ready.features, ready.losses(state, val), []
    for times in (1e6, -1e6):  # one of them is as wrong as can be

        def far_out(state, which, *more, times=times):
            found = features(state, which, *more).clone()
            found[np.asarray(which) == val[0]] *= times
            return found

        monkeypatch.setattr(ready, "features", far_out)
        found = ready.losses(state, val)
        assert found[1:] == pytest.approx(plain[1:])
        worst.append(found[0])
    assert max(worst) == pytest.approx(24, abs=0.01)  # 8 times the distance of -1 and 2


@pytest.mark.parametrize("judge", ["knn", "ridge"])
def test_a_memory_is_that_of_the_state(judge):
    ready = task(judge=judge).prepare(DATA)
    one, two = ready.fresh(1), ready.fit(TREE, 1)
    first = ready.losses(one, rows(ready))
    ready.losses(two, rows(ready))
    assert np.array_equal(first, ready.losses(one, rows(ready)))
    assert not np.array_equal(first, ready.losses(two, rows(ready)))


@pytest.mark.parametrize("judge", ["alignment-uniformity", "contrastive"])
def test_label_free_judges_look_at_no_label(judge):
    other = blobs(y=np.random.default_rng(3).integers(0, 2, 80))
    found = []
    for data in (DATA, other):
        ready = task(judge=judge).prepare(data)
        state = ready.fit(TREE, 3)
        found.append([ready.losses(state, rows(ready)), ready.calibrated_losses(state, rows(ready))])
    assert np.array_equal(*found)
    assert np.isfinite(found[0]).all()


def test_the_contrastive_loss_is_lowest_for_identity():
    ready = task(judge="contrastive", steps=60, temperature=0.1, options={"width": 16}).prepare(DATA)
    state = ready.fit(TREE, 0)
    plain = ready.losses(state, rows(ready), Identity()).mean()
    assert plain < ready.losses(state, rows(ready), TREE).mean() - 0.2


def test_measures_are_a_linear_probe_on_the_training_samples():
    ready = task(steps=30).prepare(DATA)
    found = ready.measures(ready.fit(TREE, 0), rows(ready, "test"))
    assert found["accuracy"] == 1
    assert set(found) == {"accuracy", "error", "f1", "auroc", "loss", "knn"}
    shuffled = blobs(y=np.random.default_rng(0).integers(0, 2, 80))
    chance = task(steps=30).prepare(shuffled)
    assert chance.measures(chance.fit(TREE, 0), rows(chance, "test"))["accuracy"] < 0.85


def test_several_labels_a_sample():
    labels = np.stack([np.arange(80) % 2, np.ones(80), np.arange(80) % 3 == 0], 1).astype(np.uint8)
    ready = task(steps=20, metric="auroc").prepare(blobs(y=labels))
    state = ready.fit(TREE, 0)
    assert np.isfinite(ready.calibrated_losses(state, rows(ready))).all()
    assert ready.measures(state, rows(ready, "test"))["auroc"] > 0.6


# ---- graphs, forests, models


def test_graphs(monkeypatch):
    data = graphs()
    ready = task(model="gin", steps=20, options={"hidden": 8}, temperature=0.2).prepare(data)
    one, two = ready.augmented(DropNodes(0.4), np.arange(5), np.arange(5), 0)
    assert one.num_graphs == two.num_graphs == 5
    assert not (one.num_nodes == two.num_nodes and torch.equal(one.edge_index, two.edge_index))
    state = ready.fit(find("graphcl"), 0)
    assert ready.measures(state, data.indices("test"))["accuracy"] > 0.9
    monkeypatch.setattr(trainer_module, "CHUNK_EDGES", {"cpu": 1})  # one batch after another
    assert same(state, ready.fit(find("graphcl"), 0))


def test_a_forest_augments_each_group_with_its_own_tree():
    data = blobs(groups=["a", "b"] * 40)
    forest = Forest({"a": (Tree(), 0.5), "b": (Tree().with_node(1, Cutout(1.0, fill=0), p=1.0), 0.5)})
    views = task().prepare(data).augmented(forest, np.arange(20), np.arange(20), 0)
    assert torch.equal(views[::2, 0], data.samples[0:20:2])
    assert (views[1::2] != data.samples[1:20:2][:, None]).flatten(2).any(2).all()


def test_a_trained_encoder_is_a_start_for_other_tasks(tmp_path):
    trained = at.train(DATA, task(), "simclr", out=tmp_path / "t")
    options = {"width": 4, "weights": str(tmp_path / "t" / "model.safetensors")}
    wanted = trained.model.state_dict()
    for other in (Classification(model="cnn", steps=1, device="cpu", options=options), task(options=options)):
        ready = other.prepare(DATA)
        found = ready.module(ready.fresh(5)).state_dict()
        assert all(torch.equal(found[key], value) for key, value in wanted.items() if not key.startswith("fc."))


def test_pictures_of_any_number_of_channels():
    for channels in (1, 2, 3, 4):
        ready = task(judge="alignment-uniformity", steps=1).prepare(blobs(channels=channels))
        state = ready.fit(ready.reference, 0)
        assert np.isfinite(ready.losses(state, rows(ready))).all()


def test_a_model_without_features_is_refused():
    with pytest.raises(TaskError, match="`features`.*Sequential has not"):
        task(model=net, options={}).prepare(DATA)


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0), ("dim", 0), ("judge", "svm"), ("views", "three"), ("samples", "test"), ("neighbours", 0),
     ("vote_temperature", -1), ("schedule", "step"), ("batch_size", 1)],
)  # fmt: skip
def test_bad_arguments(name, value):
    with pytest.raises(ArgumentError, match=name):
        task(**{name: value})


def test_a_constant_rate():
    assert task(schedule="constant").rates(3) == [0.05] * 3


def test_the_ready_policies():
    assert str(find("graphcl")) == "GraphCL(0.2)"
    assert str(find("simclr")) == "Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)"
