"""Edges and absent edges against loops over all pairs."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from augtree.transforms.graph_arrays import numbered
from augtree.transforms.graph_batch import Graphs
from augtree.transforms.graph_pairs import UndirectedEdges, pair_ends, pair_number

any_edges = st.integers(1, 6).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes), st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=20)
    )
)
"""A graph with edges in one direction or both, doubled edges and self-loops."""


@given(st.lists(any_edges, min_size=1, max_size=5).filter(lambda graphs: any(edges for _, edges in graphs)))
def test_edges_and_absent_edges_of_any_graphs(graphs):
    data = [
        Data(edge_index=torch.tensor(edges, dtype=torch.long).view(-1, 2).t(), num_nodes=nodes)
        for nodes, edges in graphs
    ]
    batch = Batch.from_data_list(data)
    edges = UndirectedEdges.of(Graphs.of(batch))
    found = [edges.columns(np.array([i]))[0].tolist() for i in range(len(edges.pair))]
    columns = batch.edge_index.t().tolist()
    expected, missing, start, before = [], [], 0, []
    for graph, (nodes, directed) in enumerate(graphs):
        pairs = sorted(combinations(range(nodes), 2), key=lambda pair: pair[::-1])
        there = [pair for pair in pairs if pair in directed or pair[::-1] in directed]
        missing += [(graph, pair) for pair in pairs if pair not in there]
        before += [(graph, local) for local in range(len(there))]
        for low, high in there:
            both = sorted([low + start, high + start])
            expected.append([i for i, ends in enumerate(columns) if sorted(ends) == both])
        start += nodes
    assert found == expected
    assert [*zip(edges.graph.tolist(), edges.local.tolist(), strict=True)] == before
    assert edges.count.tolist() == [sum(graph == i for graph, _ in before) for i in range(len(graphs))]
    graph, number = numbered(edges.absent)
    low, high = edges.absent_ends(graph, number)
    assert [*zip(graph.tolist(), zip(low.tolist(), high.tolist(), strict=True), strict=True)] == missing


def test_columns_of_several_edges_tell_which_edge_they_belong_to():
    edge_index = torch.tensor([[0, 1, 2, 1, 1], [1, 2, 1, 0, 0]])
    edges = UndirectedEdges.of(Graphs.of(Batch.from_data_list([Data(edge_index=edge_index, num_nodes=3)])))
    columns, which = edges.columns(np.array([1, 0]))
    assert (columns.tolist(), which.tolist()) == ([1, 2, 0, 3, 4], [0, 0, 1, 1, 1])


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_pairs_are_counted_and_found_again(kind):
    assert [pair_number(*ends) for ends in ((0, 1), (0, 2), (1, 2), (0, 3))] == [0, 1, 2, 3]
    high = np.concatenate([np.arange(1, 2000), 2**25 - np.arange(100)])
    for low in (0 * high, high // 2, high - 1):
        found = pair_ends(kind(pair_number(low, high)))
        assert [end.tolist() for end in found] == [low.tolist(), high.tolist()]
