"""Conjugate gradients and the series against dense solves."""

import numpy as np
import pytest
import torch

from augtree.forests.linear_solvers import series, solve_cg
from support.logistic import Logistic, inner_of, weights

DOUBLE = torch.float64


def test_the_series_converges_to_the_same():
    problem, w = Logistic(1), weights(1)
    _, inner = inner_of(problem, w)
    v = torch.arange(1.0, 5.0, dtype=DOUBLE)
    exact = solve_cg(inner.hessian, v, damping=0.0, iterations=50, tolerance=1e-12).x
    errors = []
    for terms in (5, 50, 500):
        found = series(lambda _, x: inner.hessian(x), v, terms=terms, scale=2.0)
        errors.append(float((found.x - exact).norm() / exact.norm()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6


def test_a_series_of_other_samples_each_time_is_right_on_average():
    matrices = [torch.diag(torch.tensor(row, dtype=DOUBLE)) for row in ([1, 2, 3], [3, 2, 1], [2, 1, 3], [2, 3, 1])]
    mean = torch.stack(matrices).mean(0)
    v = torch.ones(3, dtype=DOUBLE)
    rng = np.random.default_rng(0)
    found = [series(lambda *a: matrices[rng.integers(4)] @ a[1], v, terms=60, scale=10.0).x for _ in range(400)]
    assert torch.allclose(torch.stack(found).mean(0), torch.linalg.solve(mean, v), atol=0.02)


def test_a_series_without_a_limit_is_told():
    matrix = torch.diag(torch.tensor([1.0, 50.0]))
    found = series(lambda _, x: matrix @ x, torch.ones(2), terms=50, scale=10.0)
    assert "no limit" in found.failed
    assert torch.isfinite(found.x).all()


def test_a_hessian_that_is_not_positive_is_told():
    matrix = torch.diag(torch.tensor([1.0, -2.0]))
    how = {"damping": 0.0, "iterations": 10, "tolerance": 1e-2}
    assert "not positive" in solve_cg(lambda x: matrix @ x, torch.ones(2), **how).solution().failed
    assert not solve_cg(lambda x: matrix @ x, torch.ones(2), **{**how, "damping": 3.0}).solution().failed
    assert "not finite" in solve_cg(lambda x: x * float("nan"), torch.ones(2), **how).solution().failed
    nothing = solve_cg(lambda x: x, torch.zeros(2), **how).solution()
    assert nothing.x.tolist() == [0, 0]
    assert nothing.residual == 0


@pytest.mark.parametrize("matrix", [[1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [1.0, 1.0, 1.0], [float("nan"), 1.0, 1.0]])
def test_a_solve_that_does_not_stop_early_gives_the_same(matrix):
    """A recorded solve goes on where another has ended, and changes nothing."""
    product, v = (lambda x: torch.tensor(matrix) * x), torch.tensor([1.0, 2.0, 3.0])
    asked = {"damping": 0.1, "iterations": 6, "tolerance": 1e-3}
    one, other = (solve_cg(product, v, stop_early=early, **asked).solution() for early in (True, False))
    assert one.x.tolist() == other.x.tolist()
    assert one[1:] == other[1:]
    assert bool(one.failed) == (min(matrix) < 0 or matrix[0] != matrix[0])


def test_a_solve_ends_at_its_tolerance_and_at_the_latest_after_its_iterations():
    matrix, v = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)), torch.ones(3, dtype=DOUBLE)
    calls = []

    def product(x):
        calls.append(x)
        return matrix @ x

    exact = solve_cg(product, v, damping=0.0, iterations=50, tolerance=1e-9).solution()
    assert exact.iterations == len(calls) == 3  # as many as there are eigenvalues
    assert exact.x.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    rough = solve_cg(product, v, damping=0.0, iterations=50, tolerance=0.9).solution()
    assert rough.iterations == 1
    short = solve_cg(product, v, damping=0.0, iterations=2, tolerance=1e-9).solution()
    assert short.iterations == 2
    assert not short.failed
    for found in (exact, rough, short):
        assert found.residual == pytest.approx(float((matrix @ found.x - v).norm() / v.norm()), abs=1e-9)


def test_a_solve_on_the_device_gives_the_same_numbers():
    how = {"damping": 0.0, "iterations": 4, "tolerance": 0.1}
    found = solve_cg(lambda x: 2 * x, torch.ones(2), **how)
    assert (found.residual.ndim, found.iterations.ndim, float(found.curvature)) == (0, 0, 4.0)
    assert found.x.tolist() == found.solution().x.tolist() == [0.5, 0.5]
    assert found.solution()[1:] == (0.0, 1, "")


def test_a_series_of_nothing_and_without_terms():
    nothing = series(lambda _, x: x, torch.zeros(2), terms=5)
    assert (nothing.x.tolist(), nothing.residual, nothing.iterations) == ([0, 0], 0.0, 0)
    first = series(lambda _, x: x, torch.ones(2), terms=0, scale=4.0)
    assert (first.x.tolist(), first.residual, first.iterations) == ([0.25, 0.25], 1.0, 0)


def test_the_damping_of_a_series_is_that_of_the_exact_solve():
    matrix, v = torch.diag(torch.tensor([1.0, 4.0], dtype=DOUBLE)), torch.ones(2, dtype=DOUBLE)
    found = series(lambda _, x: matrix @ x, v, damping=2.0, terms=200, scale=5.0)
    assert found.x.tolist() == pytest.approx([1 / 3, 1 / 6], abs=1e-6)
    assert (found.iterations, found.failed) == (200, "")
