import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

from augtree import Forest, Tree
from augtree.data import from_arrays
from augtree.errors import ArgumentError, TaskError
from augtree.tasks import Classification
from augtree.training import predicting, trainer
from augtree.training.sampling import stream
from augtree.training.state import State, seed_of
from augtree.transforms import (
    Cutout,
    DropNodes,
    Flip,
    Identity,
    Invert,
    MaskNodes,
    Normalize,
    Rotate,
    SamplePairing,
    TrivialAugment,
)
from support.blobs import blobs, by_hand, forgetful_net, net, rows, same, task, wide_net

TREE = Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, Cutout(0.4), p=0.5)
RATES = [0.05, 0.04, 0.03, 0.02, 0.01]
DATA = blobs()


@pytest.fixture
def ready():
    return task(preprocess=Flip()).prepare(DATA)


# ---- a training is a function of its arguments


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("cut", [1, 2, 4])
def test_the_same_bits_again_and_in_two_parts(optimizer, cut):
    ready = task(optimizer=optimizer, preprocess=Flip()).prepare(DATA)
    whole = ready.train(ready.fresh(1), TREE, RATES, 7)
    ready.train(ready.fresh(2), TrivialAugment(), [0.1] * 3, 8)  # something else in between
    ready.losses(ready.fresh(5), rows(ready))
    again = ready.train(ready.fresh(1), TREE, RATES, 7)
    half = ready.train(ready.fresh(1), TREE, RATES[:cut], 7)
    parts = ready.train(half, TREE, RATES[cut:], 7)
    elsewhere = task(optimizer=optimizer, preprocess=Flip()).prepare(DATA)
    there = elsewhere.train(elsewhere.fresh(1), TREE, RATES, 7)
    assert same(whole, again)
    assert same(whole, parts)
    assert same(whole, there)
    assert whole.step == len(RATES)
    assert not same(whole, half)


def test_another_seed_policy_or_start_gives_other_weights(ready):
    whole = ready.train(ready.fresh(1), TREE, RATES, 7)
    assert not same(whole, ready.train(ready.fresh(1), TREE, RATES, 8))
    assert not same(whole, ready.train(ready.fresh(1), Identity(), RATES, 7))
    assert not same(whole, ready.train(ready.fresh(2), TREE, RATES, 7))
    assert not same(ready.fresh(1), ready.fresh(2))
    assert same(ready.fresh(1), ready.fresh(1))


def test_a_state_is_not_changed_by_training_on(ready):
    start = ready.fresh(1)
    kept = State({name: tensor.clone() for name, tensor in start.tensors.items()})
    after = ready.train(start, TREE, RATES, 7)
    frozen = State({name: tensor.clone() for name, tensor in after.tensors.items()}, after.step)
    ready.train(after, TREE, RATES, 7)
    assert same(start, kept)
    assert same(after, frozen)
    assert ready.train(start, TREE, [], 7) is start


class Noisy(nn.Module):
    """Remembers the last random number that it drew."""

    def __init__(self):
        super().__init__()
        self.net = net()
        self.register_buffer("drawn", torch.zeros(()))

    def forward(self, batch):
        self.drawn = torch.rand(())
        return self.net(batch)


def test_the_models_own_draws_depend_on_the_seed_and_the_step_alone():
    ready = task(model=Noisy).prepare(DATA)
    found = {}
    for seed, start in ((7, 0), (8, 0), (7, 3), (7, 0)):
        state = State(ready.fresh(1).tensors, start)
        torch.rand(seed)
        drawn = ready.train(state, Identity(), RATES[:2], seed).tensors["buffer.drawn"].item()
        assert found.setdefault((seed, start), drawn) == drawn
    assert len(set(found.values())) == 3
    forgetful = task(model=forgetful_net).prepare(DATA)
    assert same(*(forgetful.train(forgetful.fresh(1), Identity(), RATES, 7) for _ in range(2)))


class Drifting(nn.Module):
    """Puts a new buffer in the old one's place."""

    def __init__(self):
        super().__init__()
        self.net = net()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, batch):
        if self.training:
            self.seen = self.seen + 1
        return self.net(batch) + self.seen


def half_frozen():
    made = nn.Sequential(net(8), nn.Linear(8, 2))
    made[0].requires_grad_(False)
    return made


