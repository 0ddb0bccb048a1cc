"""Taking nodes and edges out of PyG batches keeps every field aligned."""

import warnings

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader

from augtree.errors import InputError
from augtree.transforms import DropNodes, MaskNodes, PermuteEdges, Subgraph
from augtree.transforms.graph_batch import in_order
from support.rings import kept, ring


def test_nodes_go_with_their_edges_and_fields():
    batch = Batch.from_data_list([ring(5), ring(4), ring(1)])
    out = kept(batch, lambda _, node: node != 1)
    first, second, third = out.to_data_list()
    assert first.x.view(-1).tolist() == [0, 2, 3, 4]
    assert first.edge_index.tolist() == [[1, 2, 3, 2, 3, 0], [2, 3, 0, 1, 2, 3]]
    # The attributes still tell the old ends.
    assert first.edge_attr.tolist() == [[2, 3], [3, 4], [4, 0], [3, 2], [4, 3], [0, 4]]
    assert second.x.view(-1).tolist() == [0, 2, 3]
    assert third.x.view(-1).tolist() == [0]
    assert out.batch.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    assert out.ptr.tolist() == [0, 4, 7, 8]
    assert out.y.tolist() == [1, 0, 1]
    assert out.num_nodes == 8
    assert out.validate()


def test_the_batch_that_was_there_stays():
    batch = Batch.from_data_list([ring(5), ring(4)])
    before = batch.clone()
    kept(batch, lambda _, node: node < 2)
    assert all(torch.equal(batch[key], before[key]) for key in batch.keys())
    assert [g.num_nodes for g in batch.to_data_list()] == [5, 4]


def test_graphs_with_edges_alone_keep_their_number_of_nodes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns that it has to guess the number of nodes
        data = Data(edge_index=ring(6).edge_index)
        assert DropNodes(0.8)(data, seed=0).num_nodes in (1, 2)
        out = DropNodes(0.5)(Batch.from_data_list([data] * 3), seed=0)
        assert [graph.num_nodes for graph in out.to_data_list()] == [3, 3, 3]


def test_subclasses_stay_what_they_are():
    class Molecule(Data):
        pass

    graphs = [Molecule(**ring(5).to_dict()) for _ in range(3)]
    out = DropNodes(0.4)(Batch.from_data_list(graphs), seed=0)
    assert all(type(graph) is Molecule for graph in out.to_data_list())
    assert type(DropNodes(0.4)(graphs[0], seed=0)) is Molecule


def test_graphs_without_features_keep_their_number_of_nodes():
    graphs = [Data(edge_index=ring(n).edge_index, num_nodes=n) for n in (4, 6)]
    out = kept(Batch.from_data_list(graphs), lambda _, node: node != 1)
    assert out.num_nodes == 8
    assert [g.num_nodes for g in out.to_data_list()] == [3, 5]
    assert DropNodes(0.5)(out, seed=0).num_nodes == sum(
        g.num_nodes for g in DropNodes(0.5)(out, seed=0).to_data_list()
    )


def test_follow_batch_vectors_follow():
    batch = Batch.from_data_list([ring(5), ring(4)], follow_batch=["edge_attr", "y"])
    out = kept(batch, lambda _, node: node != 1)
    assert out.edge_attr_batch.tolist() == [0] * 6 + [1] * 4
    assert out.edge_attr_ptr.tolist() == [0, 6, 10]
    assert out.y_batch.tolist() == [0, 1]


def test_small_integers_stay_small():
    data = ring(6)
    data.edge_index = data.edge_index.int()
    for kind in (DropNodes, PermuteEdges, Subgraph, MaskNodes):
        assert kind(0.5)(data, seed=0).edge_index.dtype == torch.int32


def test_batches_from_a_loader_can_be_transformed_again_and_again():
    for batch in DataLoader([ring(n) for n in (3, 4, 5, 6)], batch_size=3):
        once = DropNodes(0.3)(batch, seed=0)
        twice = PermuteEdges(0.3)(Subgraph(0.3)(once, seed=1), seed=2)
        assert twice.validate()
        assert all(graph.validate() for graph in twice.to_data_list())


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (HeteroData(), "must be a homogeneous PyG Data or Batch, got HeteroData"),
        (Data(x=torch.ones(2, 1), batch=torch.tensor([0, 0])), "got a Data with .batch"),
        (Batch(x=torch.ones(2, 1), batch=torch.tensor([0, 1])), "got one made by hand"),
        (Data(x=torch.ones(2, 1), adj_t=torch.eye(2).to_sparse()), "got the sparse adj_t"),
        (Data(x=torch.eye(2).to_sparse()), "got the sparse x"),
        (Data(x=torch.ones(3, 1), edge_index=torch.tensor([[1, 2], [2, 3]])), "node numbers from 0 to 2, got 1 to 3"),
        (Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2], [2, 0]])), r"whole numbers \[2,E\], got"),
        (Data(x=torch.ones(3, 1), edge_index=torch.ones(2, 2)), r"whole numbers \[2,E\], got torch.float32"),
        (
            Batch.from_data_list(
                [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[1], [k]])) for k in (2, 1)]  # numbered from 1
            ),
            "must join nodes of the same graph",
        ),
        (
            Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.ones(1, 2)),
            "edge_attr must have an entry for each of the 2 edges, got 1",
        ),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(graphs, message):
    with pytest.raises(InputError, match=message):
        DropNodes(0.5)(graphs)


@pytest.mark.parametrize("keys", [[0, 0, 1, 3], [3, 0, 1, 0], [1, 1, 1, 1], []])
def test_rows_in_the_order_of_their_keys(keys):
    keys, rows = torch.tensor(keys, dtype=torch.int64), torch.arange(len(keys)) * 10
    found = in_order(rows, keys)
    assert found.tolist() == [row for _, row in sorted(zip(keys.tolist(), rows.tolist(), strict=True))]
