"""Estimates of the hypergradient against dense derivatives, and that they leave no trace."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import augtree as at
from augtree.forests import Weighting
from augtree.forests.hypergradient import Hypergradient
from augtree.training.sampling import stream
from augtree.transforms import Invert
from support.two_groups import forest, normed, task, two_groups


def test_d_of_a_model_against_dense_matrices():
    """The whole of `Hypergradient` against derivatives that torch.func takes of one long vector."""
    data = two_groups(sizes=(24, 24))
    trainer = task(weight_decay=0.01).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=20)
    options = Weighting(batch=24, damping=0.05, iterations=200, tolerance=1e-6, product="hessian", d="raw")
    w, outer = np.array([0.3, 0.7]), np.array([0.4, 0.6])
    look = Hypergradient(trainer, forest(data), options, 0).estimate(state, w, outer, 0, "hessian")

    theta = torch.cat([p.detach().reshape(-1) for p in trainer.module(state).parameters()]).double()

    def losses(vector, rows):
        x = trainer.normalised(trainer.samples_on_device(rows)).double().flatten(1)
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
    cosine = Hypergradient(trainer, forest(data), replace(options, d="cosine"), 0).estimate(
        state, w, outer, 0, "hessian"
    )
    expected = -(slopes @ s) / (s.norm() * slopes.norm(dim=1))
    assert cosine.d == pytest.approx(expected.numpy(), rel=2e-3, abs=1e-5)


def test_a_look_leaves_the_state_and_its_buffers_as_they_are():
    data = two_groups()
    trainer = task(normed).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=5)
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    on = trainer.train(state, at.Tree(), [0.05] * 3, 0)
    look = Hypergradient(trainer, forest(data), Weighting(), 0)
    first = look.estimate(state, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0, "gauss-newton")
    assert all(torch.equal(before[name], tensor) for name, tensor in state.tensors.items())
    again = trainer.train(state, at.Tree(), [0.05] * 3, 0)
    assert all(torch.equal(on.tensors[name], tensor) for name, tensor in again.tensors.items())
    assert (
        first.d.tolist()
        == look.estimate(state, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0, "gauss-newton").d.tolist()
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
    seasoned.estimate(state, w, w, 0, "gauss-newton")
    one, other = (look.estimate(state, w, w, 1, "gauss-newton") for look in (seasoned, fresh))
    assert one.d.tolist() == other.d.tolist()
    assert seasoned.forward_mode == fresh.forward_mode


def test_a_hessian_that_is_not_positive_makes_way_for_its_positive_part():
    data = two_groups()
    trainer = task(normed).prepare(data)
    state = trainer.fit(at.Tree(), 0, steps=5)
    w = np.array([0.5, 0.5])
    plain = Hypergradient(trainer, forest(data), Weighting(product="hessian", damping=0.0), 0).estimate(
        state, w, w, 0, "hessian"
    )
    assert "not positive" in plain.solution.failed
    auto = Weighting(damping=0.0, product="auto")
    other = Hypergradient(trainer, forest(data), auto, 0).estimate(state, w, w, 0, "hessian")
    assert other.product == "gauss-newton"
    assert not other.solution.failed


def test_each_group_s_samples_go_through_its_own_tree():
    data = two_groups()
    trainer = task().prepare(data)
    inverted = at.Forest({"a": (at.Tree(), 0.5), "b": (at.Tree().with_node(1, Invert(1.0), p=1.0), 0.5)})
    look = Hypergradient(trainer, inverted, Weighting(batch=4), 0)
    pictures_, which = look._inner_batch(0)
    expected = trainer.samples_on_device(which)
    assert torch.equal(pictures_[:4], expected[:4])
    assert torch.equal(pictures_[4:], 255 - expected[4:])
