import dataclasses
import json
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

import augtree as at
from augtree import Forest, Tree
from augtree.data import from_arrays
from augtree.errors import ArgumentError, DataError, OtherRunError, TaskError
from augtree.forests import Weighting
from augtree.forests.hypergradient import Hypergradient
from augtree.forests.implicit_gradient import InnerLoss
from augtree.runs import faults
from augtree.search import Cooldown, Retrain, search_tree
from augtree.tasks import Classification
from augtree.tasks.consistency import confident, consistency
from augtree.tasks.semisupervised import SemiSupervised
from augtree.training.sampling import stream
from augtree.training.state import seed_of
from augtree.transforms import Brightness, Cutout, Flip, Identity, Invert, MaskNodes, Posterize, Rotate
from support.blobs import blobs, by_hand, net, same, wide_net

INVERT = Invert(0.2)
TREE = Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, Cutout(0.4), p=0.5)
SPLIT = ["train"] * 12 + ["unlabelled"] * 36 + ["val"] * 16 + ["test"] * 16
DATA = blobs(split=SPLIT)
RATES = [0.05, 0.04, 0.03, 0.02, 0.01]


def plain_net():
    """Without a norm: a sample's logits are its own."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2))


def task(**more):
    given = {"model": net, "steps": 6, "batch_size": 4, "ratio": 3, "lr": 0.05, "device": "cpu", **more}
    return SemiSupervised(**given)


def steps_of(trainer, policy=INVERT, rates=RATES, **more):
    """What each step of a training got: inputs, labels, and the threshold."""
    seen = []
    step = trainer.step

    def watched(inputs, labels, scalars, loss_scalars):
        seen.append((inputs.clone(), labels.clone(), float(loss_scalars)))
        step(inputs, labels, scalars, loss_scalars)

    trainer.step = watched
    trainer.train(trainer.fresh(0), policy, rates, 7, **more)
    return seen


def numbered(split, groups=None, side=8, kinds=2):
    """Pictures that say which they are: all pixels of the i-th are i."""
    count = len(split)
    pictures = np.broadcast_to(np.arange(count)[:, None, None, None], (count, 3, side, side)).astype(np.uint8)
    return from_arrays(pictures, np.arange(count) % kinds, split=split, groups=groups, name="numbered")


def numbers(pictures):
    return pictures[:, 0, 0, 0].tolist()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The searches without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    for name in SCORERS:
        search(out=folder / name, scorer=SCORERS[name])
    return folder


# ---- what a step is made of


def test_a_batch_is_labelled_samples_and_two_views_of_the_same_unlabelled_ones():
    data = numbered(SPLIT)
    for inputs, labels, _ in steps_of(task().prepare(data)):
        assert inputs.shape == (4 + 12 + 12, 3, 8, 8)
        given, plain, strong = (numbers(part) for part in inputs.split((4, 12, 12)))
        assert set(given) <= set(range(12))
        assert labels.tolist() == [i % 2 for i in given]
        assert set(plain) <= set(range(48))  # neither validation nor test samples
        assert strong == [255 - i for i in plain]


@pytest.mark.parametrize(("include", "pool"), [(True, range(48)), (False, range(12, 48))])
def test_every_unlabelled_sample_comes_once_an_epoch(include, pool):
    seen = steps_of(task(include_labelled=include).prepare(numbered(SPLIT)), rates=[0.1] * 8)
    found = [number for inputs, _, _ in seen for number in numbers(inputs[4:16])]
    for epoch in range(len(found) // len(pool)):
        assert sorted(found[epoch * len(pool) : (epoch + 1) * len(pool)]) == list(pool)


def test_training_rows_that_are_given_are_in_the_pool():
    data = numbered(SPLIT)
    rows = np.concatenate([data.indices("train"), data.indices("val")])
    seen = steps_of(task().prepare(data), rates=[0.1] * 6, rows=rows)
    assert sorted(n for inputs, _, _ in seen for n in numbers(inputs[4:16]))[:64] != list(range(64))  # shuffled anew
    assert {n for inputs, _, _ in seen for n in numbers(inputs[4:16])} == set(range(64))


@pytest.mark.parametrize("augment", [False, True])
def test_labelled_samples_go_through_the_policy_only_on_request(augment):
    inputs, labels, _ = steps_of(task(augment_labelled=augment).prepare(numbered(SPLIT)))[0]
    given = [255 - n if augment else n for n in numbers(inputs[:4])]
    assert set(given) <= set(range(12))
    assert labels.tolist() == [n % 2 for n in given]


def test_views_are_preprocessed_each_by_itself():
    ramp = np.broadcast_to(np.arange(8), (64, 3, 8, 8)).astype(np.uint8)
    data = from_arrays(ramp, np.arange(64) % 2, split=SPLIT[:64], name="ramps")
    seen = steps_of(task(preprocess=Flip()).prepare(data), Identity())
    flipped = np.array([(inputs[:, 0, 0, 0] == 7).tolist() for inputs, _, _ in seen])
    plain, strong = flipped[:, 4:16].ravel(), flipped[:, 16:].ravel()
    assert 0.3 < flipped[:, :4].mean() < 0.7
    assert 0.3 < (plain == strong).mean() < 0.7


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("multilabel", [False, True])
def test_a_step_by_hand(weight, multilabel):
    """The gradient of the labelled samples' loss and of the strong views', the targets being constants."""
    y = np.stack([np.arange(80) % 2, np.arange(80) // 2 % 2], 1) if multilabel else np.arange(80) % 2
    data = blobs(split=SPLIT, y=y)
    options = dict(model=plain_net, weight=weight, confidence=0.51, preprocess=None, label_smoothing=0.1)
    trainer = task(**options, momentum=0.0, weight_decay=0.0).prepare(data)
    before = trainer.fresh(0)
    after = trainer.train(before, INVERT, [0.05], 7)
    model = trainer.module(before)
    which, _ = stream(data.indices("train"), 0, 4, 7)
    others, _ = stream(np.arange(48), 0, 12, seed_of(7, "unlabelled"))
    labels = data.labels[torch.from_numpy(which)]
    logits = model(by_hand(data.samples[torch.from_numpy(which)], data))
    if multilabel:
        supervised = F.binary_cross_entropy_with_logits(logits, labels.float() * 0.9 + 0.05)
    else:
        supervised = F.cross_entropy(logits, labels, label_smoothing=0.1)
    views = data.samples[torch.from_numpy(others)]
    with torch.no_grad():
        plain = model(by_hand(views, data))
    strong = model(by_hand(255 - views, data))
    unsupervised = consistency(plain, strong, sharpen=0.4, confidence=0.51, multilabel=multilabel)
    assert unsupervised > 0
    loss = supervised + weight * unsupervised
    parameters = list(model.parameters())
    expected = [p.detach() - 0.05 * g for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True)]
    for parameter, wanted in zip(trainer.module(after).parameters(), expected, strict=True):
        assert torch.allclose(parameter, wanted, atol=1e-6)


def test_batch_norm_sees_all_views_at_once():
    trainer = task(preprocess=None).prepare(DATA)
    ((inputs, _, _),) = steps_of(trainer, rates=[0.05])
    model = net()
    model.load_state_dict(trainer.module(trainer.fresh(0)).state_dict())
    first = model[0](by_hand(inputs, DATA)).mean((0, 2, 3))
    state = trainer.train(trainer.fresh(0), INVERT, [0.05], 7)
    assert torch.allclose(state.tensors["buffer.1.running_mean"], 0.1 * first, atol=1e-6)


@pytest.mark.parametrize(("tsa", "expected"), [("none", [1.0] * 5), ("linear", [0.5, 0.55, 0.6, 0.65, 0.7])])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_threshold_rises_over_a_whole_training(tsa, expected, optimizer):
    trainer = task(tsa=tsa, steps=10, optimizer=optimizer).prepare(DATA)
    assert [threshold for _, _, threshold in steps_of(trainer)] == pytest.approx(expected)


@pytest.mark.parametrize("multilabel", [False, True])
def test_labels_that_are_known_well_teach_nothing_at_first(multilabel):
    y = np.stack([np.arange(80) % 2, np.arange(80) // 2 % 2], 1) if multilabel else np.arange(80) % 2
    trainer = task().prepare(blobs(split=SPLIT, y=y))
    logits = torch.tensor([[2.0, -2.0], [-1.0, 1.0]], requires_grad=True)
    labels = torch.tensor([[1, 1], [1, 0]], dtype=torch.uint8) if multilabel else torch.tensor([0, 0])
    trainer.supervised(logits, labels, torch.tensor(0.6)).backward()
    known = [[True, False], [False, False]] if multilabel else [[True, True], [False, False]]
    assert (logits.grad == 0).tolist() == known


def test_passes_are_those_of_all_views():
    trainer = task().prepare(DATA)
    trainer.train(trainer.fresh(0), TREE, RATES, 0)
    assert trainer.passes.forward == trainer.passes.backward == 5 * (4 + 2 * 12)
    assert trainer.passes_per_step == 2 * (4 + 2 * 12)


# ---- a training is a function of its arguments


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("cut", [1, 3])
def test_the_same_bits_again_and_in_two_parts(optimizer, cut):
    ready = task(optimizer=optimizer, preprocess=Flip(), tsa="exp").prepare(DATA)
    whole = ready.train(ready.fresh(1), TREE, RATES, 7)
    ready.train(ready.fresh(2), INVERT, [0.1] * 3, 8)  # something else in between
    again = ready.train(ready.fresh(1), TREE, RATES, 7)
    parts = ready.train(ready.train(ready.fresh(1), TREE, RATES[:cut], 7), TREE, RATES[cut:], 7)
    elsewhere = task(optimizer=optimizer, preprocess=Flip(), tsa="exp").prepare(DATA)
    assert same(whole, again)
    assert same(whole, parts)
    assert same(whole, elsewhere.train(elsewhere.fresh(1), TREE, RATES, 7))
    assert not same(whole, ready.train(ready.fresh(1), TREE, RATES, 8))


def test_it_is_the_same_however_many_steps_are_augmented_together(monkeypatch):
    whole = task().prepare(DATA).fit(TREE, 3)
    monkeypatch.setattr("augtree.training.trainer.CHUNK_BYTES", 1)
    assert same(whole, task().prepare(DATA).fit(TREE, 3))


def destroyed(data):
    """The same with other labels where they may not be read."""
    labels = data.labels.clone()
    labels[torch.from_numpy(data.indices("unlabelled"))] = 0
    return dataclasses.replace(data, labels=labels)


@pytest.mark.parametrize("tsa", ["none", "linear"])
def test_labels_of_unlabelled_samples_are_never_read(tsa):
    other = destroyed(DATA)
    assert not torch.equal(other.labels, DATA.labels)
    states = [task(tsa=tsa).prepare(data).fit(TREE, 3) for data in (DATA, other)]
    assert same(*states)
    changed = dataclasses.replace(DATA, labels=torch.zeros_like(DATA.labels))
    assert not same(states[0], task(tsa=tsa).prepare(changed).fit(TREE, 3))


@pytest.mark.parametrize("name", ["retrain", "cooldown"])
def test_a_search_does_not_read_them_either(whole, tmp_path, name):
    search(destroyed(marks()), out=tmp_path / "a", scorer=SCORERS[name])
    assert files(tmp_path / "a") == files(whole / name)


# ---- groups and forests


GROUPS = ["a", "b"] * 40
FOREST = Forest({"a": (Tree().with_node(1, INVERT, p=1.0), 0.5), "b": (Tree(), 0.5)})


def test_each_unlabelled_sample_has_its_own_groups_tree():
    for inputs, _, _ in steps_of(task().prepare(numbered(SPLIT, groups=GROUPS)), FOREST):
        plain, strong = numbers(inputs[4:16]), numbers(inputs[16:])
        assert strong == [255 - i if i % 2 == 0 else i for i in plain]


def test_in_an_order_of_ones_own_unlabelled_samples_are_of_the_same_groups():
    """Three of four labelled samples are of group a, so three of four unlabelled ones are."""
    data = numbered(SPLIT, groups=GROUPS)

    def order(start, count):
        which = np.array([0, 2, 4, 1] * 5)[start : start + count]
        return which, which + 1000 * np.arange(start, start + count)

    seen = steps_of(task().prepare(data), FOREST, order=order)
    for inputs, _, _ in seen:
        assert [n % 2 for n in numbers(inputs[4:16])] == [0] * 9 + [1] * 3
        assert set(numbers(inputs[4:16])) <= set(range(48))
    assert len({n for inputs, _, _ in seen for n in numbers(inputs[4:16])}) > 20
    parts = task().prepare(data)
    state = parts.train(parts.fresh(0), FOREST, RATES[:2], 7, order=order)
    state = parts.train(state, FOREST, RATES[2:], 7, order=order)
    assert same(state, parts.train(parts.fresh(0), FOREST, RATES, 7, order=order))


def test_a_group_without_unlabelled_samples_is_told():
    groups = ["a"] * 8 + ["b"] * 4 + ["a"] * 36 + ["a", "b"] * 16
    data = numbered(SPLIT, groups=groups)
    trainer = task(include_labelled=False).prepare(data)
    with pytest.raises(DataError, match="numbered: every group needs unlabelled samples, got none in b"):
        trainer.train(trainer.fresh(0), FOREST, [0.1], 0, order=lambda s, n: (np.arange(8, 12), np.arange(8, 12)))


def test_a_forest_of_such_groups_is_refused_before_anything_is_searched():
    data = numbered(SPLIT, groups=["a"] * 4 + ["b"] * 8 + ["a"] * 36 + ["a", "a", "b", "b"] * 8)
    events = []
    with pytest.raises(
        DataError, match=r"numbered\[b\]: semi-supervised training needs unlabelled samples, got none"
    ):
        at.search_forest(data, task(), method="paper", watch=events.append)
    assert [type(event).__name__ for event in events] == ["Began"]


@pytest.mark.parametrize("augment", [False, True])
def test_the_weights_of_groups_weigh_samples_as_a_step_has_them(augment):
    data = numbered(SPLIT, groups=["a", "b"] * 40)
    trainer = task(augment_labelled=augment, ratio=3).prepare(data)
    look = Hypergradient(trainer, FOREST, Weighting(batch=4), 0)
    (inputs, which), later = look._inner_batch(0), look._inner_batch(1)[0]
    given, plain, strong = (numbers(part) for part in inputs.split((8, 24, 24)))
    assert given == [255 - i if augment else i for i in which[:4]] + which[4:].tolist()
    assert data.groups[plain].tolist() == [0] * 12 + [1] * 12
    assert {data.split[i] for i in plain} <= {0, 3}
    assert strong == [255 - i for i in plain[:12]] + plain[12:]
    assert plain != numbers(later.split((8, 24, 24))[1])


def linear_net():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2))


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_weights_weigh_the_loss_of_the_task(multilabel):
    """Its value in each group by the step's own function; of a linear model, both products are the Hessian."""
    data = blobs(split=SPLIT, groups=["a", "a", "b", "b"] * 20)
    if multilabel:
        both = torch.stack([data.labels, 1 - data.labels], 1)
        data = from_arrays(data.samples, both, split=SPLIT, groups=["a", "a", "b", "b"] * 20)
    options = {"model": linear_net, "ratio": 3, "weight": 0.7, "confidence": 0.6, "label_smoothing": 0.1}
    trainer = task(**options, device="cpu").prepare(data)
    look = Hypergradient(trainer, FOREST, Weighting(batch=4), 0)
    trainer.module(trainer.fit(INVERT, 0))
    inputs, labels = look._labelled(look._inner_batch(0))
    outputs, losses, curvature = look._inner(inputs, labels)
    given, plain, strong = trainer.model(trainer.normalised(inputs)).split((8, 24, 24))
    for group in (0, 1):
        mine, others = slice(4 * group, 4 * group + 4), slice(12 * group, 12 * group + 12)
        logits = torch.cat((given[mine], plain[others], strong[others]))
        assert torch.allclose(losses[group], trainer.loss(logits, labels[mine], torch.tensor(1.0)))
    w = torch.tensor([0.3, 0.7])
    inner = InnerLoss(losses, w, look.parameters, look.decay)
    assert 0 < float(confident(plain, 0.6, multilabel).float().mean()) < 1
    for seed, look.forward_mode in product(range(3), (True, False)):
        curve = look._gauss_newton(outputs, w, curvature, inputs, labels)
        v = torch.randn(len(inner.gradient), generator=torch.Generator().manual_seed(seed))
        assert torch.allclose(curve(v), inner.hessian(v), rtol=1e-4, atol=1e-5)
        assert torch.allclose(curve.dot_gradients(losses, v), inner.dot_gradients(v), rtol=1e-4, atol=1e-4)


