"""A linear classifier on features, by which an encoder is measured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import need
from augtree.training.metrics import Floats, Labels, allowed_metrics

MAX_ITERATIONS = 1000
MIN_LOGIT = -1e3
"""The logit of a class that the classifier has not seen."""


@dataclass(frozen=True)
class Probe:
    """Logistic regression on standardised features; multi-label, one for each label."""

    scaler: Any
    columns: tuple[Column, ...]
    """One for each label, or a single one where a sample has one label."""
    multilabel: bool

    @staticmethod
    def fitted(features: Floats, labels: NDArray[Any], classes: int) -> Probe:
        """Fit to labels [samples], or, multi-label, [samples, labels]."""
        scaler = need("sklearn.preprocessing", "train").StandardScaler().fit(features)
        scaled = scaler.transform(features)
        if labels.ndim == 2:
            return Probe(scaler, tuple(Column.fitted(scaled, each, 2) for each in labels.T), multilabel=True)
        return Probe(scaler, (Column.fitted(scaled, labels, classes),), multilabel=False)

    def logits(self, features: Floats) -> Floats:
        """The logits of all classes, or of all labels."""
        scaled = self.scaler.transform(features)
        logits = [column.logits(scaled) for column in self.columns]
        return np.stack([each[:, 1] - each[:, 0] for each in logits], 1) if self.multilabel else logits[0]

    def measures(self, features: Floats, labels: Labels, required: str) -> dict[str, float]:
        """Every metric that these samples allow."""
        return allowed_metrics(self.logits(features), labels, required)


@dataclass(frozen=True)
class Column:
    """A classifier on scaled features; fitted to a single class, it always predicts that one."""

    model: Any
    seen: NDArray[np.int64]
    classes: int

    @staticmethod
    def fitted(scaled: Floats, labels: NDArray[Any], classes: int) -> Column:
        """Fit to one label each."""
        seen = np.unique(labels).astype(np.int64)
        if len(seen) == 1:
            return Column(None, seen, classes)
        model = need("sklearn.linear_model", "train").LogisticRegression(max_iter=MAX_ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one that has not quite converged is good enough, and repeatable
            return Column(model.fit(scaled, labels), seen, classes)

    def logits(self, scaled: Floats) -> Floats:
        """The logits of all classes [samples, classes], very low where a class was not seen."""
        scores = np.zeros(len(scaled)) if self.model is None else self.model.decision_function(scaled)
        if scores.ndim == 1:  # scikit-learn gives the difference of two classes
            scores = np.stack([np.zeros(len(scaled)), scores], 1)[:, : len(self.seen)]
        out = np.full((len(scaled), self.classes), MIN_LOGIT)
        out[:, self.seen] = np.maximum(scores, MIN_LOGIT)
        return out
