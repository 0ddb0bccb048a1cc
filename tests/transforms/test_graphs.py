import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import Chain, DropNodes, GraphCL, MaskNodes, PermuteEdges, Rotate, Subgraph
from augtree.transforms.graph_batch import Graphs
from augtree.transforms.graphs import FOUR

ALL = (DropNodes, MaskNodes, Subgraph, PermuteEdges)


def graph(nodes, chance, seed):
    """A random simple graph; features and edge attributes tell nodes and edges apart."""
    found = nx.gnp_random_graph(nodes, chance, seed=seed)
    one = torch.tensor(list(found.edges), dtype=torch.long).view(-1, 2).t()
    edge_index = torch.cat([one, one.flip(0)], dim=1)
    low, high = edge_index.min(0).values, edge_index.max(0).values
    return Data(
        x=torch.arange(1, nodes + 1).float().view(-1, 1),
        edge_index=edge_index,
        edge_attr=(low * 1000 + high).float().view(-1, 1),
        y=torch.tensor([seed]),
    )


def edge_set(data):
    return set(map(tuple, data.edge_index.t().tolist()))


graphs_of_all_kinds = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from([0.0, 0.2, 0.6, 1.0]), st.integers(0, 10**6)),
    min_size=1,
    max_size=6,
)


@given(graphs_of_all_kinds, st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]), st.integers(0, 2**32))
def test_what_holds_always(kinds, ratio, seed):
    before = [graph(*kind) for kind in kinds]
    batch = Batch.from_data_list(before)
    for kind in ALL:
        out = kind(ratio)(batch, seed=seed)
        assert out.validate()
        for old, new in zip(before, out.to_data_list(), strict=True):
            assert new.validate()
            assert new.y.tolist() == old.y.tolist()
            assert 1 <= new.num_nodes <= old.num_nodes
            edges = edge_set(new)
            assert len(edges) == new.num_edges  # no doubles
            assert all(a != b and (b, a) in edges for a, b in edges)  # no self-loops, symmetric
            assert len(new.edge_attr) == new.num_edges
            if kind is MaskNodes:
                assert torch.equal(new.edge_index, old.edge_index)
                continue
            # Whatever is left is the part of the old graph on the nodes that stay (their x tells which).
            name = [int(x) - 1 for x in new.x.view(-1)]
            assert name == sorted(name)
            if kind is not PermuteEdges:
                kept = {(a, b) for a, b in edge_set(old) if a in name and b in name}
                assert {(name[a], name[b]) for a, b in edges} == kept
                ends = torch.tensor(name)[new.edge_index]
                told = ends.min(0).values * 1000 + ends.max(0).values
                assert new.edge_attr.view(-1).tolist() == told.tolist()


@given(graphs_of_all_kinds, st.integers(0, 2**32), st.integers(1, 5))
def test_a_graph_gets_the_same_whatever_stands_beside_it(kinds, seed, cut):
    before = [graph(*kind) for kind in kinds]
    for kind in ALL:
        whole = kind(0.4)(Batch.from_data_list(before), seed=seed).to_data_list()
        parts = [part for part in (before[:cut], before[cut:]) if part]
        alone = []
        for start, part in zip((0, cut), parts, strict=False):
            alone += kind(0.4)(Batch.from_data_list(part), seed=seed, index=start).to_data_list()
        for one, other in zip(whole, alone, strict=True):
            assert all(torch.equal(one[key], other[key]) for key in one.keys())


def test_ratio_zero_leaves_a_graph_alone():
    """A chain step that some graphs skip: those keep every bit."""
    before = [graph(10, 0.4, seed) for seed in range(60)]
    for kind in ALL:
        out = Chain([(kind(0.5), 0.5)])(Batch.from_data_list(before), seed=1).to_data_list()
        same = [all(torch.equal(a[k], b[k]) for k in a.keys()) for a, b in zip(before, out, strict=True)]
        assert 18 < sum(same) < 42


@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.5])
def test_shares_hold_on_average_even_for_small_graphs(ratio):
    batch = Batch.from_data_list([graph(3, 1.0, 0)] * 4000)
    dropped = 3 - torch.bincount(DropNodes(ratio)(batch, seed=0).batch).float()
    assert abs(float(dropped.mean()) - 3 * ratio) < 0.03
    masked = (MaskNodes(ratio)(batch, seed=0).x == 0).float().mean()
    assert abs(float(masked) - ratio) < 0.01


