"""Algorithm 2 on problems whose answer is known."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import augtree as at
from augtree.errors import TaskError
from augtree.forests import Weighting
from augtree.forests.algorithm2 import WeightedTraining, begun, mixed
from augtree.forests.hypergradient import Hypergradient
from augtree.forests.implicit_gradient import conjugate_gradients, pulled
from augtree.tasks import Contrastive
from augtree.training.trainer import stream
from augtree.transforms import Invert
from support.logistic import Logistic, inner_of
from support.two_groups import forest, normed, task, two_groups


def trained(data, options, seed=0, **more):
    trainer = task(**more).prepare(data)
    training = WeightedTraining(trainer, forest(data), options, seed)
    return trainer, training.run(range(training.rounds))


def accuracy(trainer, at_, group, split="test"):
    return trainer.measures(at_.theta, trainer.data.indices(split, group))["accuracy"]


# ---- what the weights do


@pytest.mark.parametrize("solver", ["cg", "series"])
@pytest.mark.parametrize("d", ["raw", "cosine"])
def test_a_group_with_noise_for_labels_loses_weight(solver, d):
    data = two_groups(noise=True)
    found = [trained(data, Weighting(alpha=10, eta=0.5, solver=solver, d=d), seed)[1].w[1] for seed in range(3)]
    assert max(found) < 0.3
    even = two_groups()
    still = [trained(even, Weighting(alpha=10, eta=0.5, solver=solver, d=d), seed)[1].w[1] for seed in range(3)]
    assert min(still) > max(found) + 0.1


def test_equal_groups_stay_equal_within_noise():
    found = [trained(two_groups(seed=seed), Weighting(alpha=10, eta=0.1), seed)[1].w[0] for seed in range(5)]
    assert abs(np.mean(found) - 0.5) < 0.06
    assert max(abs(w - 0.5) for w in found) < 0.15


def test_worst_raises_the_worst_group():
    """Group b is one in ten, and a line that serves a does not serve b."""
    data = two_groups(sizes=(270, 30), sides=(0, 1), strength=25)
    gains, weights = [], []
    for seed in range(3):
        found = {}
        for target in ("average", "worst"):
            options = Weighting(alpha=10, eta=0.5, start="proportions", target=target)
            trainer, at_ = trained(data, options, seed)
            found[target] = min(accuracy(trainer, at_, group) for group in "ab")
            weights.append((target, at_.w[1]))
        gains.append(found["worst"] - found["average"])
    assert np.mean(gains) > 0.03
    assert min(w for target, w in weights if target == "worst") > 0.2


def test_with_the_training_loss_outside_the_proportions_are_optimal_already():
    """The paper's form: at the minimum for w = q, d is zero for all groups; elsewhere it leads back to q."""
    problem, q = Logistic(3, decay=0.0, points=60), torch.full((3,), 1 / 3, dtype=torch.float64)
    for w, zero in ((q, True), (torch.tensor([0.6, 0.2, 0.2], dtype=torch.float64), False)):
        theta, inner = inner_of(problem, w)
        v = pulled(q @ problem.losses(theta), [theta])
        d = -inner.slopes(conjugate_gradients(inner.hessian, v, iterations=50, tolerance=1e-10).x)
        assert (float(d.abs().max()) < 1e-9) == zero
        if not zero:
            assert float((w - q) @ d) > 0  # the multiplicative update goes against d
            clean = pulled(problem.outer(theta), [theta])
            assert float(inner.slopes(conjugate_gradients(inner.hessian, clean, iterations=50).x).abs().max()) > 1e-3


def test_without_eta_the_weights_stay_and_nothing_is_looked_at():
    data = two_groups(sizes=(90, 30))
    trainer, at_ = trained(data, Weighting(eta=0, start="uniform"))
    assert at_.w.tolist() == [0.5, 0.5]
    assert at_.history == ()
    assert trainer.passes.forward == 200 * 32
    assert trained(data, Weighting(eta=0, start="proportions"))[1].w.tolist() == [0.75, 0.25]


# ---- the look


def test_d_of_a_model_against_dense_matrices():
    """The whole of `Hypergradient` against derivatives that torch.func takes of one long vector."""
    data = two_groups(sizes=(24, 24))
    trainer = task(weight_decay=0.01).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=20)
    options = Weighting(batch=24, damping=0.05, iterations=200, tolerance=1e-6, product="hessian", d="raw")
    w, outer = np.array([0.3, 0.7]), np.array([0.4, 0.6])
    look = Hypergradient(trainer, forest(data), options, 0).at(state, w, outer, 0, "hessian")

    theta = torch.cat([p.detach().reshape(-1) for p in trainer.module(state).parameters()]).double()

    def losses(vector, rows):
        x = trainer.normalised(trainer.batch(rows)).double().flatten(1)
        logits = x @ vector[:32].view(2, 16).T + vector[32:]
        return nn.functional.cross_entropy(logits, trainer.labels[torch.from_numpy(rows)])

    def group_losses(vector, split, count=None):
        return torch.stack([losses(vector, data.indices(split, group)[:count]) for group in "ab"])

    inner_w, outer_w = torch.from_numpy(w), torch.from_numpy(outer)
    hessian = torch.func.hessian(lambda v: inner_w @ group_losses(v, "train"))(theta)
    seen = [stream(data.indices("val", group), 0, 24, 0)[0] for group in "ab"]
    v = torch.func.grad(lambda x: outer_w @ torch.stack([losses(x, rows) for rows in seen]))(theta)
    slopes = torch.func.jacrev(lambda x: group_losses(x, "train"))(theta)
    s = torch.linalg.solve(hessian + 0.06 * torch.eye(34), v)  # damping and weight decay
    assert look.d == pytest.approx((-slopes @ s).numpy(), rel=2e-3, abs=1e-5)
    cosine = Hypergradient(trainer, forest(data), replace(options, d="cosine"), 0).at(state, w, outer, 0, "hessian")
    expected = -(slopes @ s) / (s.norm() * slopes.norm(dim=1))
    assert cosine.d == pytest.approx(expected.numpy(), rel=2e-3, abs=1e-5)


