import pytest
import torch

from augtree.models.graph import degrees, one_hot, pool
from augtree.models.neighbour_sums import Sums


def test_degrees_count_the_edges_that_come_in():
    assert degrees(torch.tensor([[0, 1, 2, 2], [1, 0, 1, 1]]), 4).tolist() == [1, 3, 0, 0]
    assert degrees(torch.empty(2, 0, dtype=torch.int64), 2).tolist() == [0, 0]


def test_the_last_column_is_for_all_that_are_higher():
    assert one_hot(torch.tensor([0, 2, 1, 3, 9]), 2).int().tolist() == [
        [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 1]]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "expected"),
    [("sum", [[0.0], [-8.0], [0.0]]), ("mean", [[0.0], [-4.0], [0.0]]), ("max", [[0.0], [-3.0], [0.0]])],
)
def test_a_graph_without_nodes_is_zero(how, expected):
    members = Sums.over_members(torch.tensor([1, 1]), 3)
    assert pool(torch.tensor([[-3.0], [-5.0]]), members, how).tolist() == expected
