"""A linear classifier on features, by which an encoder is measured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError, need
from augtree.training.metrics import METRICS, Floats, Labels

MOST_ITERATIONS = 1000
NEVER = -1e3
"""The logit of a class that the classifier has not seen."""


@dataclass(frozen=True)
class Probe:
    """Logistic regression on features of mean 0 and deviation 1; multi-label, one for each label."""

    mean: Floats
    scale: Floats
    columns: tuple[Any, ...]
    """A function from features to logits for each column, or for all of them where there is one label a sample."""
    multilabel: bool

    @staticmethod
    def fitted(features: Floats, labels: NDArray[Any], classes: int) -> Probe:
        """Fitted to these samples and nothing else."""
        mean, scale = features.mean(0), features.std(0)
        scale = np.where(scale > 0, scale, 1.0)
        ready = (features - mean) / scale
        if labels.ndim == 2:
            return Probe(mean, scale, tuple(logistic(ready, column, 2) for column in labels.T), multilabel=True)
        return Probe(mean, scale, (logistic(ready, labels, classes),), multilabel=False)

    def logits(self, features: Floats) -> Floats:
        """What it says of some samples."""
        ready = (features - self.mean) / self.scale
        found = [column(ready) for column in self.columns]
        return np.stack([both[:, 1] - both[:, 0] for both in found], 1) if self.multilabel else found[0]

    def measures(self, features: Floats, labels: Labels, wanted: str) -> dict[str, float]:
        """Every metric that these samples allow."""
        logits, out = self.logits(features), {}
        for name, metric in METRICS.items():
            try:
                out[name] = metric.compute(logits, labels)
            except ArgumentError:  # no class has both labels: there is no AUROC
                if name == wanted:
                    raise
        return out


def logistic(features: Floats, labels: NDArray[Any], classes: int) -> Any:
    """From features to logits [samples, classes]; where all samples have one label, that one always."""
    seen = np.unique(labels)
    if len(seen) == 1:
        return lambda ready: scattered(np.zeros((len(ready), 1)), seen, classes)
    sklearn = need("sklearn.linear_model", "cli")
    model = sklearn.LogisticRegression(max_iter=MOST_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a classifier that has not quite converged is good enough, and always the same
        model.fit(features, labels)
    return lambda ready: scattered(scores(model, ready), model.classes_, classes)


def scores(model: Any, ready: Floats) -> Floats:
    """A logit for each class that the model knows; of two it tells the difference alone."""
    found = model.decision_function(ready)
    return np.stack([np.zeros(len(ready)), found], 1) if found.ndim == 1 else found


def scattered(found: Floats, seen: NDArray[Any], classes: int) -> Floats:
    """Columns at the places of their classes; the others are very low."""
    out = np.full((len(found), classes), NEVER)
    out[:, seen.astype(np.int64)] = np.maximum(found, NEVER)
    return out
