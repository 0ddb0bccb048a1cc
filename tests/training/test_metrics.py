import itertools
import math

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from augtree.errors import ArgumentError
from augtree.training.metrics import METRICS, accuracy, error, log_loss, log_softmax, macro_auroc, macro_f1

LOGITS = np.array([[3.0, 1, 0], [0, 2, 1], [0, 2, 1], [1, 0, 4]])  # predicted 0, 1, 1, 2
CLASSES = np.array([0, 1, 2, 2])
SEVERAL = np.array([[2.0, -1], [1, -2], [-3, -0.5], [0, -4]])  # predicted 1 0, 1 0, 0 0, 0 0
MARKS = np.array([[1, 0], [0, 0], [0, 1], [1, 0]], dtype=np.uint8)


def case(seed, samples=40):
    """Logits with many ties, classes of which the last may be absent, and multi-label marks."""
    draw = np.random.default_rng(seed)
    classes = int(draw.integers(3, 7))
    logits = draw.integers(-3, 4, (samples, classes)).astype(np.float64) / 2
    marks = (draw.random((samples, classes)) < 0.3).astype(np.uint8)
    marks[0], marks[1] = 0, 1
    return logits, draw.integers(0, classes - seed % 2, samples), marks


def softmax(logits):
    """With sums that are rounded once, so that equal ones stay equal whatever their order."""
    raw = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raw / np.array([[math.fsum(row)] for row in raw])


def test_multi_class_by_hand():
    assert accuracy(LOGITS, CLASSES) == 0.75
    assert error(LOGITS, CLASSES) == 0.25
    assert macro_f1(LOGITS, CLASSES) == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert macro_auroc(LOGITS, CLASSES) == pytest.approx((1 + (1 + 1 + 0.5) / 3 + (3 + 0.5) / 4) / 3)
    assert log_loss(np.array([[0.0, 0.0], [math.log(3), 0.0]]), np.array([1, 0])) == pytest.approx(
        (math.log(2) + math.log(4 / 3)) / 2
    )


def test_multi_label_by_hand():
    assert accuracy(SEVERAL, MARKS) == 5 / 8
    assert error(SEVERAL, MARKS) == 3 / 8
    assert macro_f1(SEVERAL, MARKS) == 0.25  # one hit of two guesses and two marks; no guess
    assert macro_auroc(SEVERAL, MARKS) == pytest.approx((3 / 4 + 1) / 2)
    loss = log_loss(np.array([[0.0, math.log(3)]]), np.array([[1, 0]], dtype=np.uint8))
    assert loss == pytest.approx((math.log(2) + math.log(4)) / 2)


@pytest.mark.parametrize("seed", range(30))
def test_as_scikit_learn_with_one_class_a_sample(seed):
    logits, labels, _ = case(seed)
    chances, names = softmax(logits), np.arange(logits.shape[1])
    guess = chances.argmax(axis=1)
    assert accuracy(logits, labels) == pytest.approx(sk.accuracy_score(labels, guess))
    assert macro_f1(logits, labels) == pytest.approx(sk.f1_score(labels, guess, average="macro", zero_division=0))
    assert log_loss(logits, labels) == pytest.approx(sk.log_loss(labels, chances, labels=names))
    areas = [sk.roc_auc_score(labels == k, chances[:, k]) for k in names if 0 < (labels == k).sum() < len(labels)]
    assert macro_auroc(logits, labels) == pytest.approx(np.mean(areas))