def test_a_forest_is_fitted():
    data = blobs(split=SPLIT, groups=["a", "a", "b", "b"] * 20)
    trees = {name: member.tree for name, member in FOREST.groups.items()}
    found = [at.fit_forest(data, task(), trees, alpha=2, eta=0.1, plain=False) for _ in range(2)]
    weights = [result.weights for result in found]
    assert weights[0] == weights[1]
    assert sum(weights[0].values()) == pytest.approx(1)
    assert weights[0]["a"] != 0.5


# ---- what only consistency teaches


def hidden_top(picture):
    picture = picture.clone()
    picture[:, :4] = 30
    return picture


HIDE = at.wrap(hidden_top, name="HideTop")
SPACE = [Rotate(0.2), Posterize(1.0), HIDE, Brightness(0.2), Cutout(0.2)]
OPTIONS = Retrain(spread=2, repeats=1)
SCORERS = {"retrain": OPTIONS, "cooldown": Cooldown(looks=(0.3, 0.6), look=0.1, shortest=4, cool=0.2, renew=4)}


def marks(seed=0):
    """Labelled pictures have a mark at the top, left or right; unlabelled ones at the top and below; others below.

    Nothing but the unlabelled pictures tells that the marks mean the same, if their top is hidden now and then.
    """
    rng = np.random.default_rng(seed)
    kinds, pictures = np.arange(168) % 2, rng.integers(0, 60, (168, 8, 8))
    for i, (picture, kind) in enumerate(zip(pictures, kinds, strict=True)):
        side = slice(0, 4) if kind == 0 else slice(4, 8)
        picture[:4, side] += 120 * (i < 104)
        picture[4:, side] += 120 * (i >= 8)
    split = ["train"] * 8 + ["unlabelled"] * 96 + ["val"] * 64
    return from_arrays(pictures.astype(np.uint8), kinds, split=split, name="marks")


