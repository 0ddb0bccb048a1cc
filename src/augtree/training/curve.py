"""The training loss over a training: means over equal parts, added up where the model is and read once."""

from __future__ import annotations

import torch
from torch import Tensor

from augtree.training.state import Curve

POINTS = 16
"""A training, or a part of one that is kept, has at most this many points."""


class LossCurve:
    """Adds up losses.

    >>> curve = LossCurve(4, torch.device("cpu"), points=2)
    >>> for step, loss in enumerate((4.0, 2.0, 1.0, 0.5)):
    ...     curve.add(step, torch.tensor(loss))
    >>> curve.points(first=10, done=4)
    ((12, 3.0), (14, 0.75))
    """

    def __init__(self, steps: int, device: torch.device, points: int = POINTS) -> None:
        self.size = -(-steps // points)
        self.sums = torch.zeros(-(-steps // self.size), device=device)

    def add(self, step: int, loss: Tensor | None) -> None:
        """Add the loss of a step, on its device; a part with a step whose loss is not told has no point."""
        self.sums[step // self.size] += float("nan") if loss is None else loss

    def points(self, first: int, done: int) -> Curve:
        """The last step and the mean loss of each part, given the step of the start; losses that are finite."""
        ends = [min(done, (i + 1) * self.size) for i in range(len(self.sums))]
        sums = zip(ends, self.sums.tolist(), strict=True)
        means = [(end, total / (end - i * self.size)) for i, (end, total) in enumerate(sums) if end > i * self.size]
        return tuple((first + end, round(mean, 6)) for end, mean in means if abs(mean) < float("inf"))