def test_every_node_is_equally_likely_to_go():
    batch = Batch.from_data_list([graph(8, 0.5, 1)] * 4000)
    left = torch.bincount(DropNodes(0.25)(batch, seed=0).x.view(-1).long(), minlength=9)[1:]
    assert ((left - 3000).float() / 3000).abs().max() < 0.04
    zero = (MaskNodes(0.25)(batch, seed=0).x.view(-1, 8) == 0).float().mean(0)
    assert (zero - 0.25).abs().max() < 0.03


def test_whole_counts_are_exact():
    batch = Batch.from_data_list([graph(10, 0.5, seed) for seed in range(50)])
    assert set(torch.bincount(DropNodes(0.3)(batch, seed=0).batch).tolist()) == {7}
    assert set(torch.bincount(Subgraph(0.3)(batch, seed=0).batch).tolist()) == {7}
    assert (MaskNodes(0.3)(batch, seed=0).x == 0).view(50, 10).sum(1).tolist() == [3] * 50


def test_permuted_edges_are_as_many_as_before_and_new():
    before = graph(20, 0.3, 5)
    out = PermuteEdges(0.5)(Batch.from_data_list([before] * 50), seed=0)
    for new in out.to_data_list():
        assert new.num_edges == before.num_edges
        gone, came = edge_set(before) - edge_set(new), edge_set(new) - edge_set(before)
        assert len(gone) == len(came)
        assert abs(len(gone) / before.num_edges - 0.5) < 0.05


def test_new_edges_take_the_fields_of_those_that_go():
    before = graph(20, 0.3, 5)
    new = PermuteEdges(0.5)(before, seed=0)
    assert sorted(new.edge_attr.view(-1).tolist()) == sorted(before.edge_attr.view(-1).tolist())
    old = dict(zip(map(tuple, before.edge_index.t().tolist()), before.edge_attr.view(-1).tolist(), strict=True))
    for ends, attr in zip(map(tuple, new.edge_index.t().tolist()), new.edge_attr.view(-1).tolist(), strict=True):
        if ends in old:
            assert attr == old[ends]
        else:
            assert attr not in {a for e, a in old.items() if e in edge_set(new)}


def test_complete_graphs_only_lose_edges():
    new = PermuteEdges(0.4)(graph(6, 1.0, 0), seed=0)  # 15 edges, none absent
    assert new.num_edges == 2 * 9
    assert edge_set(new) < edge_set(graph(6, 1.0, 0))


def test_almost_complete_graphs_gain_what_fits():
    full = nx.complete_graph(6)
    full.remove_edges_from([(0, 1), (2, 3)])
    one = torch.tensor(list(full.edges)).t()
    before = Data(edge_index=torch.cat([one, one.flip(0)], dim=1), num_nodes=6)
    new = edge_set(PermuteEdges(1.0)(before, seed=0))
    assert new == {(0, 1), (1, 0), (2, 3), (3, 2)}


def test_every_absent_edge_is_equally_likely_to_come():
    path = torch.stack([torch.arange(6), torch.arange(1, 7)])
    before = Data(edge_index=torch.cat([path, path.flip(0)], dim=1), num_nodes=7)
    out = PermuteEdges(4 / 6)(Batch.from_data_list([before] * 7000), seed=0)  # 4 of 15 absent edges
    counts: dict[tuple[int, int], int] = {}
    for new in out.to_data_list():
        for a, b in edge_set(new) - edge_set(before):
            if a < b:
                counts[a, b] = counts.get((a, b), 0) + 1
    assert len(counts) == 21 - 6
    found = np.array(list(counts.values()))
    assert found.sum() == pytest.approx(4 * 7000, rel=0.01)
    assert np.abs(found / found.mean() - 1).max() < 0.1  # without the turn some would come a third more often


def test_there_are_three_steps_for_each_node_wanted(monkeypatch):
    seen = []
    monkeypatch.setattr(Subgraph, "walk", lambda self, graphs, walks, state, order: seen.append(walks.tolist()))
    Subgraph(0.2, length=10)(Batch.from_data_list([graph(10, 0.5, 0), graph(50, 0.1, 1), graph(1, 0, 2)]), seed=0)
    assert seen == [[3, 12, 0]]  # 3 * 8 and 3 * 40 steps in walks of 10; a node alone needs none


