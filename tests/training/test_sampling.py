from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from augtree.training.sampling import stream, stream_of_batches


@given(st.integers(1, 12), st.integers(0, 40), st.integers(1, 40), st.data())
def test_the_stream_does_not_depend_on_how_it_is_cut(size, start, count, data):
    samples = np.arange(size) * 3
    which, where = stream(samples, start, count, 5)
    cut = data.draw(st.integers(1, count))
    parts = [stream(samples, start, cut, 5)]
    if cut < count:
        parts.append(stream(samples, start + cut, count - cut, 5))
    assert which.tolist() == [i for part in parts for i in part[0]]
    assert where.tolist() == [i for part in parts for i in part[1]]


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**40))
def test_each_epoch_has_every_sample_once_and_draws_of_its_own(size, epochs, seed):
    samples = np.arange(size) * 3
    which, where = stream(samples, 0, size * epochs, seed)
    for epoch in range(epochs):
        assert sorted(which[epoch * size : (epoch + 1) * size]) == samples.tolist()
    assert max(Counter(where.tolist()).values()) == 1


def test_epochs_and_seeds_are_shuffled_differently():
    which, _ = stream(np.arange(50), 0, 100, 0)
    other, _ = stream(np.arange(50), 0, 50, 1)
    orders = {tuple(which[:50]), tuple(which[50:]), tuple(other), tuple(range(50))}
    assert len(orders) == 4


def test_where_batches_fill_an_epoch_nobody_is_left_out():
    rows = np.arange(3, 51)
    for start, count in ((0, 16), (16, 160), (80, 48)):
        found, wanted = stream_of_batches(rows, 16, start, count, 5), stream(rows, start, count, 5)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