def two_layers():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))


LENGTH = {"model": two_layers, "steps": 60, "batch_size": 8, "lr": 0.02, "device": "cpu"}
FEW_LABELS = SemiSupervised(**LENGTH, ratio=4, sharpen=1.0)  # so that without a policy consistency is for nothing


def search(data=None, **more):
    options = {"depth": 1, "scorer": OPTIONS, "probabilities": (0.5, 1.0), "check": 0, **more}
    return search_tree(data or marks(), FEW_LABELS, SPACE, **options)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_right_policy_on_unlabelled_samples_teaches_what_labels_do_not(seed):
    data = marks(seed)

    def accuracy(task, policy):
        trainer = task.prepare(data)
        return trainer.measures(trainer.fit(policy, seed), data.indices("val"))["accuracy"]

    assert accuracy(FEW_LABELS, HIDE) > 0.98
    for policy in (Identity(), HIDE):
        assert accuracy(Classification(**LENGTH), policy) < 0.8
    for policy in (Identity(), *(candidate for candidate in SPACE if candidate != HIDE)):
        assert accuracy(FEW_LABELS, policy) < 0.8


def test_the_search_finds_it(whole):
    found = [at.load(whole / "retrain" / "tree.json", transforms=[HIDE]), search(marks(1), seed=1).tree]
    assert found == [Tree().with_node(1, HIDE, 1.0)] * 2


