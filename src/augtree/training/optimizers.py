"""A model's weights as one long vector, and the optimizers on it.

All weights are views into one tensor, all gradients into another, so that an optimizer is a handful of operations
whatever the model, and the state of a training is a few tensors that can be copied, saved and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from augtree.errors import TaskError

ALIGNED = 64
"""Each weight starts at a multiple of this many numbers, since kernels are faster on aligned memory."""


class ParameterVector:
    """The weights and gradients of a model, each in one vector."""

    def __init__(self, model: nn.Module) -> None:
        parameters = trainable(model)
        sizes = [-(-parameter.numel() // ALIGNED) * ALIGNED for parameter in parameters]
        self.values = torch.zeros(sum(sizes), device=parameters[0].device)
        self.grads = torch.zeros_like(self.values)
        start = 0
        for parameter, size in zip(parameters, sizes, strict=True):
            place = slice(start, start + parameter.numel())
            view = like(self.values[place], parameter)
            view.copy_(parameter.detach())
            parameter.data, parameter.grad = view, like(self.grads[place], parameter)
            start += size


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that training changes: float32, and at least one."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not named:
        raise TaskError("the model must have weights to train, got none")
    for name, parameter in named.items():
        if parameter.dtype != torch.float32:
            raise TaskError(f"the model's weights must be float32, got {parameter.dtype} in {name}")
    return list(named.values())


def like(vector: Tensor, parameter: Tensor) -> Tensor:
    """A view of a vector in the shape and memory order of a parameter."""
    if parameter.ndim == 4 and parameter.is_contiguous(memory_format=torch.channels_last):
        out, inner, height, width = parameter.shape
        return vector.view(out, height, width, inner).permute(0, 3, 1, 2)
    return vector.view(parameter.shape)


@dataclass
class Sgd:
    """Stochastic gradient descent with Nesterov's momentum, as in torch.optim.SGD."""

    weights: ParameterVector
    momentum: float
    decay: float

    def __post_init__(self) -> None:
        self.moments = {"momentum": torch.zeros_like(self.weights.values)}

    def scalars(self, rates: Sequence[float], first: int) -> Tensor:  # noqa: ARG002
        """The learning rates."""
        return torch.tensor([[-rate] for rate in rates], dtype=torch.float32)

    def update(self, weights: ParameterVector, scalars: Tensor) -> None:
        """One step."""
        gradient, momentum = weights.grads, self.moments["momentum"]
        gradient.add_(weights.values, alpha=self.decay)
        momentum.mul_(self.momentum).add_(gradient)
        gradient.add_(momentum, alpha=self.momentum)
        weights.values.addcmul_(gradient, scalars[0])


@dataclass
class AdamW:
    """Adam with decoupled weight decay, as in torch.optim.AdamW."""

    weights: ParameterVector
    decay: float
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        self.moments = {name: torch.zeros_like(self.weights.values) for name in ("first", "second")}

    def scalars(self, rates: Sequence[float], first: int) -> Tensor:
        """The factor of weight decay, the corrected rate, and the root of the second correction."""
        one, two = self.betas
        rows = []
        for step, rate in enumerate(rates, first + 1):
            rows.append([1 - rate * self.decay, -rate / (1 - one**step), (1 - two**step) ** 0.5])
        return torch.tensor(rows, dtype=torch.float32)

    def update(self, weights: ParameterVector, scalars: Tensor) -> None:
        """One step."""
        first, second = self.moments["first"], self.moments["second"]
        first.lerp_(weights.grads, 1 - self.betas[0])
        second.mul_(self.betas[1]).addcmul_(weights.grads, weights.grads, value=1 - self.betas[1])
        size = second.sqrt().div_(scalars[2]).add_(self.epsilon)
        weights.values.mul_(scalars[0]).addcmul_(first.div(size), scalars[1])


Optimizer = Sgd | AdamW
"""Changes the weights by the gradients; `scalars` holds the values that differ from step to step, a row each."""