@pytest.mark.parametrize("model", [Drifting, half_frozen])
def test_buffers_that_are_replaced_and_frozen_weights_belong_to_the_state(model):
    ready = task(model=model).prepare(DATA)
    start = ready.fresh(1)
    once = ready.train(start, Identity(), RATES, 7)
    ready.train(ready.fresh(2), Identity(), RATES, 7)
    assert same(once, ready.train(start, Identity(), RATES, 7))
    assert not same(ready.fresh(1), ready.fresh(2))
    if model is Drifting:
        assert once.tensors["buffer.seen"] == len(RATES)


def test_a_model_function_must_make_a_new_module_each_time():
    one, forms = net(), iter([net(), nn.Sequential(nn.Flatten(), nn.Linear(192, 2))])
    with pytest.raises(TaskError, match="must make a new module each time, got the old 0.weight"):
        task(model=lambda: one).prepare(DATA).fresh(0)
    with pytest.raises(TaskError, match="the same form each time"):
        task(model=lambda: next(forms)).prepare(DATA).fresh(0)


def test_a_state_of_another_model_is_refused(ready):
    other = task(model=lambda: net(8)).prepare(DATA).fresh(0)
    with pytest.raises(TaskError, match=r"weights must have the shape \[\d+\], got \[\d+\]"):
        ready.losses(other, rows(ready))
    with pytest.raises(TaskError, match="must be of this model"):
        ready.losses(State({"weights": torch.zeros(3)}), rows(ready))


def test_deterministic_is_harmless_on_the_cpu(ready):
    strict = task(preprocess=Flip(), deterministic=True).prepare(DATA)
    assert same(strict.fit(TREE, 3), ready.fit(TREE, 3))
    assert not torch.are_deterministic_algorithms_enabled()


class Telling(nn.Linear):
    """Knows the type of what it gave last."""

    gave = None

    def forward(self, x):
        out = super().forward(x)
        Telling.gave = out.dtype
        return out


def telling_net():
    return nn.Sequential(nn.Flatten(), Telling(192, 2))


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("auto", torch.float32), ("float32", torch.float32), ("bfloat16", torch.bfloat16)],
)
def test_the_precision_is_that_of_products_alone(precision, dtype):
    ready = task(model=telling_net, precision=precision).prepare(DATA)
    state = ready.fit(TREE, 3)
    assert Telling.gave == dtype
    assert {tensor.dtype for tensor in state.tensors.values()} == {torch.float32}
    assert same(state, task(model=telling_net, precision=precision).prepare(DATA).fit(TREE, 3))
    assert same(state, task(model=telling_net).prepare(DATA).fit(TREE, 3)) == (dtype == torch.float32)
    Telling.gave = None
    losses = ready.losses(state, rows(ready))
    assert Telling.gave == dtype
    np.testing.assert_allclose(losses, task(model=telling_net).prepare(DATA).losses(state, rows(ready)), atol=0.05)


@pytest.mark.parametrize("model", [net, forgetful_net])
def test_the_users_random_numbers_are_left_alone(model):
    before = torch.get_rng_state()
    ready = task(model=model).prepare(DATA)
    state = ready.fit(SamplePairing(0.4), 3)
    ready.losses(state, rows(ready), TREE, 4)
    ready.measures(state, rows(ready))
    assert torch.equal(torch.get_rng_state(), before)


# ---- against a training by hand


def test_the_steps_are_those_of_a_training_by_hand():
    by_task = task(label_smoothing=0.2, weight_decay=0.01, preprocess=Flip())
    ready = by_task.prepare(DATA)
    start, rates = ready.fresh(1), [0.05, 0.1, 0.02]
    found = ready.train(start, Invert(0.5), rates, 7)
    model = net()
    for name, value in ready.module(start).state_dict().items():
        model.state_dict()[name].copy_(value)
    optimizer = torch.optim.SGD(model.parameters(), lr=1, momentum=0.9, weight_decay=0.01, nesterov=True)
    which, where = stream(rows(ready, "train"), 0, 48, 7)
    pictures = DATA.samples[torch.from_numpy(which)]
    pictures = Flip()(pictures, seed=seed_of(7, "preprocess"), index=where)
    pictures = Invert(0.5)(pictures, seed=seed_of(7, "policy"), index=where)
    labels = DATA.labels[torch.from_numpy(which)]
    for i, rate in enumerate(rates):
        some = slice(16 * i, 16 * i + 16)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        F.cross_entropy(model(by_hand(pictures[some], DATA)), labels[some], label_smoothing=0.2).backward()
        optimizer.step()
    for name, value in ready.module(found).state_dict().items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-4, atol=1e-5)


