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
class Sight:
    """Features as a regression sees them: scaled, and with a kernel as numbers whose products are the kernel."""

    mean: Tensor
    scale: Tensor
    """What features are divided by; with a kernel it is the same for all."""
    landmarks: Tensor | None = None
    spread: Tensor | None = None
    """From the similarities to the landmarks to those numbers."""

    @staticmethod
    def linear(features: Tensor) -> Sight:
        """Each feature with deviation 1."""
        scale = features.std(0, correction=0)
        return Sight(features.mean(0), torch.where(scale > 0, scale, 1.0))

    @staticmethod
    def rbf(features: Tensor) -> Sight:
        """With the kernel of an RBF SVM and scikit-learn's gamma="scale"."""
        whole = features.var(correction=0) * features.shape[1]
        mean, scale = features.mean(0), (whole if float(whole) > 0 else torch.ones_like(whole)).sqrt()
        places = torch.linspace(0, len(features) - 1, min(LANDMARKS, len(features)), device=features.device)
        landmarks = (features[places.round().long()] - mean) / scale
        values, vectors = torch.linalg.eigh(rbf(landmarks, landmarks))
        spread = vectors * torch.where(values > TINY, values.clamp(min=TINY).rsqrt(), 0.0)
        return Sight(mean, scale, landmarks, spread)

    def __call__(self, features: Tensor) -> Tensor:
        """Some features."""
        ready = (features.double() - self.mean) / self.scale
        if self.landmarks is None or self.spread is None:
            return ready
        return torch.cat([rbf(part, self.landmarks) @ self.spread for part in ready.split(AT_ONCE)])


@dataclass(frozen=True)
class Ridge:
    """Fitted to some features. As scikit-learn's RidgeCV, but where the features are."""

    sight: Sight
    middle: Tensor
    """The mean of what it sees."""
    weights: Tensor
    offset: Tensor

    @staticmethod
    def fitted(features: Tensor, targets: Tensor, kernel: bool) -> Ridge:
        """To targets [samples, columns]."""
        features, targets = features.double(), targets.double()
        sight = (Sight.rbf if kernel else Sight.linear)(features)
        seen, offset = sight(features), targets.mean(0)
        middle = seen.mean(0)
        seen, targets = seen - middle, targets - offset
        values, vectors = torch.linalg.eigh(seen.T @ seen)
        turned, values = seen @ vectors, values.clamp(min=0)
        found = turned.T @ targets
        unit = float(values.mean()) or 1.0
        tried = [alone(turned, values, found, targets, unit * penalty) for penalty in PENALTIES]
        best = min(range(len(tried)), key=lambda i: float(tried[i].square().mean()))
        weights = vectors @ (found / (values + unit * PENALTIES[best])[:, None])
        return Ridge(sight, middle, weights, offset)

    def __call__(self, features: Tensor) -> Tensor:
        """What it says of some samples, a column for each target."""
        return self.offset + (self.sight(features) - self.middle) @ self.weights


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
