"""The state of a training, and the seeds that its random numbers depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from augtree.errors import need

CPU = torch.device("cpu")
BUFFER = "buffer."
"""How the names of a model's buffers begin in a state."""


Curve = tuple[tuple[int, float], ...]
"""Steps and losses."""


@dataclass(frozen=True)
class State:
    """A training after some steps: weights, moments of the optimizer, and buffers."""

    tensors: dict[str, Tensor]
    step: int = 0
    curve: Curve = ()
    """The training loss on the way from the state before: for each part of it, the last step and the mean loss."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A state goes to another process as safetensors, and arrives on the CPU."""
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        return arrived, (need("safetensors.torch", "train").save(plain), self.step, self.curve)

    def to(self, device: torch.device) -> State:
        """The state on a device."""
        return State({name: tensor.to(device) for name, tensor in self.tensors.items()}, self.step, self.curve)

    @property
    def is_finite(self) -> bool:
        """Whether all numbers but those of buffers, which may be masks, are finite."""
        trained = [tensor for name, tensor in self.tensors.items() if not name.startswith(BUFFER)]
        return all(bool(tensor.isfinite().all()) for tensor in trained)


def arrived(content: bytes, step: int, curve: Curve = ()) -> State:
    """A state that was sent."""
    return State(need("safetensors.torch", "train").load(content), step, curve)


@dataclass
class Passes:
    """The numbers of samples that went through a model, forwards and backwards."""

    forward: int = 0
    backward: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.forward + self.backward


def seed_of(*parts: object) -> int:
    """A seed derived from these parts, such as `seed_of(0, "policy")`."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


@contextmanager
def seeded(seed: int, device: torch.device = CPU) -> Iterator[None]:
    """Seed torch's global generators, and restore their states at the end."""
    gpus: list[Any] = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a model."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
