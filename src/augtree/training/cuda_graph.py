"""A function of tensors as a graph of kernels that the GPU starts by itself: small steps wait for Python else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

WARM_UPS = 3
"""Calls before the recording, in which libraries choose their kernels."""


class Recording:
    """Gives what the function gives, in the same tensors each time: a call overwrites the last one's."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
        device = inputs[0].device
        drawn = torch.cuda.get_rng_state(device)
        self.places = tuple(tensor.clone() for tensor in inputs)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                function(*self.places)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.outputs = function(*self.places)
        torch.cuda.set_rng_state(drawn, device)

    def takes(self, inputs: Sequence[Tensor]) -> bool:
        """Whether these have the shapes and types of what was recorded."""
        return [(t.shape, t.dtype) for t in inputs] == [(t.shape, t.dtype) for t in self.places]

    def __call__(self, inputs: Sequence[Tensor]) -> Any:
        """Run it."""
        for place, value in zip(self.places, inputs, strict=True):
            place.copy_(value)
        self.graph.replay()
        return self.outputs