def test_comparing_works_as_with_any_task():
    table = at.compare(marks(), FEW_LABELS, policies={"none": None, "hide": HIDE}, seeds=1)
    assert "hide" in str(table)


# ---- killed and resumed


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize(("name", "at_point"), [("retrain", 4), ("retrain", 14), ("cooldown", 11), ("cooldown", 17)])
def test_killed_and_resumed_it_ends_the_same(whole, tmp_path, monkeypatch, cut, name, at_point):
    cut(at_point)
    with pytest.raises(cut.Error):
        search(out=tmp_path / "cut", scorer=SCORERS[name])
    monkeypatch.setattr(faults, "point", lambda name: None)
    at.resume(tmp_path / "cut", data=marks(), task=FEW_LABELS, transforms=[HIDE])
    assert files(tmp_path / "cut") == files(whole / name)


def files(folder):
    """What must be the same to the byte: the tree, the model where there is one, and every score."""
    names = ("tree.json", "tree.svg", "model.safetensors")
    return [(folder / name).read_bytes() for name in names if (folder / name).exists()], history(folder)


def history(folder):
    """All rows but for how long they took."""
    rows = [line.split(",") for line in (folder / "history.csv").read_text().splitlines()]
    place = rows[0].index("seconds")
    return [row[:place] + row[place + 1 :] for row in rows]


