"""Ridge regression from features to labels, in closed form: a classifier that a search can afford for every branch.

Its penalty is chosen by leave-one-out errors, which the fit gives without further fits. With an RBF kernel it takes
features like the SVM of a graph protocol, their lengths included; without one, like a linear classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""In units of the mean eigenvalue of the covariance (times the number of samples)."""
LANDMARKS = 1024
"""The samples that a kernel compares all others with; exact where there are no more (Williams, Seeger 2001)."""
TINY = 1e-9
AT_ONCE = 4096


@dataclass(frozen=True)
class FeatureMap:
    """Features as a regression takes them: scaled, and with a kernel mapped so that inner products are the kernel."""

    mean: Tensor
    scale: Tensor
    """The divisor of each feature; with a kernel a single one."""
    landmarks: Tensor | None = None
    whitening: Tensor | None = None
    """From kernel values at the landmarks to the mapped features."""

    @staticmethod
    def linear(features: Tensor) -> FeatureMap:
        """Each feature with deviation 1."""
        scale = features.std(0, correction=0)
        return FeatureMap(features.mean(0), torch.where(scale > 0, scale, 1.0))

    @staticmethod
    def rbf(features: Tensor) -> FeatureMap:
        """With the kernel of an RBF SVM and scikit-learn's gamma="scale"."""
        variance = features.var(correction=0) * features.shape[1]
        mean, scale = features.mean(0), (variance if float(variance) > 0 else torch.ones_like(variance)).sqrt()
        places = torch.linspace(0, len(features) - 1, min(LANDMARKS, len(features)), device=features.device)
        landmarks = (features[places.round().long()] - mean) / scale
        values, vectors = torch.linalg.eigh(rbf(landmarks, landmarks))
        whitening = vectors * torch.where(values > TINY, values.clamp(min=TINY).rsqrt(), 0.0)
        return FeatureMap(mean, scale, landmarks, whitening)

    def __call__(self, features: Tensor) -> Tensor:
        scaled = (features.double() - self.mean) / self.scale
        if self.landmarks is None or self.whitening is None:
            return scaled
        return torch.cat([rbf(part, self.landmarks) @ self.whitening for part in scaled.split(AT_ONCE)])


@dataclass(frozen=True)
class Ridge:
    """A fitted regression. As scikit-learn's RidgeCV, but on the device of the features."""

    feature_map: FeatureMap
    mean: Tensor
    """Of the mapped features."""
    weights: Tensor
    offset: Tensor

    @staticmethod
    def fitted(features: Tensor, targets: Tensor, kernel: bool) -> Ridge:
        """Fit to targets [samples, columns], with the penalty that has the lowest leave-one-out error."""
        features, targets = features.double(), targets.double()
        feature_map = (FeatureMap.rbf if kernel else FeatureMap.linear)(features)
        x, offset = feature_map(features), targets.mean(0)
        mean = x.mean(0)
        x, targets = x - mean, targets - offset
        values, vectors = torch.linalg.eigh(x.T @ x)
        rotated, values = x @ vectors, values.clamp(min=0)
        products = rotated.T @ targets
        unit = float(values.mean()) or 1.0
        errors = [leave_one_out(rotated, values, products, targets, unit * penalty) for penalty in PENALTIES]
        best = min(range(len(errors)), key=lambda i: float(errors[i].square().mean()))
        weights = vectors @ (products / (values + unit * PENALTIES[best])[:, None])
        return Ridge(feature_map, mean, weights, offset)

    def __call__(self, features: Tensor) -> Tensor:
        """Predictions, a column for each target."""
        return self.offset + (self.feature_map(features) - self.mean) @ self.weights


def leave_one_out(rotated: Tensor, values: Tensor, products: Tensor, targets: Tensor, penalty: float) -> Tensor:
    """The error of each sample's prediction by the regression on all other samples (means included).

    Features, rotated onto the eigenvectors, and targets are centred; `products` are those of both.
    """
    shrunk = rotated / (values + penalty)
    leverage = ((shrunk * rotated).sum(1) + 1 / len(rotated)).clamp(max=1 - TINY)
    return (targets - shrunk @ products) / (1 - leverage)[:, None]


def rbf(one: Tensor, other: Tensor) -> Tensor:
    """exp(-d^2) for all pairs."""
    squares = one.square().sum(1)[:, None] + other.square().sum(1) - 2 * one @ other.T
    return squares.clamp(min=0).neg().exp()
