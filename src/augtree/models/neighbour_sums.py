"""Sums of rows that belong together, such as a node's neighbours or a graph's nodes.

On a CPU, scattered additions are far slower than a pass over sorted rows. So the pairs of a batch are sorted once,
and all layers and their gradients go over them in that order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.errors import InputError
from augtree.transforms.graph_batch import in_order

is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)
"""Whether torch.export is at work, which takes no functions with derivatives of their own."""


class Sums:
    """A linear map: output row t is the sum of the input rows s over all pairs (s, t)."""

    def __init__(self, sources: Tensor, targets: Tensor, sizes: tuple[int, int]) -> None:
        """`sizes` are the numbers of input and output rows."""
        self.sources, self.targets, self.sizes = sources, targets, sizes

    @classmethod
    def over_neighbours(cls, edges: Tensor, nodes: int) -> Sums:
        """For each node, the sum over the sources of its incoming edges; an edge goes from edges[0] to edges[1]."""
        return cls(edges[0], edges[1], (nodes, nodes))

    @classmethod
    def over_members(cls, graph: Tensor, graphs: int) -> Sums:
        """For each graph, the sum over its nodes; `graph` is the graph of each node."""
        nodes = graph.shape[0]  # and not len(graph), which torch.export would take for a constant
        return cls(torch.arange(nodes, device=graph.device), graph, (nodes, graphs))

    @cached_property
    def forward_bags(self) -> tuple[Tensor, Tensor]:
        """The input rows of all output rows, and where those of each begin."""
        return in_bags(self.sources, self.targets, self.sizes[1])

    @cached_property
    def backward_bags(self) -> tuple[Tensor, Tensor]:
        """Those of the transposed map, for gradients."""
        return in_bags(self.targets, self.sources, self.sizes[0])

    def __call__(self, x: Tensor) -> Tensor:
        """The sums of the rows of x [rows, columns]."""
        if x.device.type == "cpu" and not is_exporting():
            return SumFunction.apply(x, self, False)  # type: ignore[no-any-return, no-untyped-call]
        return self.row_by_row(x)

    def row_by_row(self, x: Tensor) -> Tensor:
        """The same by scattered additions, which are fast on a GPU."""
        return x.new_zeros(self.sizes[1], x.shape[1]).index_add(0, self.targets, x[self.sources])


class SumFunction(torch.autograd.Function):
    """The sums, with forward-mode and reverse-mode derivatives of any order, which are sums too."""

    @staticmethod
    def forward(x: Tensor, sums: Sums, transposed: bool) -> Tensor:
        """The sums, or those of the transposed map."""
        rows, starts = sums.backward_bags if transposed else sums.forward_bags
        return F.embedding_bag(rows, x.contiguous(), starts, mode="sum", include_last_offset=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Sums, bool], output: Tensor) -> None:  # noqa: ARG004
        """Store the map for the derivatives."""
        _, ctx.sums, ctx.transposed = inputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The transposed map of the gradient."""
        return SumFunction.apply(gradient, ctx.sums, not ctx.transposed), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        """The map of the tangent."""
        return SumFunction.apply(tangent, ctx.sums, ctx.transposed)  # type: ignore[no-any-return, no-untyped-call]


def in_bags(rows: Tensor, keys: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Rows sorted by their key (from 0 to count - 1), in their old order where keys are equal, and where each begins.

    Those of key i are rows[starts[i] : starts[i + 1]].
    """
    starts = torch.cat([keys.new_zeros(1), torch.bincount(keys, minlength=count).cumsum(0)])
    if len(starts) > count + 1:
        raise InputError(f"an edge must join nodes from 0 to {count - 1}, got {int(keys.max())}")
    return in_order(rows, keys).contiguous(), starts