def test_a_folder_holds_one_task(whole):
    other = dataclasses.replace(FEW_LABELS, weight=0.5)
    with pytest.raises(OtherRunError):
        search_tree(marks(), other, SPACE, depth=1, scorer=OPTIONS, probabilities=(0.5, 1.0), check=0,
                    out=whole / "retrain")  # fmt: skip


# ---- the task as a value


def test_the_spec_has_everything_and_makes_the_task_again():
    original = SemiSupervised(model="wrn-28-2", ratio=5, weight=2.0, sharpen=0.5, confidence=0.9, tsa="log",
                           include_labelled=False, augment_labelled=True)  # fmt: skip
    spec = json.loads(json.dumps(original.spec()))
    assert spec.pop("task") == "semisupervised"
    assert SemiSupervised(**spec) == original
    assert {*spec} - {*Classification().spec()} == {
        "ratio", "weight", "sharpen", "confidence", "tsa", "include_labelled", "augment_labelled"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": 0}, "ratio must be a whole number from 1 to 1000000, got 0"),
        ({"ratio": 2.5}, "ratio must be a whole number from 1 to 1000000, got 2.5"),
        ({"weight": -1}, "weight must be a number in [0, 1e+06], got -1"),
        ({"sharpen": 0}, "sharpen must be a number in (0, 1], got 0"),
        ({"sharpen": 1.5}, "sharpen must be a number in (0, 1], got 1.5"),
        ({"confidence": 1}, "confidence must be a number in [0, 0.9999], got 1"),
        ({"tsa": "exponential"}, "tsa must be one of none, linear, log, exp, got 'exponential'"),
        ({"include_labelled": 1}, "include_labelled must be True or False, got 1"),
        ({"augment_labelled": "yes"}, "augment_labelled must be True or False, got 'yes'"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 to 1000000, got 0"),
        ({"model": "wrn-28"}, "model"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ArgumentError) as caught:
        SemiSupervised(**options)
    assert message in str(caught.value)


def test_data_without_unlabelled_samples_is_refused():
    with pytest.raises(DataError, match=r"blobs: semi-supervised training needs unlabelled samples, got none"):
        task().prepare(blobs())


def test_a_model_of_another_task_is_told():
    trainer = task(model=wide_net).prepare(DATA)
    with pytest.raises(TaskError, match=r"the model must give \[samples, classes\], here \[28, 2\], got \[28, 3\]"):
        trainer.fit(TREE, 0)


# ---- other data


def test_a_few_labels_of_a_whole_set():
    data = blobs(train=48).with_labels(8)
    trainer = task(steps=60, lr=0.02, confidence=0.6).prepare(data)
    assert trainer.batch_size == 4
    state = trainer.fit(Brightness(0.4), 0)
    assert trainer.measures(state, data.indices("test"))["accuracy"] > 0.9


def test_several_labels():
    y = np.stack([np.arange(80) % 2, 1 - np.arange(80) % 2], 1)
    data = blobs(split=SPLIT, y=y)
    trainer = task(steps=60, metric="auroc", tsa="linear").prepare(data)
    state = trainer.fit(Brightness(0.4), 0)
    assert trainer.measures(state, data.indices("val"))["auroc"] > 0.9
    assert same(state, task(steps=60, metric="auroc", tsa="linear").prepare(destroyed(data)).fit(Brightness(0.4), 0))


def test_graphs():
    """Rings (class 0) and stars: the views of a step are one batch of graphs."""
    samples = []
    for i in range(40):
        n = 5 + i % 4
        ends = [((j, (j + 1) % n) if i % 2 == 0 else (0, j)) for j in range(i % 2, n)]
        edges = torch.tensor(ends + [(b, a) for a, b in ends]).T.contiguous()
        samples.append(Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([i % 2])))
    split = ["train"] * 6 + ["unlabelled"] * 18 + ["val"] * 16
    data = from_arrays(samples, np.arange(40) % 2, split=split, name="shapes")
    trainer = task(model="gin", steps=30, batch_size=6, options={"hidden": 8}).prepare(data)
    seen = steps_of(trainer, MaskNodes(0.4), [0.05])
    assert seen[0][0].num_graphs == 6 * (1 + 2 * 3)
    state = trainer.fit(MaskNodes(0.4), 0)
    assert same(state, trainer.fit(MaskNodes(0.4), 0))
    assert trainer.measures(state, data.indices("val"))["accuracy"] > 0.9


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_the_recorded_step_is_the_plain_one(monkeypatch):
    options = {"device": "cuda", "deterministic": True, "tsa": "linear", "confidence": 0.5, "steps": 20}
    recorded, plain = (task(**options).prepare(DATA) for _ in range(2))
    one = recorded.fit(TREE, 3)
    assert "step" in recorded.recordings
    assert same(one, recorded.fit(TREE, 3))
    monkeypatch.setattr(plain, "run_step", plain.step)
    other = plain.fit(TREE, 3)
    assert not plain.recordings
    assert torch.allclose(one.tensors["weights"], other.tensors["weights"], atol=2e-3, rtol=1e-2)
    assert (one.tensors["weights"] - recorded.fresh(3).tensors["weights"]).abs().max() > 0.02
