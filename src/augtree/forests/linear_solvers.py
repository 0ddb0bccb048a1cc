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


class Solved(NamedTuple):
    """An attempt at H x = v."""

    x: Tensor
    residual: float
    """|H x - v| / |v|."""
    iterations: int
    failed: str = ""
    """Why x cannot be used; empty where it can."""


class Attempt(NamedTuple):
    """A solve whose numbers are still on the device."""

    x: Tensor
    residual: Tensor
    iterations: Tensor
    curvature: Tensor
    """Of the matrix, in the last direction."""

    def solved(self) -> Solved:
        residual, iterations, curvature = torch.stack([n.double() for n in self[1:]]).tolist()
        failed = "" if residual < float("inf") else "the residual is not finite"
        if not curvature > 0:  # also where it is not a number
            failed = "the Hessian is not positive" if curvature <= 0 else "the products are not finite"
        return Solved(self.x, residual, int(iterations), failed)


def attempt(
    product: Product, v: Tensor, *, damping: float, iterations: int, tolerance: float, stop_early: bool = True
) -> Attempt:
    """Solve (H + damping) x = v by conjugate gradients, with at most `iterations` products.

    Without `stop_early`, as a recorded CUDA graph needs it, all products are computed.
    """
    x, rest, direction = torch.zeros_like(v), v, v
    first = square = v @ v
    going = first > 0
    done, curvature = torch.zeros_like(first), torch.ones_like(first)
    for _ in range(iterations):
        if stop_early and not going:
            break
        moved = product(direction) + damping * direction
        done = done + going
        curvature = torch.where(going, direction @ moved, curvature)
        going = going & (curvature > 0)
        step = square / curvature
        x, rest = torch.where(going, x + step * direction, x), torch.where(going, rest - step * moved, rest)
        before, square = square, torch.where(going, rest @ rest, square)
        going = going & (square > tolerance**2 * first)
        direction = rest + square / before * direction
    return Attempt(x, torch.where(first > 0, square / first, first).sqrt(), done, curvature)


def series(
    product: Callable[[int, Tensor], Tensor], v: Tensor, *, damping: float = 0.0, terms: int = 10, scale: float = 10.0
) -> Solved:
    """The paper's recursion A_j v = v + (I - H_j) A_(j-1) v, on H / scale; H_j may come from other samples each time.

    It has a limit where scale is more than half of H's largest eigenvalue.
    """
    x, first = v.clone(), float(v.norm())
    if first == 0:
        return Solved(x, 0.0, 0)
    for j in range(terms):
        term = v - (product(j, x) + damping * x) / scale
        size = float(term.norm()) / first
        if not size < DIVERGED:
            return Solved(x / scale, size, j + 1, f"the series has no limit: scale={scale:g} is too small")
        x = x + term
    return Solved(x / scale, size if terms else 1.0, terms)
