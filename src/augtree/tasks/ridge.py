"""Ridge regression from features to labels, in closed form: a classifier that a search can afford for every branch.

Its penalty is chosen by what each sample's prediction would be if the regression had not seen its label, which it
tells without being fitted again. With an RBF kernel it sees features as the SVM of a graph protocol does, their
lengths too; without one, as a linear classifier does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Times the mean of the eigenvalues of the samples' squares."""
LANDMARKS = 1024
"""With a kernel, samples that all are compared with; with fewer than these, it is exact (Williams, Seeger 2001)."""
TINY = 1e-9
AT_ONCE = 4096


@dataclass(frozen=True)
class Ridge:
    """Fitted to some features."""

    mean: Tensor
    scale: Tensor
    """What features are divided by; with a kernel it is the same for all."""
    landmarks: Tensor | None
    spread: Tensor | None
    """From the similarities to the landmarks to numbers whose products are the kernel."""
    middle: Tensor
    """The mean of what the regression sees."""
    weights: Tensor
    offset: Tensor

    @staticmethod
    def fitted(features: Tensor, targets: Tensor, kernel: bool) -> Ridge:
        """To targets [samples, columns]; with `kernel`, that of an RBF SVM with scikit-learn's gamma."""
        features, targets = features.double(), targets.double()
        mean, offset = features.mean(0), targets.mean(0)
        landmarks = spread = None
        if kernel:
            whole = features.var(correction=0) * features.shape[1]  # scikit-learn's gamma="scale"
            scale = (whole if float(whole) > 0 else torch.ones_like(whole)).sqrt()
            places = torch.linspace(0, len(features) - 1, min(LANDMARKS, len(features)), device=features.device)
            landmarks = (features[places.round().long()] - mean) / scale
            values, vectors = torch.linalg.eigh(rbf(landmarks, landmarks))
            spread = vectors * torch.where(values > TINY, values.clamp(min=TINY).rsqrt(), 0.0)
        else:
            scale = features.std(0, correction=0)
            scale = torch.where(scale > 0, scale, 1.0)
        nothing = offset.new_zeros(())
        seen = Ridge(mean, scale, landmarks, spread, nothing, nothing, nothing).seen(features)
        middle = seen.mean(0)
        seen = seen - middle
        values, vectors = torch.linalg.eigh(seen.T @ seen)
        turned, values = seen @ vectors, values.clamp(min=0)
        found = turned.T @ (targets - offset)
        unit = float(values.mean()) or 1.0
        tried = [alone(turned, values, found, targets - offset, unit * penalty) for penalty in PENALTIES]
        best = min(range(len(tried)), key=lambda i: float(tried[i].square().mean()))
        weights = vectors @ (found / (values + unit * PENALTIES[best])[:, None])
        return Ridge(mean, scale, landmarks, spread, middle, weights, offset)

    def seen(self, features: Tensor) -> Tensor:
        """Features as the regression sees them."""
        ready = (features.double() - self.mean) / self.scale
        if self.landmarks is None or self.spread is None:
            return ready - self.middle
        return torch.cat([rbf(part, self.landmarks) @ self.spread for part in ready.split(AT_ONCE)]) - self.middle

    def __call__(self, features: Tensor) -> Tensor:
        """What it says of some samples, a column for each target."""
        return self.offset + self.seen(features) @ self.weights


def alone(turned: Tensor, values: Tensor, found: Tensor, targets: Tensor, penalty: float) -> Tensor:
    """How far each sample's prediction would be off, had the regression and the means not seen it.

    Features and targets are around their means.
    """
    shrunk = turned / (values + penalty)
    held = ((shrunk * turned).sum(1) + 1 / len(turned)).clamp(max=1 - TINY)  # what a sample's own target has to say
    return (targets - shrunk @ found) / (1 - held)[:, None]


def rbf(one: Tensor, other: Tensor) -> Tensor:
    """exp(-d^2) for all pairs."""
    apart = one.square().sum(1)[:, None] + other.square().sum(1) - 2 * one @ other.T
    return apart.clamp(min=0).neg().exp()
