"""Sums of rows that belong together, such as a node's neighbours or a graph's nodes.

On a CPU, adding row after row takes far longer than a pass over rows that are in order already. So
the pairs are put in order once for a batch, and all layers and their gradients run over them in that order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.errors import InputError
from augtree.transforms.graph_batch import in_order


class Bags(NamedTuple):
    """Which rows are summed: those of sum i stand at rows[starts[i] : starts[i + 1]]."""

    rows: Tensor
    starts: Tensor


class Sums:
    """A linear map: row t of what comes out is the sum of the rows s of what goes in, over all pairs (s, t)."""

    def __init__(self, sources: Tensor, targets: Tensor, sizes: tuple[int, int]) -> None:
        """`sizes` are the numbers of rows that go in and that come out."""
        self.sources, self.targets, self.sizes = sources, targets, sizes

    @classmethod
    def over_neighbours(cls, edges: Tensor, nodes: int) -> Sums:
        """Over the nodes from which an edge comes; it goes from edges[0] to edges[1]."""
        return cls(edges[0], edges[1], (nodes, nodes))

    @classmethod
    def over_members(cls, graph: Tensor, graphs: int) -> Sums:
        """Over the nodes of each graph."""
        return cls(torch.arange(len(graph), device=graph.device), graph, (len(graph), graphs))

    @cached_property
    def there(self) -> Bags:
        """What each row that comes out is the sum of."""
        return in_bags(self.sources, self.targets, self.sizes[1])

    @cached_property
    def back(self) -> Bags:
        """The transposed map, that of gradients."""
        return in_bags(self.targets, self.sources, self.sizes[0])

    def __call__(self, x: Tensor) -> Tensor:
        """The sums of the rows of x [rows, columns]."""
        if x.device.type == "cpu":
            return Summed.apply(x, self, False)  # type: ignore[no-any-return, no-untyped-call]
        return self.row_by_row(x)

    def row_by_row(self, x: Tensor) -> Tensor:
        """The same for a GPU, whose threads share the rows among them."""
        return x.new_zeros(self.sizes[1], x.shape[1]).index_add(0, self.targets, x[self.sources])


class Summed(torch.autograd.Function):
    """The sums, and their derivatives in both directions and of any order, which are sums too."""

    @staticmethod
    def forward(x: Tensor, sums: Sums, back: bool) -> Tensor:
        """The sums, or those of the transposed map."""
        rows, starts = sums.back if back else sums.there
        return F.embedding_bag(rows, x.contiguous(), starts, mode="sum", include_last_offset=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Sums, bool], output: Tensor) -> None:  # noqa: ARG004
        """Keep the map."""
        _, ctx.sums, ctx.back = inputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The transposed map of a gradient."""
        return Summed.apply(gradient, ctx.sums, not ctx.back), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        """The map of a direction."""
        return Summed.apply(tangent, ctx.sums, ctx.back)  # type: ignore[no-any-return, no-untyped-call]


def in_bags(rows: Tensor, keys: Tensor, count: int) -> Bags:
    """Rows with the same key, one of 0 ... count - 1, side by side, in the order that they had."""
    starts = torch.cat([keys.new_zeros(1), torch.bincount(keys, minlength=count).cumsum(0)])
    if len(starts) > count + 1:
        raise InputError(f"an edge must join nodes from 0 to {count - 1}, got {int(keys.max())}")
    return Bags(in_order(rows, keys).contiguous(), starts)
