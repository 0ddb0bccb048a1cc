import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from augtree.errors import ArgumentError
from augtree.keys import (
    ELEMENT,
    GOLDEN,
    Key,
    element_bits,
    element_words,
    fold,
    fold_word,
    fresh_seed,
    mix,
    mix_tensor,
)


def splitmix64(state: int) -> int:
    """Steele, Lea and Flood's generator, in Python's integers."""
    mask = (1 << 64) - 1
    z = (state + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_the_mixer_is_splitmix64():
    # 0xE220A8397B1DCDAF is the published first output for seed 0.
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    assert int(mix(np.array([GOLDEN], np.uint64))[0]) == 0xE220A8397B1DCDAF


@given(st.integers(0, 2**64 - 1))
def test_numpy_and_torch_mix_alike(word):
    array = np.array([word], np.uint64)
    assert int(mix(array)[0]) == splitmix64((word - GOLDEN) % 2**64)
    assert mix_tensor(torch.from_numpy(array.view(np.int64))).numpy().view(np.uint64)[0] == mix(array)[0]


@given(st.integers(0, 2**64 - 1), st.integers(-(2**64), 2**64), st.integers(0, 2**64 - 1))
def test_words_fold_alike_one_by_one(state, value, purpose):
    assert fold_word(state, value, purpose) == int(fold(np.array([state], np.uint64), value, purpose)[0])


def test_draws_do_not_depend_on_how_a_batch_is_split():
    whole = Key.of(7, range(10), step=3).at(2)
    part = Key.of(7, range(4, 10), step=3).at(2)
    assert np.array_equal(whole.uniform(5)[4:], part.uniform(5))
    assert np.array_equal(whole.take(np.arange(4, 10)).uniform(5), part.uniform(5))


def test_draws_depend_on_everything_else():
    base = dict(seed=1, index=[5], role="apply", step=0)
    draws = [Key.of(**base).at(1).uniform(0)[0]]
    changes = ({"seed": 2}, {"index": [6]}, {"role": "validate"}, {"step": 1})
    draws += [Key.of(**(base | change)).at(1).uniform(0)[0] for change in changes]
    draws += [Key.of(**base).at(2).uniform(0)[0], Key.of(**base).at(1).uniform(1)[0], Key.of(**base).uniform(1)[0]]
    assert len(set(draws)) == len(draws)


def test_negative_and_huge_seeds_are_seeds():
    draws = {Key.of(seed, [0]).uniform()[0] for seed in (-1, 0, 1, 2**63, 2**64 - 2)}
    assert len(draws) == 5


def test_uniform_draws_are_uniform_and_unrelated():
    key = Key.of(0, range(40_000))
    columns = [
        key.uniform(0),
        key.uniform(1),
        key.at(1).uniform(0),
        key.at(2).uniform(0),
        Key.of(1, range(40_000)).uniform(0),
    ]
    columns.append(Key.of(0, range(40_000), step=1).uniform(0))
    for draws in columns:
        counts = np.histogram(draws, bins=100, range=(0, 1))[0]
        assert ((counts - 400) ** 2 / 400).sum() < 160  # chi-square, 99 degrees of freedom: 1 in 10,000
    assert np.abs(np.corrcoef(columns) - np.eye(len(columns))).max() < 0.02
    assert abs(np.corrcoef(columns[0][1:], columns[0][:-1])[0, 1]) < 0.02


def test_whole_numbers_stay_below():
    draws = Key.of(0, range(10_000)).below(7)
    assert sorted(set(draws.tolist())) == list(range(7))
    assert np.bincount(draws).min() > 1300


def test_element_bits_are_uniform_and_belong_to_their_sample():
    states = torch.from_numpy(Key.of(0, range(2)).state.view(np.int64))
    numbers = torch.arange(50_000)
    one, other = (element_bits(state, numbers) for state in states)
    assert bool((one >= 0).all())
    counts = torch.bincount(one >> 56, minlength=128).double()
    assert float(((counts - 50_000 / 128) ** 2 / (50_000 / 128)).sum()) < 200  # 127 degrees of freedom
    assert abs(float(torch.corrcoef(torch.stack([one.double(), other.double()]))[0, 1])) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([one[1:].double(), one[:-1].double()]))[0, 1])) < 0.02
    assert not torch.equal(one, element_bits(states[0], numbers, 1))
    for counter in (0, 5):
        words = element_words(states[0].numpy(), numbers.numpy(), counter)
        assert torch.equal(torch.from_numpy(words), element_bits(states[0], numbers, counter))
    by_hand = splitmix64((int(states[0]) ^ ELEMENT) + 3 * GOLDEN - GOLDEN) >> 1
    assert int(one[3]) == by_hand


def test_an_unseeded_call_takes_one_number_from_torch():
    torch.manual_seed(5)
    seed, after = fresh_seed(), torch.rand(())
    torch.manual_seed(5)
    assert (fresh_seed(), torch.rand(())) == (seed, after)


@pytest.mark.parametrize("seed", [1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ArgumentError, match="seed must be a whole number"):
        Key.of(seed, [0])
