"""SCALE: gradients reach probabilities and magnitudes, which change with the model."""

import numpy as np
import pytest
import torch

from augtree.baselines.differentiable import LIMITS, NAMES
from augtree.baselines.loop import Batch
from augtree.baselines.scale import Scale, entropy, relaxed_bernoulli, straight_through
from augtree.errors import ArgumentError
from augtree.keys import Key
from augtree.tasks.contrastive_losses import nt_xent
from support.contrastive import task as contrastive
from support.methods import grouped, task

OPS = len(NAMES)


def pictures(count=3, side=9):
    """Smooth ones, which a bilinear warp changes smoothly, away from the ends of the range."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(count, 3, 3, 3, generator=generator, dtype=torch.float64)
    return 80 + 90 * torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear", align_corners=True)


def differences(function, at, step=1e-5):
    """The gradient by central differences."""
    out = torch.zeros_like(at)
    for i in range(at.numel()):
        ends = [at.clone().flatten() for _ in range(2)]
        ends[0][i] += step
        ends[1][i] -= step
        out.view(-1)[i] = (function(ends[0].view_as(at)) - function(ends[1].view_as(at))) / (2 * step)
    return out


def test_the_gradient_of_magnitudes_is_that_of_finite_differences():
    """With the draws fixed, the gates are fixed too, and the loss is a smooth function of the magnitudes."""
    method, x = Scale(p=0.8), pictures()
    learned = method.start().double()
    learned[1] += torch.linspace(-1, 1, OPS)
    target, key = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).double(), Key.of(3, [4, 5, 6])

    def loss(magnitudes):
        out = method.augmented(x, torch.stack([learned[0], magnitudes]), key, 100.0)
        return ((out / 100 - target) ** 2).mean()

    magnitudes = learned[1].clone().requires_grad_()
    loss(magnitudes).backward()
    assert torch.allclose(magnitudes.grad, differences(loss, learned[1]), atol=1e-6)
    assert (magnitudes.grad != 0).all()  # of every operation


def test_the_gradient_of_probabilities_is_that_of_the_relaxed_draws():
    """For a loss that is linear in the gates, straight-through is exact: the relaxed loss has the same gradient."""
    logits = torch.tensor([-1.0, 0.2, 1.5, 0.0], dtype=torch.float64)
    draws = torch.rand(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    hard = logits.clone().requires_grad_()
    gates = straight_through(hard, draws, 0.5)
    (gates * weights).sum().backward()
    relaxed = differences(lambda at: (relaxed_bernoulli(at, draws, 0.5) * weights).sum(), logits)
    assert torch.allclose(hard.grad, relaxed, atol=1e-7)
    assert {*gates.detach().flatten().tolist()} == {0.0, 1.0}


def test_the_gradient_reaches_the_probability_of_every_operation():
    method, x = Scale(), pictures(8)
    learned = method.start().double().requires_grad_()
    (method.augmented(x, learned, Key.of(1, range(8)), 100.0).square().mean() / 100).backward()
    assert (learned.grad.abs() > 1e-6).all()
    assert learned.grad.isfinite().all()


def test_gates_are_open_with_their_probability():
    draws = torch.from_numpy(Key.of(0, range(4000)).uniform())[:, None]
    p = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    found = straight_through(p.logit(), draws, 0.5).mean(0)
    assert torch.allclose(found, p, atol=0.02)


def test_the_entropy_is_that_of_a_bernoulli_and_of_a_uniform_draw():
    p, m = 0.3, 0.6
    learned = torch.tensor([[p], [m]], dtype=torch.float64).logit()
    by_hand = -p * np.log(p) - (1 - p) * np.log(1 - p) + p * np.log(m)
    assert entropy(learned).item() == pytest.approx(by_hand)


def test_values_lie_within_their_magnitudes_and_closed_gates_change_nothing(monkeypatch):
    seen = []
    monkeypatch.setattr("augtree.baselines.scale.compose", lambda x, values, fill: seen.append(values) or x)
    method = Scale(p=0.5, magnitude=0.4)
    method.augmented(torch.zeros(500, 3, 4, 4), method.start(), Key.of(0, range(500)), 0)
    shares = seen[0] / torch.tensor(LIMITS)
    assert (shares.abs() <= 0.4 + 1e-6).all()
    assert 0.45 < (shares == 0).float().mean() < 0.55
    used = shares[shares != 0]
    assert abs(used.mean()) < 0.01
    assert used.std() == pytest.approx(0.4 / 3**0.5, abs=0.01)  # uniform


def test_probabilities_and_magnitudes_are_learned_with_the_model():
    data = grouped()
    _, row = Scale().fit(task(steps=30).prepare(data), 0)
    assert [*row] == [f"{part} {name}" for part in "pm" for name in NAMES]
    assert all(0 < value < 1 for value in row.values())
    assert all(abs(value - 0.5) > 1e-4 for value in row.values())
    _, still = Scale(rate=0.0).fit(task().prepare(data), 0)
    assert set(still.values()) == {0.5}


def test_the_entropy_keeps_what_the_loss_alone_would_shrink():
    """An augmentation that does harm is weaker where nothing holds it up."""
    asked = task(steps=60)
    rows = [Scale(strength=strength, rate=0.05).fit(asked.prepare(grouped()), 0)[1] for strength in (0.0, 1.0)]
    weak, strong = (np.mean([row[f"m {name}"] for name in NAMES]) for row in rows)
    assert strong > weak + 0.1


# ---- contrastive training


def contrastive_batch(views="both"):
    """A trainer, and a batch of smooth pictures, both views of each."""
    trainer = contrastive(options={"width": 2}, views=views).prepare(grouped())
    x = pictures(4)
    return trainer, Batch(torch.stack([x, x], 1), torch.zeros(4).long(), np.arange(4), np.arange(4), 3, 1)


def contrastive_loss(method, trainer, batch, learned):
    """NT-Xent of both views after a smooth map, in double precision."""
    made = method.inputs(trainer, batch, learned).flatten(2)
    weights = torch.randn(made.shape[2], 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    one, two = torch.tanh((made - 128) @ weights / 300).unbind(1)
    return nt_xent(one, two, 0.5).mean()


def test_each_view_has_a_composition_of_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr("augtree.baselines.scale.compose", lambda x, values, fill: seen.append(values) or x)
    method = Scale(p=0.99)
    for views, drawn in (("both", 2), ("one", 1)):
        seen.clear()
        trainer, batch = contrastive_batch(views)
        made = method.inputs(trainer, batch, method.start().double())
        assert torch.equal(made, batch.inputs)  # which `compose` here leaves as they are
        assert len(seen) == drawn
    both = seen[0]
    trainer, batch = contrastive_batch()
    seen.clear()
    method.inputs(trainer, batch, method.start().double())
    assert not torch.isclose(seen[0], seen[1]).any(1).all()
    assert torch.equal(seen[1], both)  # the second is changed where the task leaves the first


@pytest.mark.parametrize("views", ["both", "one"])
def test_the_contrastive_loss_has_the_gradient_of_finite_differences(views):
    method, (trainer, batch) = Scale(p=0.8), contrastive_batch(views)
    learned = method.start().double()
    learned[1] += torch.linspace(-1, 1, OPS)
    loss = lambda m: contrastive_loss(method, trainer, batch, torch.stack([learned[0], m]))  # noqa: E731
    magnitudes = learned[1].clone().requires_grad_()
    loss(magnitudes).backward()
    assert torch.allclose(magnitudes.grad, differences(loss, learned[1]), atol=1e-7)
    assert (magnitudes.grad.abs() > 1e-5).all()


def test_the_contrastive_loss_shrinks_what_the_entropy_does_not_hold():
    data, asked = grouped(), contrastive(options={"width": 2}, steps=30)
    rows = [Scale(strength=strength, rate=0.05).fit(asked.prepare(data), 0)[1] for strength in (0.0, 5.0)]
    weak, strong = (np.mean([row[f"m {name}"] for name in NAMES]) for row in rows)
    assert weak < 0.5 < strong


@pytest.mark.parametrize("options", [{"strength": -1}, {"rate": 11}, {"temperature": 0}, {"p": 1}, {"magnitude": 0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ArgumentError, match=f"{next(iter(options))} must be a number in"):
        Scale(**options)
