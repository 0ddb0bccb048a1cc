"""How an outer loss moves with the weight of each group, when the model always follows: the implicit gradient.

The model minimises the inner loss, sum_g w_g L_g(theta). By the implicit function theorem its weights move with w_i
by -H^-1 grad L_i, where H is the Hessian of the inner loss; so an outer loss with gradient v moves by

    d_i = -v^T H^-1 grad L_i.

s = H^-1 v is solved for once, by conjugate gradients or by a series, from products with H alone; H is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

Product = Callable[[Tensor], Tensor]
"""A matrix times a vector."""
OutputsOf = Callable[[Callable[[Any], Any]], Tensor]
"""From a model's forward function to its outputs of some batch."""
GROWN = 10.0
"""A series whose terms become so many times as long as the first has no limit."""
SAME = 0.02
"""Outputs that differ by less, of the largest, are the same: a GPU adds up in another order each time."""
CHECKS, CLOSE = 4, 0.05
"""How often, and how closely, what goes forwards and what goes backwards must agree."""


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


class GaussNewton:
    """J^T B J: H without the curvature of the model itself; never negative, so that it can always be solved.

    `outputs` are the model's; `bend` is the Hessian B of the inner loss by the outputs, times a matrix like these;
    `pushed` gives J v, how the outputs move with the weights.
    """

    def __init__(
        self, outputs: Tensor, bend: Product, pushed: Product, parameters: Sequence[Tensor], decay: float = 0.0
    ) -> None:
        self.outputs, self.bend, self.pushed = outputs, bend, pushed
        self.parameters, self.decay = list(parameters), decay

    def __call__(self, v: Tensor) -> Tensor:
        """The product."""
        return pulled(self.outputs, self.parameters, self.bend(self.pushed(v))) + self.decay * v

    def slopes(self, losses: Tensor, s: Tensor) -> Tensor:
        """s^T grad L_i for each group, where the outputs' rows are the groups' one after another, as many of each."""
        by_output = torch.autograd.grad(losses.sum(), self.outputs, retain_graph=True)[0]
        return (by_output * self.pushed(s)).view(len(losses), -1).sum(1)


def pushed_forward(outputs_of: OutputsOf, model: nn.Module) -> Product:
    """J v in forward mode: the outputs once more, from weights that carry a direction. Fast, and needs no graph."""
    named = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def pushed(v: Tensor) -> Tensor:
        parts = zip(named.items(), v.split([p.numel() for p in named.values()]), strict=True)
        with torch.no_grad(), forward_ad.dual_level():
            moving = {name: forward_ad.make_dual(p, part.view_as(p)) for (name, p), part in parts}
            primal, tangent = forward_ad.unpack_dual(
                outputs_of(lambda batch: functional_call(model, moving, (batch,)))
            )
            return torch.zeros_like(primal) if tangent is None else tangent

    return pushed


def pushed_backward(outputs: Tensor, parameters: Sequence[Tensor]) -> Product:
    """J v by going backwards twice: for whatever has no forward mode, or other random numbers each time."""
    dummy = torch.zeros_like(outputs, requires_grad=True)
    back = pulled(outputs, parameters, dummy, create_graph=True)  # J^T dummy: linear in the dummy
    return lambda v: pulled(back, [dummy], v).view_as(outputs)


def has_forward_mode(outputs_of: OutputsOf, model: nn.Module) -> bool:
    """Whether J v in forward mode exists, agrees with what goes backwards, and has the same outputs each time.

    Going backwards stops where a model says `no_grad`, of which forward mode knows nothing; dropout draws anew.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    outputs = outputs_of(model)
    with torch.no_grad():
        again = outputs_of(model)
    if not near(*(torch.nan_to_num(each.detach(), neginf=0.0) for each in (outputs, again))):
        return False
    draw = torch.Generator().manual_seed(0)
    v = torch.randn(sum(p.numel() for p in parameters), generator=draw).to(outputs)
    try:
        moved = pushed_forward(outputs_of, model)(v)
    except torch.OutOfMemoryError:
        raise
    except (NotImplementedError, RuntimeError):
        return False
    for _ in range(CHECKS):  # u (J v) = (J^T u) v
        u = torch.randn(outputs.shape, generator=draw).to(outputs)
        apart = (u * moved).sum() - pulled(outputs, parameters, u) @ v
        if not apart.abs() <= CLOSE * moved.norm():
            return False
    return True


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors differ by little, of the largest number."""
    return torch.allclose(one, other, rtol=0.0, atol=SAME * float(one.abs().max()))


def lengths(losses: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The length of each grad L_i."""
    return torch.stack([pulled(loss, parameters).norm() for loss in losses])


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


class Attempt(NamedTuple):
    """The same, with all its numbers still on their device."""

    x: Tensor
    residual: Tensor
    iterations: Tensor
    curvature: Tensor
    """Of the last direction."""

    def solved(self) -> Solved:
        """What became of it."""
        residual, iterations, curvature = torch.stack([n.double() for n in self[1:]]).tolist()
        failed = "" if residual < float("inf") else "the residual is not finite"
        if not curvature > 0:  # also where it is not a number
            failed = "the Hessian is not positive" if curvature <= 0 else "the products are not finite"
        return Solved(self.x, residual, int(iterations), failed)


def conjugate_gradients(
    product: Product, v: Tensor, *, damping: float = 0.0, iterations: int = 10, tolerance: float = 1e-2
) -> Solved:
    """(H + damping) x = v, as far as that many products go; a direction in which H is not positive is a failure."""
    return attempt(product, v, damping=damping, iterations=iterations, tolerance=tolerance).solved()


def attempt(
    product: Product, v: Tensor, *, damping: float, iterations: int, tolerance: float, look: bool = True
) -> Attempt:
    """Conjugate gradients; where it may not look at the numbers, all products are computed, whatever they are for."""
    x, rest, direction = torch.zeros_like(v), v, v
    first = square = v @ v
    going = first > 0
    done, curvature = torch.zeros_like(first), torch.ones_like(first)
    for _ in range(iterations):
        if look and not going:
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
        if not size < GROWN:
            return Solved(x / scale, size, j + 1, f"the series has no limit: scale={scale:g} is too small")
        x = x + term
    return Solved(x / scale, size if terms else 1.0, terms)
