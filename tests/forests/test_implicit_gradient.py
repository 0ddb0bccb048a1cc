"""The implicit gradient against finite differences, dense solves and worked cases."""

from itertools import product

import pytest
import torch
from torch import nn

from augtree.forests.implicit_gradient import (
    GaussNewton,
    InnerLoss,
    backward_jvp,
    forward_jvp,
    gradient_norms,
    has_forward_mode,
)
from augtree.forests.linear_solvers import solve_cg
from support.logistic import Logistic, inner_of, weights

torch.set_default_dtype(torch.float32)
DOUBLE = torch.float64


@pytest.mark.parametrize("seed", range(24))
def test_d_is_the_derivative_of_the_solved_problem(seed):
    problem, w = Logistic(seed), weights(seed)
    theta, inner = inner_of(problem, w)
    (v,) = torch.autograd.grad(problem.outer(theta), theta)
    d = -inner.dot_gradients(solve_cg(inner.hessian, v, damping=0.0, iterations=50, tolerance=1e-10).x)
    for i in range(len(w)):
        step = torch.zeros_like(w)
        step[i] = 1e-5
        up, down = (problem.outer(problem.solve(w + sign * step)) for sign in (1, -1))
        expected = float(up - down) / 2e-5
        assert abs(float(d[i]) - expected) < 1e-3 * abs(expected) + 1e-9


def test_products_and_cg_against_a_dense_matrix():
    for seed in range(5):
        problem, w = Logistic(seed, features=7), weights(seed)
        theta, inner = inner_of(problem, w)
        dense = problem.hessian(theta.detach(), w)
        columns = [inner.hessian(unit) for unit in torch.eye(7, dtype=DOUBLE)]
        assert torch.allclose(torch.stack(columns), dense, atol=1e-12)
        v = torch.randn(7, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
        found = solve_cg(inner.hessian, v, damping=0.3, iterations=40, tolerance=1e-9).solution()
        expected = torch.linalg.solve(dense + 0.3 * torch.eye(7, dtype=DOUBLE), v)
        assert float((found.x - expected).norm() / expected.norm()) < 1e-5
        assert found.residual < 1e-9
        assert not found.failed


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 4, 3)).double()


def test_gauss_newton_is_the_hessian_of_the_linearised_model():
    """Against J^T B J from whole Jacobians."""
    model = network().train()
    x = torch.randn(6, 1, 4, 4, dtype=DOUBLE)
    parameters = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]
    buffers = {name: b.clone() for name, b in model.named_buffers()}

    def outputs(vector):
        parts, start = {}, 0
        for name, p in zip(names, parameters, strict=True):
            parts[name] = vector[start : start + p.numel()].view_as(p)
            start += p.numel()
        return torch.func.functional_call(model, {**parts, **{k: b.clone() for k, b in buffers.items()}}, x)

    theta = torch.cat([p.detach().flatten() for p in parameters])
    jacobian = torch.func.jacrev(outputs)(theta).reshape(18, -1)
    logits = model(x)
    p = torch.softmax(logits.detach(), 1)

    def bend(pushed):
        return (p * pushed - p * (p * pushed).sum(1, keepdim=True)) / 6

    blocks = [torch.diag(row) - torch.outer(row, row) for row in p]
    dense = jacobian.T @ (torch.block_diag(*blocks) / 6) @ jacobian
    ways = [backward_jvp(logits, parameters), forward_jvp(lambda forward: forward(x), model)]
    for seed, way in product(range(3), ways):
        found = GaussNewton(logits, bend, way, parameters, decay=0.5)
        v = torch.randn(len(theta), dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
        assert torch.allclose(found(v), dense @ v + 0.5 * v, atol=1e-10)
        assert float(v @ found(v)) > 0
        each = nn.functional.cross_entropy(logits, torch.arange(6) % 3, reduction="none")
        losses = torch.stack([each[:3].mean(), each[3:].mean()])
        inner = InnerLoss(losses, torch.ones(2, dtype=DOUBLE), parameters)
        assert torch.allclose(found.dot_gradients(losses, v), inner.dot_gradients(v), atol=1e-10)


def test_what_has_no_forward_mode_or_draws_at_random_is_known():
    class Backwards(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    class Odd(nn.Linear):
        def forward(self, x):
            return Backwards.apply(super().forward(x))

    class Stopped(nn.Module):
        """Divides by a scale that no gradient goes through."""

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x):
            y = self.linear(x)
            with torch.no_grad():
                scale = y.std()
            return y / scale

    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    models = {
        "plain": nn.Linear(4, 3),
        "normed": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)),
        "dropout": nn.Sequential(nn.Linear(4, 3), nn.Dropout()),
        "odd": Odd(4, 3),
        "stopped": Stopped(),
    }
    found = {name: has_forward_mode(lambda forward: forward(x), model.train()) for name, model in models.items()}
    assert found == {"plain": True, "normed": True, "dropout": False, "odd": False, "stopped": False}


def test_hessian_products_through_batch_norm_in_training_mode():
    """Against differences of the gradient."""
    model = network().train()
    x, y = torch.randn(8, 1, 4, 4, dtype=DOUBLE), torch.arange(8) % 3
    parameters = list(model.parameters())
    w = torch.tensor([0.3, 0.7], dtype=DOUBLE)

    def gradient():
        each = nn.functional.cross_entropy(model(x), y, reduction="none")
        return InnerLoss(torch.stack([each[:4].mean(), each[4:].mean()]), w, parameters)

    inner = gradient()
    v = torch.randn(len(inner.gradient), dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
    found, slopes, sizes = inner.hessian(v), inner.dot_gradients(v), gradient_norms(inner.losses, parameters)

    def moved(step):
        start = 0
        with torch.no_grad():
            for p in parameters:
                p.add_(v[start : start + p.numel()].view_as(p), alpha=step)
                start += p.numel()
        at = gradient()
        return at.gradient.detach(), at.losses.detach()

    (up, up_losses), (down, down_losses) = moved(1e-5), moved(-2e-5)
    assert torch.allclose(found, (up - down) / 2e-5, atol=1e-6)
    assert torch.allclose(slopes, (up_losses - down_losses) / 2e-5, atol=1e-7)
    moved(1e-5)
    each = nn.functional.cross_entropy(model(x), y, reduction="none")
    expected = [
        torch.cat([g.flatten() for g in torch.autograd.grad(part, parameters, retain_graph=True)]).norm()
        for part in (each[:4].mean(), each[4:].mean())
    ]
    assert torch.allclose(sizes, torch.stack(expected), atol=1e-8)
