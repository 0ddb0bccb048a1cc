"""What arrays do on a CPU is what tensors do elsewhere."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch

from augtree.transforms import (
    DropNodes,
    GraphCL,
    MaskNodes,
    PermuteEdges,
    Subgraph,
    graph_batch,
    graph_fields,
    graph_pairs,
    graphs,
)
from augtree.transforms import graph_arrays as arrays
from support.rings import ring

BOTH = [arrays.array, lambda numbers: numbers]


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(2**62, 2**62 + 9), max_size=40), st.sampled_from([0, 57, 60]))
def test_orders_are_stable_however_long_the_keys(keys, short):
    """Keys of 63 bits leave no room for their numbers, so that those with a common beginning are sorted twice."""
    found = arrays.stable_order(np.array([key >> short for key in keys], np.int64), 63 - short)
    assert found.tolist() == sorted(range(len(keys)), key=lambda i: keys[i] >> short)


@pytest.mark.parametrize("array", BOTH)
def test_entries_are_numbered_group_by_group(array):
    group, number = arrays.numbered(array(torch.tensor([2, 0, 3])))
    assert (group.tolist(), number.tolist()) == ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    assert arrays.places(array(torch.tensor([False, True, True]))).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [DropNodes, PermuteEdges, Subgraph, MaskNodes, GraphCL])
def test_tensors_give_the_same_graphs(kind, monkeypatch):
    batch = Batch.from_data_list([ring(count) for count in (7, 3, 1, 30, 4)])  # the ring of three is complete
    expected = kind(0.4)(batch, seed=3)
    for module in (graph_batch, graph_fields, graph_pairs, graphs):
        monkeypatch.setattr(module, "array", lambda numbers: numbers)
    found = kind(0.4)(batch, seed=3)
    assert all(torch.equal(found[key], expected[key]) for key in expected.keys())
    assert all(torch.equal(found._slice_dict[key], cuts) for key, cuts in expected._slice_dict.items())
