import math

import pytest
import torch
from torch import nn

from augtree.tasks.contrastive_losses import alignment, blocks, neighbour_votes, nt_xent, uniformity
from support.contrastive import nt_xent_by_loops


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
def test_nt_xent_is_the_double_loop(temperature):
    one, two = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = nt_xent(one, two, temperature)
    assert found.tolist() == pytest.approx(nt_xent_by_loops(one.tolist(), two.tolist(), temperature), rel=1e-10)


def test_nt_xent_stays_finite_at_a_low_temperature():
    one, two = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    loss = nt_xent(one, two, 0.001)
    assert torch.isfinite(loss).all()
    loss.mean().backward()


def test_votes_are_those_of_a_loop():
    made = torch.Generator().manual_seed(2)
    queries, memory = (nn.functional.normalize(torch.randn(n, 4, generator=made), dim=1) for n in (5, 30))
    classes = torch.randint(0, 3, (30,), generator=made)
    found = neighbour_votes(queries, memory, nn.functional.one_hot(classes, 3).float(), 7, 0.2)
    for query, votes in zip(queries.tolist(), found.tolist(), strict=True):
        cosines = sorted(
            ((sum(a * b for a, b in zip(query, known, strict=True)), int(c))
             for known, c in zip(memory.tolist(), classes, strict=True)), reverse=True)[:7]  # fmt: skip
        weights = [math.exp(cos / 0.2) for cos, _ in cosines]
        wanted = [sum(w for w, (_, c) in zip(weights, cosines, strict=True) if c == k) for k in range(3)]
        assert votes == pytest.approx([w / sum(weights) for w in wanted], abs=1e-5)


def test_alignment_and_uniformity_on_worked_examples():
    one = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    two = torch.tensor([[0.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    assert alignment(one, two).tolist() == pytest.approx([2, 0, 0])
    # From (1, 0) the others are at distance 2 and 4, squared; in the second view from (0, 1) at 0 and 2.
    first = (math.log((math.exp(-4) + math.exp(-8)) / 2) + math.log((1 + math.exp(-4)) / 2)) / 2
    assert float(uniformity(one, two)[0]) == pytest.approx(first, abs=1e-5)
    same_place = torch.tensor([[1.0, 0.0]]).repeat(4, 1)
    assert uniformity(one[:1], two[:1]).tolist() == [0]
    assert uniformity(same_place, same_place).tolist() == pytest.approx([0] * 4)  # the worst there is


def test_blocks_leave_nobody_alone():
    assert [(b.start, b.stop) for b in blocks(9, 4)] == [(0, 4), (4, 9)]
    assert [(b.start, b.stop) for b in blocks(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert [(b.start, b.stop) for b in blocks(1, 4)] == [(0, 1)]
