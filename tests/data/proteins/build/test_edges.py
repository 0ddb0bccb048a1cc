import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree.data.proteins.build.edges import both_ways, near_pairs, packed, unpacked


def brute_force(points, cutoff):
    square = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    return [pair for pair in np.argwhere(square < cutoff**2).tolist() if pair[0] < pair[1]]


@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([0.5, 3.0, 6.0, 50.0]))
def test_pairs_are_those_of_the_distance_matrix(seed, count, cutoff):
    # Whole coordinates put many distances exactly on the cutoff.
    points = np.random.default_rng(seed).integers(-9, 10, (count, 3)).astype(float)
    assert near_pairs(points, cutoff).T.tolist() == brute_force(points, cutoff)


def test_closer_than_the_cutoff_is_strict():
    line = np.array([[0.0, 0, 0], [6.0, 0, 0], [11.9, 0, 0]])
    assert near_pairs(line, 6.0).tolist() == [[1], [2]]


def test_the_compact_form_and_back():
    pairs = np.array([[0, 0, 2], [1, 3, 3]])
    up_degree, offset = packed(pairs, 5)
    assert (up_degree.tolist(), offset.tolist()) == ([2, 0, 1, 0, 0], [1, 3, 1])
    assert unpacked(up_degree, offset).tolist() == pairs.tolist()
    assert both_ways(pairs, 5).tolist() == [[0, 0, 1, 2, 3, 3], [1, 3, 0, 3, 0, 2]]


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_graph_without_edges(nodes):
    pairs = near_pairs(100.0 * np.arange(3 * nodes).reshape(nodes, 3), 6.0)
    up_degree, offset = packed(pairs, nodes)
    assert both_ways(unpacked(up_degree, offset), nodes).shape == (2, 0)
    assert up_degree.tolist() == [0] * nodes
