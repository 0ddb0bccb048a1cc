import numpy as np
import pytest

from augtree.data.proteins.build.edges import Graph, near_pairs, packed, unpacked
from augtree.data.proteins.build.fragments import join
from augtree.errors import DataError


def graph(points, begin, types, plddt, skip=()):
    kept = [i for i in range(len(points)) if i not in skip]
    points = np.array(points, float)[kept]
    up_degree, offset = packed(near_pairs(points, 6.0), len(points))
    numbers = np.array([begin + i for i in kept], np.int32)
    return Graph(
        np.full(len(kept), types, np.uint8), numbers, np.full(len(kept), plddt, np.float32), up_degree, offset, 1, 1
    )


def pairs(found):
    return (found.numbers[unpacked(found.up_degree, found.offset)]).T.tolist()


def test_two_windows_of_a_line():
    # 1..6 and 4..9; in the second, 5 and 6 are far apart, and 7 is near 5 as well as 6.
    first = graph([[4 * i, 0, 0] for i in range(6)], 1, 0, 90)
    second = graph([[4, 0, 0], [8, 0, 0], [20, 0, 0], [14, 0, 0], [24, 0, 0], [27, 0, 0]], 4, 1, 80)
    assert pairs(first) == [[1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]
    assert pairs(second) == [[4, 5], [6, 8], [8, 9]]
    found = join([first, second])
    assert found.numbers.tolist() == list(range(1, 10))
    # The middles are 3.5 and 6.5: numbers up to 5 (equally near: the first) count in the first, from 6 in the second.
    assert found.residues.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert found.plddt.tolist() == [90] * 5 + [80] * 4
    # 4-5 (middle 4.5) is the first's; 5-6 (middle 5.5) is the second's, where it is far; 6-8 only the second has.
    assert pairs(found) == [[1, 2], [2, 3], [3, 4], [4, 5], [6, 8], [8, 9]]
    assert (found.chains, found.skipped) == (1, 2)


def test_a_residue_that_its_fragment_lacks_comes_from_another():
    points = [[4 * i, 0, 0] for i in range(6)]
    found = join([graph(points, 1, 0, 90), graph(points, 4, 1, 80, skip=(2,))])
    assert found.numbers.tolist() == list(range(1, 10))
    assert found.residues.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_windows_of_alphafold_give_the_whole_length():
    # 2,900 residues on a line: windows of 1,400 that begin at 1, 201, ... 1,601 (the last one shorter).
    windows = [graph([[4 * i, 0, 0] for i in range(min(1400, 2900 - 200 * k))], 200 * k + 1, 0, 50) for k in range(9)]
    found = join(windows)
    assert found.numbers.tolist() == list(range(1, 2901))
    assert pairs(found) == [[i, i + 1] for i in range(1, 2900)]


def test_several_chains_cannot_be_joined():
    one = graph([[0, 0, 0], [4, 0, 0]], 1, 0, 90)
    two = Graph(one.residues, np.array([3, 3], np.int32), one.plddt, one.up_degree, one.offset, 2, 0)
    with pytest.raises(DataError, match="must have one chain with rising residue numbers in each fragment"):
        join([one, two])
