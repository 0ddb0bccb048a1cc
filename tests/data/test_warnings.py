import numpy as np

from augtree.data import from_arrays, load
from augtree.data.warnings import data_warnings, search_warnings

SPLIT = ["train"] * 40 + ["val"] * 10 + ["test"] * 10


def data(y=None, x=None, **more):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 6, 6), np.uint8) if x is None else x
    return from_arrays(x, np.arange(60) % 2 if y is None else y, **{"split": SPLIT, **more})


def test_ordinary_data_has_no_warning():
    assert [*data_warnings(data()), *search_warnings(data())] == []
    assert list(data_warnings(load("digits"))) == []


def test_one_class():
    only = "All training samples have the label cat: there is nothing to tell apart."
    assert list(data_warnings(data(["cat"] * 60))) == [only]
    assert list(data_warnings(data(["cat"] * 50 + ["dog"] * 10))) == [only]


def test_classes_without_a_training_sample():
    (found,) = data_warnings(data([0, 1] * 20 + list(range(20))))
    assert found == "No training sample has the label 2, 3, 4, 5, 6, and 13 more."
    (found,) = data_warnings(data([[1, 0]] * 60))
    assert found == "No training sample has the label 1."


def test_samples_without_a_label():
    y = np.ones((60, 2), int)
    y[[3, 45, 50]] = 0
    (found,) = data_warnings(data(y))
    assert found == "3 of 60 samples have no label: each counts as a no for every label."
    unlabelled = ["unlabelled" if i == 3 else name for i, name in enumerate(SPLIT)]
    assert next(data_warnings(data(y, split=unlabelled))).startswith("2 of 59 samples")


def test_identical_pictures_are_counted_and_named():
    x = np.random.default_rng(0).integers(0, 256, (60, 6, 6), np.uint8)
    x[41], x[50] = x[0], x[1]
    splits = "sample 0 (train) and sample 41 (val); sample 1 (train) and sample 50 (test)"
    assert list(data_warnings(data(x=x))) == [
        f"Pictures in more than one split: 2, {splits}. What is measured on them is too good.",
        "Pictures with different labels: 2, sample 0 (0) and sample 41 (1); sample 1 (1) and sample 50 (0).",
    ]
    x[:] = x[:1]
    first = next(data_warnings(data(x=x)))
    assert first.startswith("Pictures in more than one split: 1, sample 0 (train) and sample 40 (val).")


def test_no_validation_samples():
    (found,) = search_warnings(data().take(range(40)))
    assert found.startswith("A search needs at least 8 validation samples, and there are 0: val=N (--val N) makes")
    assert list(search_warnings(data().take(range(47))))
    assert not list(search_warnings(data().take(range(48))))


def test_names_cannot_break_a_warning():
    (found,) = data_warnings(data(["a\nb\x1b[2J"] * 60))
    assert found == r"All training samples have the label a\nb\x1b[2J: there is nothing to tell apart."
    (found,) = data_warnings(data(["x", "y"] * 25 + ["a\nb"] * 10))
    assert found == r"No training sample has the label a\nb."