def test_logits_are_those_of_the_module_on_normalised_pictures(ready):
    state = ready.fit(TREE, 0)
    found = ready.logits(state, rows(ready))
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in ready.mean_and_std())
    pictures = DATA.samples[torch.from_numpy(rows(ready))]
    with torch.no_grad():
        by_numbers = ready.module(state)((pictures / 255 - mean) / std)
        expected = ready.module(state)(by_hand(pictures, DATA))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(by_numbers, expected, rtol=1e-4, atol=1e-5)
    losses = F.cross_entropy(expected, DATA.labels[torch.from_numpy(rows(ready))], reduction="none")
    np.testing.assert_allclose(ready.losses(state, rows(ready)), losses, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("policy", [None, TREE])
def test_judging_does_not_depend_on_how_many_are_judged_at_once(ready, monkeypatch, at_once, policy):
    state = ready.fit(TREE, 0)
    all_at_once = ready.logits(state, rows(ready), policy, 5)
    reverse = ready.logits(state, rows(ready)[::-1].copy(), policy, 5)
    monkeypatch.setitem(predicting.PREDICTED_AT_ONCE, "cpu", at_once)
    torch.testing.assert_close(ready.logits(state, rows(ready), policy, 5), all_at_once, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reverse.flip(0), all_at_once, rtol=1e-4, atol=1e-5)


def test_a_judging_policy_acts_on_the_samples_alone(ready):
    state, one = ready.fit(TREE, 0), rows(ready)[:4]
    upside_down = ready.logits(state, one, Tree().with_node(1, Invert(1.0), p=1.0))
    with torch.no_grad():
        expected = ready.module(state)(by_hand(255 - DATA.samples[torch.from_numpy(one)], DATA))
    torch.testing.assert_close(upside_down, expected, rtol=1e-4, atol=1e-5)  # and no flips before


# ---- costs


def test_passes_are_counted(ready):
    state = ready.train(ready.fresh(0), TREE, RATES, 1)
    assert (ready.passes.forward, ready.passes.backward) == (80, 80)
    ready.losses(state, rows(ready))
    ready.measures(state, rows(ready)[:5])
    assert (ready.passes.forward, ready.passes.backward, ready.passes.total) == (101, 80, 181)


def test_a_training_that_breaks_off_has_cost_what_it_did(ready):
    def stop(done, loss):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready.train(ready.fresh(0), TREE, RATES, 1, tick=stop)
    assert ready.passes.backward == 48


def test_ticks_count_the_steps(ready):
    seen = []
    ready.train(ready.fresh(0), TREE, RATES, 1, tick=lambda *tick: seen.append(tick))
    assert seen == [(step, None) for step in (1, 2, 3, 4, 5)]


def test_every_twentieth_tick_has_the_loss_of_its_batch(ready):
    seen, state = {}, ready.train(ready.fresh(0), TREE, [0.01] * 38, 1)
    ready.train(state, TREE, [0.01] * 4, 1, tick=seen.setdefault)
    _, (second, others) = ready.batches(TREE, ready.rows, None, 1, 38, 2)
    ready.train(state, TREE, [0.01], 1)
    ready.model.train()
    with torch.no_grad():
        expected = F.cross_entropy(ready.outputs(second, 16, ready.model), others).item()
    assert seen == {1: None, 2: pytest.approx(expected, rel=1e-5), 3: None, 4: None}


@pytest.mark.parametrize(("count", "passes"), [(None, 2 * 48), (80, 2 * 64), (10, 2 * 10)])
def test_epochs_hold_for_any_rows(count, passes):
    ready = task(steps=None, epochs=2, batch_size=64).prepare(DATA)
    chosen = None if count is None else np.arange(count)
    state = ready.fit(Identity(), 0, rows=chosen)
    assert ready.batch_size == 48
    assert state.step == {None: 2, 80: 2, 10: 2}[count]  # 80 / 64 * 2 is 2.5, which is rounded to even
    assert ready.passes.backward == passes


# ---- batches


def test_draws_do_not_depend_on_the_batch_size(monkeypatch):
    found = []
    for size, chunk in ((8, 1 << 25), (16, 1 << 25), (16, 1)):
        monkeypatch.setattr(trainer, "CHUNK_BYTES", chunk)
        ready = task(batch_size=size, preprocess=Flip()).prepare(DATA)
        batches = list(ready.batches(TREE, ready.rows, None, 3, 0, 64 // size))
        assert [len(labels) for _, labels in batches] == [size] * (64 // size)
        found.append([torch.cat(parts) for parts in zip(*batches, strict=True)])
    for pictures, labels in found[1:]:
        assert torch.equal(pictures, found[0][0])
        assert torch.equal(labels, found[0][1])
    assert len({tuple(p.flatten().tolist()) for p in found[0][0]}) > 48  # the second epoch draws anew


# ---- what goes in


def test_mean_and_deviation_are_those_of_the_training_pictures():
    mean, std = task().prepare(DATA).mean_and_std()
    known = DATA.samples[:48].double() / 255
    np.testing.assert_allclose(mean, known.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(std, known.std((0, 2, 3), correction=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("preprocess", "own", "expected"),
    [
        ("default", None, Identity()),
        ("default", Flip(), Flip()),
        (None, Flip(), Identity()),
        (Tree(), Flip(), Tree()),
        (Invert(1.0), Flip(), Invert(1.0)),
    ],
)
def test_preprocessing_is_the_users_choice(preprocess, own, expected):
    assert task(preprocess=preprocess).prepare(blobs(preprocess=own)).preprocess == expected


def test_preprocessing_comes_before_the_policy():
    ready = task(preprocess=Tree().with_node(1, Invert(1.0), p=1.0)).prepare(DATA)
    some = np.array([3, 1])
    assert torch.equal(ready.augmented(Identity(), some, some, 0), 255 - DATA.samples[[3, 1]])


def test_each_sample_of_a_forest_is_augmented_by_its_groups_tree():
    data = blobs(groups=["a", "b"] * 40)
    forest = Forest({"a": (Tree().with_node(1, Invert(1.0), p=1.0), 0.5), "b": (Tree(), 0.5)})
    ready = task().prepare(data)
    which = np.array([1, 0, 2, 3, 5])  # b a a b b
    expected = data.samples[which].clone()
    expected[1:3] = 255 - expected[1:3]
    assert torch.equal(ready.augmented(forest, which, which, 0), expected)
    state = ready.fit(forest, 0)
    assert same(state, ready.fit(forest, 0))
    expected = torch.cat([ready.logits(state, which[[i]], forest["ab"[i not in (1, 2)]].tree) for i in range(5)])
    torch.testing.assert_close(ready.logits(state, which, forest), expected, rtol=1e-4, atol=1e-5)


def test_a_policy_must_give_bytes():
    with pytest.raises(TaskError, match="must give uint8 pictures in training, got torch.float32 from Normalize"):
        task(preprocess=Normalize((0.5,), (0.5,))).prepare(DATA).fit(Identity(), 0)


def test_there_must_be_rows(ready):
    for call in (ready.logits, ready.losses, ready.measures):
        with pytest.raises(ArgumentError, match="rows must not be empty"):
            call(ready.fresh(0), np.array([], np.int64))
    with pytest.raises(ArgumentError, match="rows must not be empty"):
        ready.train(ready.fresh(0), TREE, RATES, 0, rows=np.array([], np.int64))


# ---- judging


def test_several_labels_are_learned():
    marks = np.stack([np.arange(80) % 2, np.arange(80) // 2 % 2], 1)
    ready = task().prepare(blobs(y=marks))
    state = ready.fit(Identity(), 0, steps=40)
    found = ready.losses(state, rows(ready, "train"))
    assert found.mean() < ready.losses(ready.fresh(0), rows(ready, "train")).mean() - 0.2
    expected = F.binary_cross_entropy_with_logits(ready.logits(state, rows(ready)), ready.labels[48:64].float())
    assert ready.measures(state, rows(ready))["loss"] == pytest.approx(float(expected), rel=1e-5)


def test_a_metric_that_the_samples_do_not_allow_is_left_out(ready):
    one_class = rows(ready)[::2]
    state = ready.fresh(0)
    assert set(ready.measures(state, one_class)) == {"accuracy", "error", "f1", "loss"}
    strict = task(metric="auroc").prepare(DATA)
    with pytest.raises(ArgumentError, match="must have, for the AUROC, a class"):
        strict.measures(strict.fresh(0), one_class)


def test_a_training_that_diverged_is_told(ready):
    state = ready.fresh(0)
    state.tensors["weights"].fill_(math.nan)
    with pytest.raises(TaskError, match=r"the training diverged with lr=0\.05"):
        ready.measures(state, rows(ready))


class Talkative(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, batch):
        return self.net(batch), "more"


@pytest.mark.parametrize(("model", "got"), [(wide_net, r"\[16, 3\]"), (Talkative, "tuple")])
def test_a_model_of_another_task_is_told_at_once(model, got):
    ready = task(model=model).prepare(DATA)
    with pytest.raises(TaskError, match=rf"must give \[samples, classes\], here \[16, 2\], got {got}"):
        ready.fit(Identity(), 0)
    with pytest.raises(TaskError, match=rf"here \[16, 2\], got {got}"):
        ready.losses(ready.fresh(0), rows(ready))


# ---- it learns


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.1), ("adamw", 0.01)])
def test_a_small_problem_is_learned(optimizer, lr):
    ready = task(optimizer=optimizer, lr=lr, model="auto", steps=30, options={"width": 8}).prepare(DATA)
    before = ready.measures(ready.fresh(0), rows(ready, "test"))
    after = ready.measures(ready.fit(Rotate(0.2), 0), rows(ready, "test"))
    assert before["accuracy"] < 0.8
    assert after["accuracy"] == 1
    assert after["loss"] < 0.2 < before["loss"]


def test_a_batch_larger_than_the_data():
    ready = task(batch_size=1000, steps=None, epochs=3).prepare(DATA)
    assert (ready.batch_size, ready.total_steps) == (48, 3)
    ready.fit(TREE, 0)
    assert ready.passes.backward == 3 * 48


def graphs(count=16):
    """Rings and stars of five to eight nodes, without features."""
    found = []
    for i in range(count):
        nodes = 5 + i // 2 % 4
        far = torch.arange(1, nodes)
        near = far - 1 if i % 2 else torch.zeros_like(far)
        edges = torch.stack([torch.cat([near, far]), torch.cat([far, near])])
        found.append(Data(edge_index=edges, num_nodes=nodes, y=torch.tensor([i % 2])))
    return found


@pytest.mark.parametrize("features", [False, True])
def test_graphs_are_learned(features):
    samples = graphs()
    for sample in samples if features else ():
        sample.x = torch.ones(sample.num_nodes, 2)
    data = from_arrays(samples, split=["train"] * 12 + ["val"] * 4)
    ready = Classification(steps=30, batch_size=6, lr=0.01, optimizer="adamw", device="cpu").prepare(data)
    policy = MaskNodes(0.1) if features else Identity()
    state = ready.fit(policy, 0)
    assert ready.measures(state, rows(ready, "train"))["accuracy"] == 1
    assert ready.measures(state, rows(ready, "val"))["accuracy"] == 1
    assert ready.measures(ready.fresh(0), rows(ready, "train"))["accuracy"] < 1
    half = ready.train(ready.fresh(0), policy, ready.task.rates(30)[:7], 0)
    assert same(ready.train(half, policy, ready.task.rates(30)[7:], 0), state)
    assert ready.mean_and_std() == ((), ())
    assert ready.passes.backward == 2 * 30 * 6


def test_graphs_that_are_augmented_together_are_those_of_one_batch_after_another(monkeypatch):
    data = from_arrays(graphs(), split=["train"] * 12 + ["val"] * 4)
    ready = Classification(steps=9, batch_size=5, lr=0.01, optimizer="adamw", device="cpu").prepare(data)
    assert ready.augmented_at_once(5) > 9
    state = ready.fit(DropNodes(0.5), 0)
    monkeypatch.setattr(trainer, "CHUNK_EDGES", {"cpu": 1})
    assert ready.augmented_at_once(5) == 1
    assert same(ready.fit(DropNodes(0.5), 0), state)
