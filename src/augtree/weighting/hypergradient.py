"""How an outer loss moves with the weight of each group, when the model always follows: the implicit gradient.

The model minimises the inner loss, sum_g w_g L_g(theta). By the implicit function theorem its weights move with w_i
by -H^-1 grad L_i, where H is the Hessian of the inner loss; so an outer loss with gradient v moves by

    d_i = -v^T H^-1 grad L_i.

s = H^-1 v is solved for once, by conjugate gradients or by a series, from products with H alone; H is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
"""A symmetric matrix times a vector."""
GROWN = 10.0
"""A series whose terms become so many times as long as the first has no limit."""


class Inner:
    """The weighted inner loss around the present weights of a model; every product comes from one graph."""

    def __init__(self, losses: Tensor, w: Tensor, parameters: Sequence[Tensor], decay: float = 0.0) -> None:
        self.losses, self.parameters, self.decay = losses, list(parameters), decay
        # The gradient is linear in w: its derivative by w, pulled back from s, has s^T grad L_i for each group.
        self.w = w.detach().clone().requires_grad_()
        self.gradient = pulled(self.w @ losses, self.parameters, create_graph=True)

    def hessian(self, v: Tensor) -> Tensor:
        """H v, weight decay included."""
        return pulled(self.gradient, self.parameters, v) + self.decay * v

    def slopes(self, s: Tensor) -> Tensor:
        """s^T grad L_i for each group."""
        return pulled(self.gradient, [self.w], s)

    def sizes(self) -> Tensor:
        """The length of each grad L_i."""
        return torch.stack([pulled(loss, self.parameters).norm() for loss in self.losses])


class GaussNewton:
    """J^T B J: H without the curvature of the model itself; never negative, so that it can always be solved.

    `outputs` are the model's; `bend` is the Hessian B of the inner loss by the outputs, times a matrix like these.
    """

    def __init__(self, outputs: Tensor, bend: Product, parameters: Sequence[Tensor], decay: float = 0.0) -> None:
        self.outputs, self.bend, self.parameters, self.decay = outputs, bend, list(parameters), decay
        self.dummy = torch.zeros_like(outputs, requires_grad=True)
        self.back = pulled(outputs, self.parameters, self.dummy, create_graph=True)  # J^T dummy: linear in the dummy

    def __call__(self, v: Tensor) -> Tensor:
        """The product."""
        pushed = pulled(self.back, [self.dummy], v).view_as(self.outputs)  # J v
        return pulled(self.outputs, self.parameters, self.bend(pushed)) + self.decay * v


def pulled(
    value: Tensor, inputs: Sequence[Tensor], by: Tensor | None = None, *, create_graph: bool = False
) -> Tensor:
    """The derivative of a value (times a vector) by some tensors, as one vector; the graph stays."""
    found = torch.autograd.grad(
        value, inputs, by, retain_graph=True, create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
    return flat(found)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


class Solved(NamedTuple):
    """An attempt at H x = v."""

    x: Tensor
    residual: float
    """|H x - v| / |v|."""
    iterations: int
    failed: str = ""
    """Why x is of no use; empty where it is."""


def conjugate_gradients(
    product: Product, v: Tensor, *, damping: float = 0.0, iterations: int = 10, tolerance: float = 1e-2
) -> Solved:
    """(H + damping) x = v, as far as that many products go; a direction in which H is not positive is a failure."""
    x, rest = torch.zeros_like(v), v.clone()
    direction, square, first = rest.clone(), float(rest @ rest), float(v @ v)
    if first == 0:
        return Solved(x, 0.0, 0)
    done = 0
    for done in range(1, iterations + 1):
        moved = product(direction) + damping * direction
        curvature = float(direction @ moved)
        if not curvature > 0:  # also where it is not a number
            why = "the Hessian is not positive" if curvature <= 0 else "the products are not finite"
            return Solved(x, (square / first) ** 0.5, done, why)
        step = square / curvature
        x.add_(direction, alpha=step)
        rest.sub_(moved, alpha=step)
        before, square = square, float(rest @ rest)
        if square <= tolerance**2 * first:
            break
        direction.mul_(square / before).add_(rest)
    residual = (square / first) ** 0.5
    return Solved(x, residual, done, "" if residual < float("inf") else "the residual is not finite")


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
        if not size < GROWN:
            return Solved(x / scale, size, j + 1, f"the series has no limit: scale={scale:g} is too small")
        x = x + term
    return Solved(x / scale, size if terms else 1.0, terms)