def test_walks_reach_most_of_what_is_wanted():
    """About three steps for each node wanted, so that few have to be filled in."""
    edges = graph(40, 0.15, 3).edge_index
    batch = Batch.from_data_list([Data(edge_index=edges, num_nodes=40)] * 50)
    opened = Graphs.of(batch)
    order = torch.full((2000,), 1 << 38)
    walks = torch.full((50,), (3 * 36 + 15) // 16)
    Subgraph(0.1).walk(opened, walks, torch.arange(50), order)
    reached = (order < (1 << 38)).view(50, 40).sum(1)
    assert 26 < float(reached.float().mean()) < 40
    assert bool((order[order < (1 << 38)] < 16 * int(walks[0])).all())


def test_self_loops_and_directions_stay():
    """Readers remove self-loops and make edges symmetric; what a user keeps all the same is not touched."""
    edge_index = torch.tensor([[0, 1, 2, 3, 4], [1, 1, 3, 4, 0]])
    new = PermuteEdges(0.5)(Data(edge_index=edge_index, num_nodes=8), seed=3)
    assert (1, 1) in edge_set(new)
    assert new.num_edges == 5
    assert sum(a == b for a, b in edge_set(new)) == 1
    assert len({(min(e), max(e)) for e in edge_set(new)}) == 5  # one direction each


def test_subgraphs_are_connected_when_one_walk_is_enough():
    ring = nx.cycle_graph(60)
    one = torch.tensor(list(ring.edges)).t()
    before = Data(edge_index=torch.cat([one, one.flip(0)], dim=1), num_nodes=60)
    out = Subgraph(0.9, length=64)(Batch.from_data_list([before] * 200), seed=0)
    pieces = []
    for new in out.to_data_list():
        assert new.num_nodes == 6
        found = nx.Graph(list(edge_set(new)))
        found.add_nodes_from(range(6))
        pieces.append(nx.number_connected_components(found))
    assert pieces.count(1) > 190
    dropped = DropNodes(0.9)(Batch.from_data_list([before] * 200), seed=0)
    assert dropped.num_edges < out.num_edges / 4


def test_subgraphs_of_graphs_in_pieces_reach_other_pieces():
    before = graph(10, 0.0, 0)  # no edges at all
    new = Subgraph(0.3)(before, seed=0)
    assert new.num_nodes == 7


def test_masked_rows_are_zero_and_the_rest_is_as_it_was():
    before = graph(10, 0.5, 3)
    new = MaskNodes(0.4)(before, seed=0)
    assert int((new.x == 0).sum()) == 4
    assert torch.equal(new.x[new.x != 0], before.x[new.x != 0])
    categories = Data(x=torch.arange(1, 11), edge_index=before.edge_index)
    assert MaskNodes(0.4)(categories, seed=0).x.dtype == torch.int64


@pytest.mark.parametrize("kind", ALL)
def test_bad_arguments_and_pictures_are_refused(kind, noise):
    with pytest.raises(ArgumentError, match="magnitude must be a number"):
        kind(1.5)
    with pytest.raises(InputError, match="works on graphs, got pictures"):
        kind(0.2)(noise)
    with pytest.raises(InputError, match="Rotate works on pictures, got graphs"):
        Rotate(0.2)(graph(4, 0.5, 0))


def test_walks_have_a_length():
    with pytest.raises(ArgumentError, match="length must be a whole number from 1 to 1024"):
        Subgraph(0.2, length=0)


def test_each_graph_meets_one_of_the_four_and_all_are_as_likely():
    one, before = GraphCL(0.5), graph(12, 0.3, 0)
    told = [said[0].split("(")[0] for said in one.describe(Key.of(3, range(400)))]
    assert all(abs(told.count(kind.__name__) - 100) < 35 for kind in FOUR)  # four deviations
    found = one(Batch.from_data_list([before] * 400), seed=3).to_data_list()
    for name, after in zip(told, found, strict=True):
        assert after.num_nodes == (6 if name in ("DropNodes", "Subgraph") else 12)
        assert int((after.x == 0).sum()) == (6 if name == "MaskNodes" else 0)
        assert name not in ("MaskNodes", "PermuteEdges") or after.num_edges == before.num_edges
        assert (edge_set(after) == edge_set(before)) == (name == "MaskNodes")


def test_one_of_the_four_is_what_it_is_alone():
    """Whatever a graph meets, it is what that operation does to it with the same draws."""
    batch = Batch.from_data_list([graph(9, 0.4, i) for i in range(40)])
    told = [said[0].split("(")[0] for said in GraphCL(0.3).describe(Key.of(5, range(40)))]
    found = GraphCL(0.3)(batch, seed=5).to_data_list()
    for kind in FOUR:
        alone = kind(0.3)(batch, seed=5).to_data_list()
        mine = [i for i in range(40) if told[i] == kind.__name__]
        assert mine
        assert all(edge_set(found[i]) == edge_set(alone[i]) and torch.equal(found[i].x, alone[i].x) for i in mine)
