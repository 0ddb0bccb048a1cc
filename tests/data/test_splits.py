import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from augtree.data.splits import choose, complete_split, make_split, parts, split_number, spread, strata
from augtree.errors import ArgumentError

LABELS = np.repeat([0, 1, 2], [50, 30, 20])


def counts(split, which=slice(None)):
    return np.bincount(split[which], minlength=3).tolist()


def test_the_shares_hold_in_every_class():
    split = make_split(LABELS, seed=0)
    assert split.dtype == np.int8
    assert [counts(split, label == LABELS) for label in range(3)] == [[30, 10, 10], [18, 6, 6], [12, 4, 4]]


def test_the_shares_hold_in_every_class_of_every_group():
    groups = np.tile([0, 1, 2, 3, 4], 20)
    split = make_split(LABELS, groups=groups, seed=1)
    for label in range(3):
        for group in range(5):
            which = (label == LABELS) & (group == groups)
            expected = np.array([0.6, 0.2, 0.2]) * which.sum()
            assert np.abs(counts(split, which) - expected).max() <= 1


def test_the_seed_alone_decides():
    first = make_split(LABELS, seed=3)
    torch.manual_seed(5)
    np.random.seed(5)
    assert (make_split(torch.from_numpy(LABELS), seed=3) == first).all()
    assert (make_split(LABELS, seed=4) != first).any()


def test_a_split_is_the_same_for_ever():
    # Runs that were kept name their split by its seed alone.
    assert make_split([0] * 6 + [1] * 4, seed=0).tolist() == [0, 0, 0, 2, 1, 0, 1, 2, 0, 0]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 3), st.booleans())
def test_a_class_with_three_samples_is_everywhere_and_any_class_is_trained_on(labels, seed, grouped):
    labels = np.array(labels)
    groups = np.arange(len(labels)) % 7 if grouped else None
    split = make_split(labels, groups=groups, seed=seed)
    for label in np.unique(labels):
        found = counts(split, labels == label)
        assert found[0] > 0
        assert min(found) > 0 or sum(found) < 3


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=80), st.integers(0, 3))
def test_no_unit_is_in_two_splits_and_no_split_is_empty(pairs, seed):
    labels, clusters = np.array(pairs).T
    if len(set(clusters)) < 3:
        with pytest.raises(ArgumentError, match="clusters must be at least 3 different ones"):
            make_split(labels, clusters=clusters, seed=seed)
        return
    split = make_split(labels, clusters=clusters, seed=seed)
    assert all(len(set(split[clusters == cluster])) == 1 for cluster in clusters)
    assert min(counts(split)) > 0


def test_units_meet_the_shares_of_each_class_as_nearly_as_they_can():
    clusters = np.repeat(np.arange(100), 10)
    labels = np.repeat(np.arange(100) % 4, 10)  # every cluster is of one class
    split = make_split(labels, clusters=clusters.astype(str), seed=0)
    for label in range(4):
        assert np.abs(np.array(counts(split, labels == label)) - [150, 50, 50]).max() <= 10


def test_a_split_without_validation_takes_it_from_training():
    split = np.array([0] * 80 + [2] * 20, np.int8)
    labels = np.arange(100) % 2
    done, notes = complete_split(split, labels, seed=0)
    assert counts(done) == [64, 16, 20]
    assert counts(done, labels == 0) == [32, 8, 10]
    assert (done[80:] == 2).all()
    assert notes == ("no validation samples are given: 16 training samples (20 %) became them, seed 0",)
    assert counts(split) == [80, 0, 20]


def test_a_split_without_test_stays_so_and_says_it():
    split = np.array([0, 0, 1], np.int8)
    done, notes = complete_split(split, [0, 1, 0])
    assert done.tolist() == [0, 0, 1]
    assert notes == ("no test samples are given, so there is no test score",)


def test_several_labels_count_as_the_rarest():
    assert strata([[1, 0], [1, 1], [0, 0], [1, 0]]).tolist() == [0, 1, 2, 0]


def test_a_choice_has_the_shares_of_the_classes_and_grows():
    few = choose(LABELS, 10, seed=0, role="few")
    more = choose(LABELS, 20, seed=0, role="few")
    assert np.bincount(LABELS[few]).tolist() == [5, 3, 2]
    assert np.bincount(LABELS[more]).tolist() == [10, 6, 4]
    assert set(few) < set(more)
    assert set(choose(LABELS, 10, seed=1, role="few")) != set(few)
    assert choose(LABELS, 100, seed=0, role="few").tolist() == list(range(100))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any), st.data())
def test_parts_sum_to_the_total_and_never_exceed_what_is_there(sizes, data):
    sizes = np.array(sizes)
    total = data.draw(st.integers(0, int(sizes.sum())))
    found = parts(total, sizes / sizes.sum())
    assert found.sum() == total
    assert (found <= sizes).all()
    assert (found >= 0).all()
    if total >= (sizes > 0).sum():
        assert (found[sizes > 0] > 0).all()


def test_parts_are_mixed_evenly():
    assert spread(np.array([3, 1, 1])).tolist() == [0, 0, 1, 2, 0]


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5), (0.5, 0.6, -0.1), (0, 0.5, 0.5), (0.6, 0.2, 0.1), (float("nan"), 0, 1)]
)
def test_shares_that_are_none(shares):
    with pytest.raises(ArgumentError, match=r"shares must be three numbers \(train, val, test\) that sum to 1"):
        make_split(LABELS, shares=shares, seed=0)


def test_names_of_splits():
    names = ["train", " Val", "VALID", "validation", "dev", "test"]
    assert [split_number(name) for name in names] == [0, 1, 1, 1, 1, 2]
    assert split_number("tset") is None
    assert split_number(3) is None
