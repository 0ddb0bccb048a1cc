"""The order of the samples of several groups."""

import itertools

import numpy as np
import pytest

from augtree.forests.sampling import mixed_order, skip_short_epochs, spread_repeats


def test_samples_are_drawn_by_weight_and_every_group_goes_on_where_it_was():
    rows = [np.arange(5), np.arange(5, 25)]
    first = mixed_order(rows, (0, 0), np.array([10, 10]), 0, 0, seed=3)(0, 20)[0]
    assert sorted(first[first < 5]) == sorted([*range(5), *range(5)])
    second = mixed_order(rows, (10, 10), np.array([2, 10]), 100, 1, seed=3)(100, 12)[0]
    assert sorted(np.concatenate([first[first >= 5], second[second >= 5]])) == list(range(5, 25))
    assert first.tolist() != sorted(first)


def test_without_batches_the_order_is_that_of_former_runs():
    rows = [np.arange(3), np.arange(3, 9)]
    which, where = mixed_order(rows, (2, 5), np.array([4, 4]), 0, 1, seed=7)(0, 8)
    assert which.tolist() == [0, 1, 6, 4, 2, 8, 5, 1]
    assert (where >> 32).tolist() == [1, 1, 1, 0, 1, 1, 1, 0]


def in_batches(sizes, each, batches, seed, drawn=None):
    """The samples of each batch, for groups of some sizes."""
    ends = np.cumsum([0, *sizes])
    rows = [np.arange(low, high) for low, high in itertools.pairwise(ends)]
    each = np.array(each)
    drawn = skip_short_epochs(np.array(drawn or [0] * len(sizes)), each, np.array(sizes), batches)
    which, where = mixed_order(rows, drawn, each, 0, 4, seed, batches)(0, int(each.sum()))
    plain = mixed_order(rows, drawn, each, 0, 4, seed)(0, int(each.sum()))
    assert sorted(zip(which, where, strict=True)) == sorted(zip(*plain, strict=True))  # the same, in another order
    return which.reshape(batches, -1)


def repeated(batches):
    """The samples that a batch holds twice."""
    return {
        int(name) for batch in batches for name, n in zip(*np.unique(batch, return_counts=True), strict=True) if n > 1
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sizes", "each", "batches", "drawn"),
    [
        ([30, 50], [40, 40], 10, [0, 0]),
        ([30, 50], [40, 40], 10, [17, 44]),  # an epoch ends within the round
        ([8, 100], [40, 40], 5, [0, 0]),  # every batch has the whole group
        ([8, 100], [40, 40], 5, [3, 70]),
        ([8, 100, 9], [4, 8, 4], 1, [6, 96, 9]),  # one batch, in which an epoch would end
        ([5, 7], [60, 84], 12, [0, 0]),  # every batch has all samples
        ([200], [64], 4, [150]),
        ([9, 11, 40], [0, 20, 100], 6, [5, 5, 5]),
    ],
)
def test_no_batch_holds_a_sample_twice(sizes, each, batches, drawn, seed):
    assert repeated(in_batches(sizes, each, batches, seed, drawn)) == set()


def test_only_the_samples_of_a_group_that_is_too_small_are_in_a_batch_twice():
    for seed in range(5):
        found = repeated(in_batches([4, 60], [40, 40], 5, seed))
        assert found
        assert found <= set(range(4))


def test_samples_that_come_often_meet_others_each_time():
    found = in_batches([20, 20], [100, 100], 20, seed=0)  # 10 of 40 samples in each
    assert len({tuple(sorted(batch)) for batch in found}) == 20
    steps = [[i for i, batch in enumerate(found) if name in batch] for name in range(40)]
    assert {len(each) for each in steps} == {5}
    wide = np.mean([max(each) - min(each) for each in steps])
    assert wide == pytest.approx(20 * 4 / 6, abs=2)  # as five of twenty that are drawn by chance; in a row it is 4


def test_only_a_group_whose_epoch_would_end_too_soon_skips_the_rest_of_it():
    """Of 8 samples with 6 drawn, the next 4 are from two epochs: too many for one batch, not for two."""
    drawn, each, counts = np.array([6, 0]), np.array([4, 4]), np.array([8, 8])
    assert skip_short_epochs(drawn, each, counts, 1).tolist() == [8, 0]
    assert skip_short_epochs(drawn, each, counts, 2).tolist() == [6, 0]
    assert skip_short_epochs(np.array([8, 16]), each, counts, 1).tolist() == [8, 16]  # at the end of one


def test_an_order_is_spread_in_place_of_samples_and_stays_a_permutation():
    which = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    found = spread_repeats(which, 2, 0, seed=1)
    assert sorted(found) == list(range(8))
    for batch in which[found].reshape(2, 4):
        assert sorted(batch) == [0, 1, 2, 3]
    assert found.tolist() == spread_repeats(which, 2, 0, seed=1).tolist()
    orders = {tuple(spread_repeats(which, 2, t, seed=1)) for t in range(10)}
    assert len(orders) > 1  # another at each t


def test_an_order_is_asked_for_in_pieces():
    order = mixed_order([np.arange(5), np.arange(5, 12)], (0, 0), np.array([4, 6]), 30, 2, seed=5)
    whole, pieces = order(30, 10), [order(30, 4), order(34, 6)]
    for side in (0, 1):
        assert whole[side].tolist() == [*pieces[0][side], *pieces[1][side]]
