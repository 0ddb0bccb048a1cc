"""Fields of nodes and edges go with them, whatever they are called; those of graphs stay."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from augtree.errors import TransformError
from augtree.transforms import Chain, DropNodes, MaskNodes, PermuteEdges, Subgraph
from support.rings import kept, ring


def test_fields_of_any_name_stay_aligned():
    def graph(count):
        nodes = torch.arange(count)
        return ring(
            count,
            pos=nodes.view(-1, 1).repeat(1, 3).double(),
            plddt=nodes.float(),
            mask=nodes % 2 == 0,
            weight=torch.arange(2 * count),
            names=[f"n{i}" for i in range(count)],
            smiles="C" * count,
            degree=float(count),
            extra={"charge": nodes, "size": torch.tensor([count])},
        )

    out = kept(Batch.from_data_list([graph(5), graph(6)]), lambda _, node: node not in (0, 2))
    first, second = out.to_data_list()
    assert first.pos[:, 0].tolist() == [1, 3, 4]
    assert first.plddt.tolist() == [1, 3, 4]
    assert first.mask.tolist() == [False, False, True]
    assert first.weight.tolist() == [3, 8]  # edges 3-4 and 4-3
    assert first.names == ["n1", "n3", "n4"]
    assert (first.smiles, float(first.degree)) == ("CCCCC", 5.0)
    assert first.extra["charge"].tolist() == [1, 3, 4]
    assert first.extra["size"].tolist() == [5]
    assert second.names == ["n1", "n3", "n4", "n5"]
    assert second.extra["charge"].tolist() == [1, 3, 4, 5]


def test_labels_of_one_node_graphs_are_no_node_field():
    batch = Batch.from_data_list([ring(1), ring(1), ring(1)])
    for transform in (DropNodes(0.9), Subgraph(0.9), PermuteEdges(0.9), MaskNodes(0.9)):
        out = transform(batch, seed=0)
        assert out.y.tolist() == [1, 1, 1]
        assert [g.num_nodes for g in out.to_data_list()] == [1, 1, 1]


def test_a_label_is_never_cut():
    graphs = [ring(4) for _ in range(3)]
    for graph in graphs:
        graph.y = torch.tensor([1, 0, 0, 1])  # four labels of the graph, or one of each of the four nodes?
    batch = Batch.from_data_list(graphs)
    with pytest.raises(
        TransformError, match=r"y may hold values of nodes.*every graph has 4 nodes.*\[1, n\].*node_y"
    ):
        DropNodes(0.5)(batch, seed=0)
    assert torch.equal(PermuteEdges(0.5)(batch, seed=0).y, batch.y)  # no node goes
    for graph in graphs:
        graph.y = graph.y.view(1, 4)
    assert DropNodes(0.5)(Batch.from_data_list(graphs), seed=0).y.tolist() == [[1, 0, 0, 1]] * 3


def test_a_label_is_not_cut_as_if_it_were_of_edges():
    path = torch.tensor([[0, 1, 1, 2], [1, 2, 0, 1]])
    four = Data(x=torch.ones(3, 1), edge_index=path, y=torch.tensor([1, 0, 1, 1]))
    with pytest.raises(TransformError, match="y may hold values.*every graph has 4 edges"):
        DropNodes(0.34)(four, seed=0)
    one = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([7]))
    assert DropNodes(0.5)(Batch.from_data_list([one] * 4), seed=0).y.tolist() == [7] * 4


def test_labels_of_nodes_follow_their_nodes_where_slices_tell():
    graphs = [ring(count) for count in (4, 6)]
    for graph in graphs:
        graph.y = torch.arange(graph.num_nodes)
    out = kept(Batch.from_data_list(graphs), lambda _, node: node != 1)
    assert out.y.tolist() == [0, 2, 3, 0, 2, 3, 4, 5]


def test_names_tell_where_sizes_agree_and_otherwise_nothing_is_guessed():
    """A directed ring has as many edges as nodes."""
    nodes = torch.arange(5)
    data = Data(x=nodes.float().view(-1, 1), edge_index=torch.stack([nodes, (nodes + 1) % 5]))
    data.edge_weight, data.node_charge = nodes * 10, nodes * 100
    for batch in (Batch.from_data_list([data, data]), Batch.from_data_list([data])):
        out = kept(batch, lambda _, node: node != 0)
        assert out.edge_weight.tolist() == [10, 20, 30] * batch.num_graphs
        assert out.node_charge.tolist() == [100, 200, 300, 400] * batch.num_graphs
    data.bond_type = nodes
    with pytest.raises(
        TransformError, match="bond_type may hold values of nodes, of edges.*begins with node_ or edge_"
    ):
        DropNodes(0.4)(data, seed=0)


def test_fields_added_to_the_batch_itself_stay_aligned():
    batch = Batch.from_data_list([ring(5), ring(6)])
    batch.pe, batch.weights, batch.note = torch.arange(11), torch.arange(22), torch.ones(3)
    out = kept(batch, lambda _, node: node != 0)
    assert out.pe.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert len(out.weights) == out.num_edges
    assert out.note.tolist() == [1, 1, 1]


def test_z_may_be_anything():
    data = Data(z=torch.randn(1, 16), node_attr=torch.randn(6, 2), edge_index=ring(6).edge_index)
    out = DropNodes(0.5)(data, seed=0)
    assert (out.num_nodes, out.z.shape, out.node_attr.shape) == (3, (1, 16), (3, 2))


def test_numbers_and_words_of_a_graph_alone_stay_what_they_are():
    data = ring(5)
    data.y, data.name, data.weight, data.count = torch.tensor(3), "ring", 0.5, 7
    for policy in (DropNodes(0.4), Chain([])):
        out = policy(data, seed=0)
        assert out.y.shape == ()
        assert (int(out.y), out.name, out.weight, out.count) == (3, "ring", 0.5, 7)


def test_fields_of_node_numbers_are_renumbered():
    def graph(count):
        data = ring(count)
        data.face = torch.tensor([[0, 1], [1, 2], [2, 3]])
        data.root_index = torch.tensor([3])
        return data

    out = kept(Batch.from_data_list([graph(5), graph(6)]), lambda _, node: node != 0)
    alone = kept(Batch.from_data_list([graph(5)]), lambda _, node: node != 0)
    assert alone.face.tolist() == [[0], [1], [2]]
    assert alone.root_index.tolist() == [2]
    first, second = out.to_data_list()
    assert first.face.tolist() == [[0], [1], [2]]
    assert second.face.tolist() == [[0], [1], [2]]
    assert (first.root_index.tolist(), second.root_index.tolist()) == ([2], [2])
    assert out.root_index.tolist() == [2, 6]


def test_node_numbers_that_cannot_be_kept_valid_are_refused():
    graphs = [ring(5), ring(6)]
    for graph in graphs:
        graph.parent_index = torch.zeros(graph.num_nodes, dtype=torch.long)
    batch = Batch.from_data_list(graphs)
    for input_ in (batch, graphs[0]):
        with pytest.raises(TransformError, match="'parent_index' holds a node number for every node"):
            DropNodes(0.5)(input_, seed=0)
    assert PermuteEdges(0.5)(batch, seed=0).parent_index.tolist() == batch.parent_index.tolist()


@pytest.mark.parametrize("value", [[1234], [0, -1]])
def test_fields_that_only_look_like_node_numbers_are_refused(value):
    graphs = [ring(5), ring(6)]
    for graph in graphs:
        graph.sample_index = torch.tensor(value)
    for input_ in (Batch.from_data_list(graphs), graphs[0]):
        with pytest.raises(TransformError, match="'sample_index' must hold node numbers of its graph.*rename it"):
            DropNodes(0.5)(input_, seed=0)


def test_fields_with_increments_of_their_own_are_refused():
    class Pairs(Data):
        def __inc__(self, key, value, *args, **kwargs):
            return 7 if key == "ring_id" else super().__inc__(key, value, *args, **kwargs)

    graphs = [Pairs(**ring(4).to_dict(), ring_id=torch.tensor([0, 3])) for _ in range(2)]
    for input_ in (Batch.from_data_list(graphs), graphs[0]):
        with pytest.raises(
            TransformError, match="'ring_id' is incremented by something other than the number of nodes"
        ):
            DropNodes(0.5)(input_, seed=0)
        assert torch.equal(PermuteEdges(0.5)(input_, seed=0).ring_id, input_.ring_id)