def test_a_look_leaves_the_state_and_its_buffers_as_they_are():
    data = two_groups()
    trainer = task(normed).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=5)
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    on = trainer.train(state, at.Tree(), [0.05] * 3, 0)
    look = Hypergradient(trainer, forest(data), Weighting(), 0)
    first = look.at(state, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0, "gauss-newton")
    assert all(torch.equal(before[name], tensor) for name, tensor in state.tensors.items())
    again = trainer.train(state, at.Tree(), [0.05] * 3, 0)
    assert all(torch.equal(on.tensors[name], tensor) for name, tensor in again.tensors.items())
    assert (
        first.d.tolist() == look.at(state, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0, "gauss-newton").d.tolist()
    )


class Shifted(nn.Module):
    """Takes the mean of what it has seen in training off its inputs: a buffer that counts."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 2)
        self.register_buffer("seen", torch.zeros(16))

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            self.seen.mul_(0.5).add_(0.5 * x.detach().mean(0))
        return self.linear(x - self.seen)


@pytest.mark.parametrize("model", [normed, Shifted])
def test_a_look_is_the_same_whatever_came_before_it(model):
    data, w = two_groups(), np.array([0.5, 0.5])
    trainer = task(model).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=5)
    seasoned, fresh = (Hypergradient(trainer, forest(data), Weighting(), 0) for _ in range(2))
    seasoned.at(state, w, w, 0, "gauss-newton")
    one, other = (look.at(state, w, w, 1, "gauss-newton") for look in (seasoned, fresh))
    assert one.d.tolist() == other.d.tolist()
    assert seasoned.forward_mode == fresh.forward_mode


def test_a_hessian_that_is_not_positive_makes_way_for_its_positive_part():
    data = two_groups()
    trainer = task(normed).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=5)
    w = np.array([0.5, 0.5])
    plain = Hypergradient(trainer, forest(data), Weighting(product="hessian", damping=0.0), 0).at(
        state, w, w, 0, "hessian"
    )
    assert "not positive" in plain.solved.failed
    auto = Weighting(damping=0.0, product="auto")
    other = Hypergradient(trainer, forest(data), auto, 0).at(state, w, w, 0, "hessian")
    assert other.product == "gauss-newton"
    assert not other.solved.failed


def test_a_solve_that_fails_is_told_and_moves_nothing():
    _, at_ = trained(two_groups(), Weighting(alpha=50, solver="series", scale=1e-6))
    assert at_.w.tolist() == [0.5, 0.5]
    assert len(at_.history) == 3
    assert all("no limit" in row["skipped"] and row["d"] is None for row in at_.history)


def test_a_training_that_diverges_is_an_error():
    with pytest.raises(TaskError, match=r"the losses must be finite, but the training diverged with lr=1000"):
        trained(two_groups(), Weighting(alpha=20), model=normed, lr=1000.0, momentum=0.99)


# ---- the samples


def test_samples_are_drawn_by_weight_and_every_group_goes_on_where_it_was():
    rows = [np.arange(5), np.arange(5, 25)]
    first = mixed(rows, (0, 0), np.array([10, 10]), 0, 0, seed=3)(0, 20)[0]
    assert sorted(first[first < 5]) == sorted([*range(5), *range(5)])
    second = mixed(rows, (10, 10), np.array([2, 10]), 100, 1, seed=3)(100, 12)[0]
    assert sorted(np.concatenate([first[first >= 5], second[second >= 5]])) == list(range(5, 25))
    assert first.tolist() != sorted(first)


def test_without_batches_the_order_is_that_of_former_runs():
    rows = [np.arange(3), np.arange(3, 9)]
    which, where = mixed(rows, (2, 5), np.array([4, 4]), 0, 1, seed=7)(0, 8)
    assert which.tolist() == [0, 1, 6, 4, 2, 8, 5, 1]
    assert (where >> 32).tolist() == [1, 1, 1, 0, 1, 1, 1, 0]


def in_batches(sizes, each, batches, seed, drawn=None):
    """The samples of each batch, for groups of some sizes."""
    ends = np.cumsum([0, *sizes])
    rows = [np.arange(low, high) for low, high in itertools.pairwise(ends)]
    each = np.array(each)
    drawn = begun(np.array(drawn or [0] * len(sizes)), each, np.array(sizes), batches)
    which, where = mixed(rows, drawn, each, 0, 4, seed, batches)(0, int(each.sum()))
    plain = mixed(rows, drawn, each, 0, 4, seed)(0, int(each.sum()))
    assert sorted(zip(which, where, strict=True)) == sorted(zip(*plain, strict=True))  # the same, in another order
    return which.reshape(batches, -1)


def repeated(batches):
    """The samples that a batch holds twice."""
    return {
        int(name) for batch in batches for name, n in zip(*np.unique(batch, return_counts=True), strict=True) if n > 1
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sizes", "each", "batches", "drawn"),
    [
        ([30, 50], [40, 40], 10, [0, 0]),
        ([30, 50], [40, 40], 10, [17, 44]),  # an epoch ends within the round
        ([8, 100], [40, 40], 5, [0, 0]),  # every batch has the whole group
        ([8, 100], [40, 40], 5, [3, 70]),
        ([8, 100, 9], [4, 8, 4], 1, [6, 96, 9]),  # one batch, in which an epoch would end
        ([5, 7], [60, 84], 12, [0, 0]),  # every batch has all samples
        ([200], [64], 4, [150]),
        ([9, 11, 40], [0, 20, 100], 6, [5, 5, 5]),
    ],
)
def test_no_batch_holds_a_sample_twice(sizes, each, batches, drawn, seed):
    assert repeated(in_batches(sizes, each, batches, seed, drawn)) == set()


def test_only_the_samples_of_a_group_that_is_too_small_are_in_a_batch_twice():
    for seed in range(5):
        found = repeated(in_batches([4, 60], [40, 40], 5, seed))
        assert found
        assert found <= set(range(4))


def test_samples_that_come_often_meet_others_each_time():
    found = in_batches([20, 20], [100, 100], 20, seed=0)  # 10 of 40 samples in each
    assert len({tuple(sorted(batch)) for batch in found}) == 20
    steps = [[i for i, batch in enumerate(found) if name in batch] for name in range(40)]
    assert {len(each) for each in steps} == {5}
    wide = np.mean([max(each) - min(each) for each in steps])
    assert wide == pytest.approx(20 * 4 / 6, abs=2)  # as five of twenty that are drawn by chance; in a row it is 4


@pytest.mark.parametrize("sizes", [(20, 40), (33, 100), (5, 90)])
def test_a_contrastive_training_s_batches_hold_no_sample_twice(sizes, monkeypatch):
    trainer = Contrastive(model="cnn", options={"width": 4}, steps=13, batch_size=10, device="cpu", lr=0.01).prepare(
        two_groups(sizes=sizes)
    )
    seen = {"train": [], "look": []}
    augmented = trainer.augmented

    def watched(policy, which, where, seed):
        kind = "train" if seed == 0 else "look"
        seen[kind] += which.reshape(-1, 10).tolist() if kind == "train" else which.reshape(-1, 4).tolist()
        return augmented(policy, which, where, seed)

    monkeypatch.setattr(trainer, "augmented", watched)
    training = WeightedTraining(trainer, forest(trainer.data), Weighting(alpha=3, eta=0.1, batch=4), 0)
    training.run(range(training.rounds))
    assert len(seen["train"]) == 13
    assert len(seen["look"]) == 2 + 4 * 2 * 2  # inner and outer, two groups each; before, one to try forward mode
    for batch in [*seen["train"], *seen["look"]]:
        assert len(set(batch)) == len(batch)


def test_an_encoder_that_is_trained_without_labels_sees_the_unlabelled_samples_of_its_groups():
    data = two_groups().with_labels(40, seed=0)
    for samples, split in (("train", ("train", "unlabelled")), ("all", (None,))):
        ready = Contrastive(model="cnn", steps=2, samples=samples, device="cpu").prepare(data)
        training = WeightedTraining(ready, forest(data), Weighting(), 0)
        for rows, group in zip(training.rows, "ab", strict=True):
            assert sorted(rows) == sorted(np.concatenate([data.indices(part, group) for part in split]))
        assert training.counts.sum() == len(ready.rows)


def test_each_group_s_samples_go_through_its_own_tree():
    data = two_groups()
    trainer = task().prepare(data)
    inverted = at.Forest({"a": (at.Tree(), 0.5), "b": (at.Tree().with_node(1, Invert(1.0), p=1.0), 0.5)})
    look = Hypergradient(trainer, inverted, Weighting(batch=4), 0)
    pictures_, which = look._inner_batch(0)
    expected = trainer.batch(which)
    assert torch.equal(pictures_[:4], expected[:4])
    assert torch.equal(pictures_[4:], 255 - expected[4:])


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    data = two_groups()
    one, two, other = (trained(data, Weighting(alpha=20), seed, steps=60)[1] for seed in (0, 0, 1))
    assert torch.equal(one.theta.tensors["weights"], two.theta.tensors["weights"])
    assert one.w.tolist() == two.w.tolist()
    assert other.w.tolist() != one.w.tolist()
