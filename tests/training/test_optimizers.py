import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from augtree.errors import TaskError
from augtree.training.optimizers import ALIGNED, AdamW, ParameterVector, Sgd
from support.blobs import net

RATES = (0.1, 0.05, 0.2, 0.01, 0.1, 0.03)
LAYOUTS = (torch.contiguous_format, torch.channels_last)


def batches(steps):
    draw = torch.Generator().manual_seed(1)
    for _ in range(steps):
        yield torch.randn(8, 3, 8, 8, generator=draw), torch.randint(2, (8,), generator=draw)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_the_same_steps_as_torch(kind, layout):
    mine = net().to(memory_format=layout)
    theirs = copy.deepcopy(mine)
    weights = ParameterVector(mine)
    if kind == "sgd":
        here = Sgd(weights, 0.9, 0.01)
        there = torch.optim.SGD(theirs.parameters(), lr=1, momentum=0.9, weight_decay=0.01, nesterov=True)
    else:
        here, there = AdamW(weights, 0.05), torch.optim.AdamW(theirs.parameters(), lr=1, weight_decay=0.05)
    # In two parts: the number of the step must go on where the first ended.
    scalars = [*here.scalars(RATES[:2], 0), *here.scalars(RATES[2:], 2)]
    for (x, y), rate, row in zip(batches(len(RATES)), RATES, scalars, strict=True):
        weights.grads.zero_()
        F.cross_entropy(mine(x), y).backward()
        there.param_groups[0]["lr"] = rate
        there.zero_grad()
        F.cross_entropy(theirs(x), y).backward()
        with torch.no_grad():
            here.update(weights, row)
        there.step()
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(next(mine.parameters()), next(net().parameters()))


def test_without_momentum_it_is_plain_descent():
    model = nn.Linear(1, 1, bias=False)
    weights = ParameterVector(model)
    weights.values[0], weights.grads[0] = 2.0, 3.0
    optimizer = Sgd(weights, 0.0, 0.0)
    optimizer.update(weights, optimizer.scalars([0.5], 0)[0])
    assert model.weight.item() == 0.5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_and_gradients_are_views(layout):
    model = net().to(memory_format=layout)
    before = copy.deepcopy(model)
    weights = ParameterVector(model)
    start = weights.values.data_ptr()
    for mine, was in zip(model.parameters(), before.parameters(), strict=True):
        assert torch.equal(mine, was)
        assert mine.stride() == was.stride() == mine.grad.stride()
        assert mine.untyped_storage().data_ptr() == start
        assert (mine.data_ptr() - start) % (4 * ALIGNED) == 0
    weights.values.fill_(2.0)
    weights.grads.fill_(3.0)
    assert all(bool((p == 2).all()) and bool((p.grad == 3).all()) for p in model.parameters())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_add_up_in_the_vector(layout):
    model = net().eval().to(memory_format=layout)
    other = copy.deepcopy(model)
    weights = ParameterVector(model)
    x, y = next(batches(1))
    for _ in range(2):
        F.cross_entropy(model(x), y).backward()
    (2 * F.cross_entropy(other(x), y)).backward()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.grad.untyped_storage().data_ptr() == weights.grads.data_ptr()
        torch.testing.assert_close(mine.grad, theirs.grad)
    total = sum(float(p.grad.abs().sum()) for p in other.parameters())
    assert float(weights.grads.abs().sum()) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("make", [lambda w: Sgd(w, 0.9, 0.1), lambda w: AdamW(w, 0.1)])
def test_what_fills_the_gaps_stays_zero(make):
    model = nn.Linear(3, 1)
    weights = ParameterVector(model)
    weights.grads[:3], weights.grads[ALIGNED] = 1.0, 1.0
    optimizer = make(weights)
    optimizer.update(weights, optimizer.scalars([0.1], 0)[0])
    used = torch.zeros(2 * ALIGNED, dtype=torch.bool)
    used[:3] = used[ALIGNED] = True
    assert torch.equal(weights.values != 0, used)


def test_frozen_weights_are_left_out():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    assert len(ParameterVector(model).values) == 2 * ALIGNED


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Flatten(), "must have weights to train"),
        (nn.Linear(1, 1).requires_grad_(False), "must have weights to train"),
        (nn.Linear(1, 1).double(), "must be float32, got torch.float64 in weight"),
    ],
)
def test_models_that_cannot_be_trained(model, words):
    with pytest.raises(TaskError, match=words):
        ParameterVector(model)
