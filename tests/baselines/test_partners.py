import numpy as np

from augtree.baselines.partners import drawn_partners, label_numbers
from support.small_graphs import paths


def test_a_partner_is_the_nth_of_those_that_are_allowed():
    allowed = np.array([[True, False, True, True]] * 4 + [[False] * 4])
    assert drawn_partners(allowed, np.array([0.0, 0.34, 0.67, 0.9999999, 0.5])).tolist() == [0, 2, 3, 3, -1]


def test_sets_of_labels_are_the_same_where_all_labels_are():
    data = paths(np.array([[0, 1], [1, 1], [0, 1], [0, 0]]), np.array(["a"] * 4))
    one, two, three, four = label_numbers(data, np.arange(4))
    assert one == three
    assert len({one, two, four}) == 3
    single = paths(np.array([2, 0, 2, 1]), np.array(["a"] * 4))
    assert label_numbers(single, np.array([0, 1, 2])).tolist() == [1, 0, 1]
