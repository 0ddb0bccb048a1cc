"""How good predictions are. Logits are [N, K]; labels are classes [N], or, multi-label, zeros and ones [N, K]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.errors import ArgumentError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64] | NDArray[np.uint8]


class Metric(NamedTuple):
    """A measure of predictions, and whether higher is better."""

    name: str
    higher_is_better: bool
    compute: Callable[[Floats, Labels], float]


def accuracy(logits: Floats, labels: Labels) -> float:
    """The share of samples whose highest logit is at the label; multi-label, the share of labels right at logit > 0.

    >>> accuracy(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0]))
    0.5
    """
    logits, truth = validated(logits, labels)
    if labels.ndim == 1:
        return float((logits.argmax(axis=1) == labels).mean())
    return float(((logits > 0) == truth).mean())


def error(logits: Floats, labels: Labels) -> float:
    """1 - accuracy."""
    return 1 - accuracy(logits, labels)


def macro_f1(logits: Floats, labels: Labels) -> float:
    """The mean F1 of the classes, by the highest logit; multi-label, of all labels at logit > 0.

    As in scikit-learn, a class that is neither a label nor predicted is left out; multi-label, it counts as 0.
    """
    logits, truth = validated(logits, labels)
    one_class = labels.ndim == 1
    predicted = one_hot(logits.argmax(axis=1), logits.shape[1]) if one_class else logits > 0
    both, either = (predicted & truth).sum(axis=0), predicted.sum(axis=0) + truth.sum(axis=0)
    scores = 2 * both / np.maximum(either, 1)
    return float(scores[either > 0].mean() if one_class else scores.mean())


def macro_auroc(logits: Floats, labels: Labels) -> float:
    """The mean area under the ROC curve of the classes, each against the rest, by softmax; multi-label, by logit.

    Classes of all samples, or of none, are left out.
    """
    logits, truth = validated(logits, labels)
    scores = np.exp(log_softmax(logits)) if labels.ndim == 1 else logits
    both = truth.any(axis=0) & ~truth.all(axis=0)
    if not both.any():
        raise ArgumentError("labels", "must have, for the AUROC, a class that some samples have and some have not")
    return float(np.mean([auroc(scores[:, k], truth[:, k]) for k in np.flatnonzero(both)]))


def auroc(scores: Floats, truth: Bools) -> float:
    """The probability that a positive scores above a negative, ties counting half (Mann-Whitney)."""
    _, position, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[position]
    ones = int(truth.sum())
    return float((rank[truth].sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones)))


def log_loss(logits: Floats, labels: Labels) -> float:
    """The mean cross-entropy; multi-label, the mean binary cross-entropy over samples and labels."""
    logits, truth = validated(logits, labels)
    if labels.ndim == 1:
        return float(-log_softmax(logits)[truth].mean())
    return float(np.logaddexp(0, np.where(truth, -logits, logits)).mean())


def log_softmax(logits: Floats) -> Floats:
    """The logarithms of the probabilities."""
    logits = logits - logits.max(axis=1, keepdims=True)
    # Summed in order, so that rows with the same logits in another order have the same sum to the bit, and tie.
    out: Floats = logits - np.log(np.sort(np.exp(logits), axis=1).sum(axis=1, keepdims=True))
    return out


def one_hot(classes: NDArray[Any], number: int) -> Bools:
    """True at each sample's class."""
    out: Bools = classes[:, None] == np.arange(number)
    return out


def validated(logits: Floats, labels: Labels) -> tuple[Floats, Bools]:
    """Logits as float64 and labels as zeros and ones [N, K], or an ArgumentError."""
    if logits.ndim != 2 or 0 in logits.shape:
        raise ArgumentError(
            "logits", "must be a table of samples and classes with at least one of each", logits.shape
        )
    if not np.isfinite(logits).all():
        raise ArgumentError("logits", "must be finite", logits[~np.isfinite(logits)][0].item())
    samples, classes = logits.shape
    if labels.shape not in ((samples,), (samples, classes)) or labels.dtype.kind not in "iub":
        rule = f"must be whole numbers of shape ({samples},) or ({samples}, {classes})"
        raise ArgumentError("labels", rule, (labels.dtype.name, labels.shape))
    most = classes - 1 if labels.ndim == 1 else 1
    if int(labels.min()) < 0 or int(labels.max()) > most:
        odd = labels[(labels < 0) | (labels > most)]
        raise ArgumentError("labels", f"must be from 0 to {most}", odd[0].item())
    return logits.astype(np.float64), one_hot(labels, classes) if labels.ndim == 1 else labels.astype(bool)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", True, accuracy),
        Metric("error", False, error),
        Metric("f1", True, macro_f1),
        Metric("auroc", True, macro_auroc),
        Metric("loss", False, log_loss),
    )
}
"""The metrics by name."""


def allowed_metrics(logits: Floats, labels: Labels, required: str) -> dict[str, float]:
    """Every metric that these labels allow, by name; an ArgumentError where the required one is not among them."""
    out = {}
    for name, metric in METRICS.items():
        try:
            out[name] = metric.compute(logits, labels)
        except ArgumentError:  # no class has both labels: there is no AUROC
            if name == required:
                raise
    return out
