import numpy as np
import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from augtree.errors import InputError
from augtree.models.neighbour_sums import Sums

EDGES = torch.tensor([[3, 0, 2, 0, 0, 2], [1, 2, 1, 1, 3, 1]])
"""Node 0 has no neighbour that an edge comes from, and one edge is there twice."""


def matrix(sums):
    """The same map as a dense matrix, made in a loop."""
    out = torch.zeros(sums.sizes[::-1], dtype=torch.float64)
    for source, target in zip(sums.sources.tolist(), sums.targets.tolist(), strict=True):
        out[target, source] += 1
    return out


def random_sums(seed, rows=40, out=25, pairs=300):
    rng = np.random.default_rng(seed)
    return Sums(
        torch.from_numpy(rng.integers(0, rows, pairs)), torch.from_numpy(rng.integers(0, out, pairs)), (rows, out)
    )


MAPS = {
    "neighbours": Sums.over_neighbours(EDGES, 5),
    "members": Sums.over_members(torch.tensor([0, 0, 2, 2, 2]), 4),
    "members in any order": Sums.over_members(torch.tensor([2, 0, 1, 0, 2]), 3),
    "pairs at random": random_sums(0),
    "no pair": Sums.over_neighbours(torch.empty(2, 0, dtype=torch.int64), 3),
}


def rows_for(sums, columns=2, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return torch.randn(sums.sizes[0], columns, dtype=dtype, **options)


def test_by_hand():
    found = Sums.over_neighbours(EDGES, 5)(torch.tensor([[1.0], [10.0], [100.0], [1000.0], [10000.0]]))
    assert found.flatten().tolist() == [0, 1000 + 100 + 1 + 100, 1, 1, 0]


@pytest.mark.parametrize("sums", MAPS.values(), ids=MAPS)
def test_the_sums_are_a_product_with_the_dense_matrix(sums):
    x = rows_for(sums)
    torch.testing.assert_close(sums(x), matrix(sums) @ x, rtol=1e-13, atol=1e-13)
    turned = x.T.contiguous().T  # the rows do not stand one behind the other
    torch.testing.assert_close(sums(turned), matrix(sums) @ x, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sums", MAPS.values(), ids=MAPS)
def test_gradients_are_those_of_the_matrix(sums):
    x = rows_for(sums, requires_grad=True)
    given = torch.randn(sums.sizes[1], 2, dtype=torch.float64)
    (found,) = torch.autograd.grad(sums(x), x, given)
    torch.testing.assert_close(found, matrix(sums).T @ given, rtol=1e-13, atol=1e-13)
    (found,) = torch.autograd.grad(sums(x).sum(), x)  # a gradient that is one number, expanded
    torch.testing.assert_close(found, matrix(sums).sum(0)[:, None].expand(-1, 2))


@pytest.mark.parametrize("sums", MAPS.values(), ids=MAPS)
def test_derivatives_against_finite_differences(sums):
    x = rows_for(sums, requires_grad=True)

    def curved(x):
        return sums(x.sin()).square()

    assert gradcheck(curved, x, check_forward_ad=True)
    assert gradgradcheck(curved, x)


def test_forward_mode_goes_through_other_operations():
    sums = MAPS["pairs at random"]
    x, direction = rows_for(sums), torch.ones(sums.sizes[0], 2, dtype=torch.float64)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(sums(forward_ad.make_dual(x, direction) * 3)).tangent
    torch.testing.assert_close(tangent, 3 * matrix(sums) @ direction)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_types(dtype):
    """Of 3000 ones in bfloat16, one after the other, the sum would be 256."""
    found = Sums.over_members(torch.zeros(3000, dtype=torch.int64), 1)(torch.ones(3000, 2, dtype=dtype))
    assert found.dtype == dtype
    assert found.tolist() == [[3000.0 if dtype == torch.float32 else 3008.0] * 2]


@pytest.mark.parametrize("sums", MAPS.values(), ids=MAPS)
def test_gpus_sum_the_same(sums):
    """By scattered additions, here on the CPU."""
    torch.testing.assert_close(sums.row_by_row(rows_for(sums)), sums(rows_for(sums)), rtol=1e-13, atol=1e-13)


def test_rows_keep_their_order_within_a_sum():
    """So that sums are the same to the bit, whatever else is in the batch."""
    rows, starts = Sums.over_neighbours(EDGES, 5).forward_bags
    assert rows.tolist() == [3, 2, 0, 2, 0, 0]
    assert starts.tolist() == [0, 0, 4, 5, 6, 6]


def test_an_edge_to_nowhere_is_refused():
    with pytest.raises(InputError, match="an edge must join nodes from 0 to 0, got 5"):
        Sums.over_neighbours(torch.tensor([[0], [5]]), 1)(torch.ones(1, 1))
