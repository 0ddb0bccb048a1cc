"""H x = v from products with H alone: conjugate gradients, and the paper's stochastic series."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
"""A matrix times a vector."""
DIVERGED = 10.0
"""A series has no limit where a term becomes this many times as long as the first."""


class Solution(NamedTuple):
    """A solution of H x = v, or why there is none."""

    x: Tensor
    residual: float
    """|H x - v| / |v|."""
    iterations: int
    failed: str = ""
    """Why x cannot be used; empty where it can."""


class CGOnDevice(NamedTuple):
    """The end of conjugate gradients, its numbers still on the device."""

    x: Tensor
    residual: Tensor
    iterations: Tensor
    curvature: Tensor
    """Of the matrix, in the last direction."""

    def solution(self) -> Solution:
        """The solution, with its numbers on the host."""
        residual, iterations, curvature = torch.stack([n.double() for n in self[1:]]).tolist()
        failed = "" if residual < float("inf") else "the residual is not finite"
        if not curvature > 0:  # also where it is not a number
            failed = "the Hessian is not positive" if curvature <= 0 else "the products are not finite"
        return Solution(self.x, residual, int(iterations), failed)


def solve_cg(
    product: Product, v: Tensor, *, damping: float, iterations: int, tolerance: float, stop_early: bool = True
) -> CGOnDevice:
    """Solve (H + damping) x = v by conjugate gradients, with at most `iterations` products.

    Without `stop_early`, as a recorded CUDA graph needs it, all products are computed.
    """
    x, residual, direction = torch.zeros_like(v), v, v
    first = square = v @ v
    active = first > 0
    done, curvature = torch.zeros_like(first), torch.ones_like(first)
    for _ in range(iterations):
        if stop_early and not active:
            break
        product_with_direction = product(direction) + damping * direction
        done = done + active
        curvature = torch.where(active, direction @ product_with_direction, curvature)
        active = active & (curvature > 0)
        step = square / curvature
        x = torch.where(active, x + step * direction, x)
        residual = torch.where(active, residual - step * product_with_direction, residual)
        before, square = square, torch.where(active, residual @ residual, square)
        active = active & (square > tolerance**2 * first)
        direction = residual + square / before * direction
    return CGOnDevice(x, torch.where(first > 0, square / first, first).sqrt(), done, curvature)


def series(
    product: Callable[[int, Tensor], Tensor], v: Tensor, *, damping: float = 0.0, terms: int = 10, scale: float = 10.0
) -> Solution:
    """The paper's recursion A_j v = v + (I - H_j) A_(j-1) v, on H / scale; H_j may come from other samples each time.

    It has a limit where scale is more than half of H's largest eigenvalue.
    """
    x, first = v.clone(), float(v.norm())
    if first == 0:
        return Solution(x, 0.0, 0)
    for j in range(terms):
        term = v - (product(j, x) + damping * x) / scale
        size = float(term.norm()) / first
        if not size < DIVERGED:
            return Solution(x / scale, size, j + 1, f"the series has no limit: scale={scale:g} is too small")
        x = x + term
    return Solution(x / scale, size if terms else 1.0, terms)
