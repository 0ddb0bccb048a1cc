"""NT-Xent (Chen et al. 2020), alignment and uniformity (Wang and Isola 2020) of pairs of views, and k-NN votes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

UNIFORMITY = 2.0
"""The t of Wang and Isola's exp(-t |x - y|^2)."""
COMPARED_AT_ONCE = 1 << 24


def similarities(z: Tensor, temperature: float) -> Tensor:
    """The cosine similarity of each row to each other, over the temperature; -inf on the diagonal."""
    z = F.normalize(z, dim=1)
    diagonal = torch.eye(len(z), dtype=torch.bool, device=z.device)
    return (z @ z.T / temperature).masked_fill(diagonal, float("-inf"))


def view_losses(similarity: Tensor) -> Tensor:
    """The NT-Xent loss of each view, where rows 2i and 2i + 1 are views of the same sample."""
    partners = torch.arange(len(similarity), device=similarity.device) ^ 1
    return F.cross_entropy(similarity, partners, reduction="none")


def nt_xent(one: Tensor, two: Tensor, temperature: float) -> Tensor:
    """The normalised temperature-scaled cross-entropy of each sample, the mean of both views."""
    similarity = similarities(torch.stack([one, two], 1).flatten(0, 1), temperature)
    return view_losses(similarity).view(-1, 2).mean(1)


def neighbour_votes(queries: Tensor, memory: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    """The share of each label among the k nearest, weighted by exp(cosine / temperature); rows have length 1."""
    votes = []
    for part in blocks(len(queries), max(1, COMPARED_AT_ONCE // len(memory))):
        similarity, nearest = (queries[part] @ memory.T).topk(k, dim=1)
        weight = torch.softmax(similarity / temperature, dim=1)
        votes.append((weight[:, :, None] * labels[nearest]).sum(1).clamp(0, 1))
    return torch.cat(votes)


def alignment(one: Tensor, two: Tensor) -> Tensor:
    """The squared distance of the two views of each sample."""
    return (one - two).square().sum(1)


def uniformity(one: Tensor, two: Tensor) -> Tensor:
    """For each sample, the logarithm of how densely others lie around it; the mean of its two views."""
    if len(one) == 1:
        return torch.zeros_like(one[:, 0])  # there are no others
    densities = []
    for views in (one, two):
        parts = []
        for part in blocks(len(views), max(1, COMPARED_AT_ONCE // len(views))):
            distances = 2 - 2 * views[part] @ views.T
            own = torch.arange(part.start, min(part.stop, len(views)), device=views.device)
            closeness = (-UNIFORMITY * distances).scatter(1, own[:, None], float("-inf"))
            parts.append(torch.logsumexp(closeness, 1) - float(np.log(max(1, len(views) - 1))))
        densities.append(torch.cat(parts))
    return (densities[0] + densities[1]) / 2


def blocks(count: int, size: int) -> list[slice]:
    """Slices of this many rows; a single row at the end joins the slice before, to be compared with others."""
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] == 1 and size > 1:
        starts.pop()
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True)]
