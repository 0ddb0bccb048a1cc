"""The implicit gradient: how an outer loss moves with the weight of each group, where the model follows.

The model minimises the inner loss, sum_g w_g L_g(theta). By the implicit function theorem its weights move with w_i
by -H^-1 grad L_i, where H is the Hessian of the inner loss; so an outer loss with gradient v moves by

    d_i = -v^T H^-1 grad L_i.

s = H^-1 v is solved once, from products with H alone (linear_solvers.py); H is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from augtree.errors import lacks_memory
from augtree.forests.linear_solvers import Product

OutputsOf = Callable[[Callable[[Any], Any]], Tensor]
"""From a model's forward function to its outputs of some batch."""
OUTPUT_TOLERANCE = 0.02
"""Outputs that differ by less, relative to the largest, are equal: a GPU adds up in another order each time."""
MODE_CHECKS, MODE_TOLERANCE = 4, 0.05
"""How often, and how closely, forward and backward mode must agree."""


class InnerLoss:
    """The weighted inner loss around the present weights of a model; every product comes from one graph."""

    def __init__(self, losses: Tensor, w: Tensor, parameters: Sequence[Tensor], decay: float = 0.0) -> None:
        self.losses, self.parameters, self.decay = losses, list(parameters), decay
        # The gradient is linear in w: its derivative by w, pulled back from s, has s^T grad L_i for each group.
        self.w = w.detach().clone().requires_grad_()
        self.gradient = vjp(self.w @ losses, self.parameters, create_graph=True)

    def hessian(self, v: Tensor) -> Tensor:
        """H v, weight decay included."""
        return vjp(self.gradient, self.parameters, v) + self.decay * v

    def dot_gradients(self, s: Tensor) -> Tensor:
        """s^T grad L_i for each group."""
        return vjp(self.gradient, [self.w], s)


class GaussNewton:
    """J^T B J: H without the curvature of the model itself; never negative, so that it can always be solved.

    `curvature` multiplies a matrix like the outputs by B, the Hessian of the inner loss by the outputs; `jvp` gives
    J v, how the outputs move with the weights.
    """

    def __init__(
        self, outputs: Tensor, curvature: Product, jvp: Product, parameters: Sequence[Tensor], decay: float = 0.0
    ) -> None:
        self.outputs, self.curvature, self.jvp = outputs, curvature, jvp
        self.parameters, self.decay = list(parameters), decay

    def __call__(self, v: Tensor) -> Tensor:
        """The product."""
        return vjp(self.outputs, self.parameters, self.curvature(self.jvp(v))) + self.decay * v

    def dot_gradients(self, losses: Tensor, s: Tensor) -> Tensor:
        """s^T grad L_i for each group, where the outputs' rows are the groups' one after another, as many of each."""
        by_output = torch.autograd.grad(losses.sum(), self.outputs, retain_graph=True)[0]
        return (by_output * self.jvp(s)).view(len(losses), -1).sum(1)


def forward_jvp(outputs_of: OutputsOf, model: nn.Module) -> Product:
    """J v in forward mode: the outputs once more, from dual weights. Fast, and needs no graph."""
    named = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def jvp(v: Tensor) -> Tensor:
        parts = zip(named.items(), v.split([p.numel() for p in named.values()]), strict=True)
        with torch.no_grad(), forward_ad.dual_level():
            moving = {name: forward_ad.make_dual(p, part.view_as(p)) for (name, p), part in parts}
            primal, tangent = forward_ad.unpack_dual(
                outputs_of(lambda batch: functional_call(model, moving, (batch,)))
            )
            return torch.zeros_like(primal) if tangent is None else tangent

    return jvp


def backward_jvp(outputs: Tensor, parameters: Sequence[Tensor]) -> Product:
    """J v by two backward passes: for models without a forward mode, or with other random numbers each time."""
    dummy = torch.zeros_like(outputs, requires_grad=True)
    back = vjp(outputs, parameters, dummy, create_graph=True)  # J^T dummy: linear in the dummy
    return lambda v: vjp(back, [dummy], v).view_as(outputs)


def has_forward_mode(outputs_of: OutputsOf, model: nn.Module) -> bool:
    """Whether J v in forward mode exists, agrees with backward mode, and has the same outputs each time.

    A model may say `no_grad`, which stops the backward mode alone; dropout draws anew each time.
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
        forward = forward_jvp(outputs_of, model)(v)
    except (NotImplementedError, RuntimeError) as error:
        if lacks_memory(error):
            raise
        return False
    for _ in range(MODE_CHECKS):  # u (J v) = (J^T u) v
        u = torch.randn(outputs.shape, generator=draw).to(outputs)
        difference = (u * forward).sum() - vjp(outputs, parameters, u) @ v
        if not difference.abs() <= MODE_TOLERANCE * forward.norm():
            return False
    return True


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors differ by little, relative to the largest number."""
    return torch.allclose(one, other, rtol=0.0, atol=OUTPUT_TOLERANCE * float(one.abs().max()))


def gradient_norms(losses: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The norm of each grad L_i."""
    return torch.stack([vjp(loss, parameters).norm() for loss in losses])


def vjp(value: Tensor, inputs: Sequence[Tensor], by: Tensor | None = None, *, create_graph: bool = False) -> Tensor:
    """The derivative of a value (times a vector) by some tensors, as one vector; the graph is kept."""
    found = torch.autograd.grad(
        value, inputs, by, retain_graph=True, create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
    return torch.cat([tensor.reshape(-1) for tensor in found])