@pytest.mark.parametrize("seed", range(30))
def test_as_scikit_learn_with_several_labels(seed):
    logits, _, marks = case(seed)
    guess = logits > 0
    assert accuracy(logits, marks) == pytest.approx(1 - sk.hamming_loss(marks, guess))
    assert macro_f1(logits, marks) == pytest.approx(sk.f1_score(marks, guess, average="macro", zero_division=0))
    assert macro_auroc(logits, marks) == pytest.approx(sk.roc_auc_score(marks, logits, average="macro"))
    each = [sk.log_loss(marks[:, k], expit(logits[:, k])) for k in range(marks.shape[1])]
    assert log_loss(logits, marks) == pytest.approx(np.mean(each))


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=12))
def test_auroc_counts_pairs(rows):
    high = [score for score, mark in rows if mark]
    low = [score for score, mark in rows if not mark]
    logits, marks = np.array([[float(s)] for s, _ in rows]), np.array([[m] for _, m in rows], dtype=np.uint8)
    if not high or not low:
        with pytest.raises(ArgumentError, match="a class that some samples have and some have not"):
            macro_auroc(logits, marks)
        return
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in high for b in low]
    assert macro_auroc(logits, marks) == pytest.approx(sum(pairs) / len(pairs))


def test_absent_classes():
    logits = np.array([[2.0, 0, -1, -1], [0, 2, -1, -1], [2, 0, -1, -1]])
    assert macro_f1(logits, np.array([0, 1, 0])) == 1.0
    assert macro_auroc(logits, np.array([0, 1, 0])) == 1.0
    none = np.zeros((3, 4), dtype=np.uint8)
    none[0, 0] = none[2, 0] = none[1, 1] = 1
    assert macro_f1(logits, none) == 0.5
    assert macro_auroc(logits, none) == 1.0


def test_the_same_logits_at_other_places_tie():
    rows = [[0.1, *rest] for rest in itertools.permutations([0.2, 0.3, 0.7, 0.9])]
    assert len(np.unique(log_softmax(np.array(rows))[:, 0])) == 1


def test_one_class_has_no_auroc():
    with pytest.raises(ArgumentError, match="labels must have, for the AUROC"):
        macro_auroc(LOGITS, np.zeros(4, dtype=np.int64))


def test_huge_logits_have_a_finite_loss():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]])
    assert log_loss(logits, np.array([0, 0])) == 1e4
    assert log_loss(logits, np.array([[1, 0], [1, 1]], dtype=np.uint8)) == 2500


def test_a_metric_says_which_way_is_better():
    better = {name: metric.higher_is_better for name, metric in METRICS.items()}
    assert better == {"accuracy": True, "error": False, "f1": True, "auroc": True, "loss": False}
    good, bad = np.array([[4.0, 0], [0, 4], [4, 0]]), np.array([[0.0, 4], [1, 0], [4, 0]])
    for name, metric in METRICS.items():
        assert metric.name == name
        gain = metric.compute(good, np.array([0, 1, 0])) - metric.compute(bad, np.array([0, 1, 0]))
        assert gain > 0 if metric.higher_is_better else gain < 0


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros(3), np.zeros(3, dtype=int), "logits must be a table of samples and classes"),
        (np.zeros((0, 2)), np.zeros(0, dtype=int), "with at least one of each, got (0, 2)"),
        (np.array([[0, np.nan]]), np.array([0]), "logits must be finite, got nan"),
        (np.array([[0, -np.inf]]), np.array([0]), "logits must be finite, got -inf"),
        (
            np.zeros((2, 3)),
            np.array([0]),
            "labels must be whole numbers of shape (2,) or (2, 3), got ('int64', (1,))",
        ),
        (np.zeros((2, 3)), np.zeros((2, 2), dtype=np.uint8), "labels must be whole numbers of shape"),
        (np.zeros((2, 3)), np.array([0.0, 1.0]), "labels must be whole numbers of shape"),
        (np.zeros((2, 3)), np.array([0, 3]), "labels must be from 0 to 2, got 3"),
        (np.zeros((2, 3)), np.array([-1, 0]), "labels must be from 0 to 2, got -1"),
        (np.zeros((1, 2)), np.array([[0, 2]], dtype=np.uint8), "labels must be from 0 to 1, got 2"),
    ],
)
def test_what_cannot_be_measured(name, logits, labels, message):
    with pytest.raises(ArgumentError) as caught:
        METRICS[name].compute(logits, labels)
    assert message in str(caught.value)
