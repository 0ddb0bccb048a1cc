"""Policies on graphs, exported for torch and PyG."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.exports.modules import python_source, torchvision_source
from augtree.policies.presets import graph_randaugment
from augtree.transforms import DropNodes, GraphCL, PermuteEdges, Rotate, Subgraph
from support.exported import run


def graphs(featured=True):
    """Random simple graphs of 1 to 24 nodes, with fields of nodes, of edges and of graphs."""
    made = []
    for i in range(16):
        generator = torch.Generator().manual_seed(i)
        nodes = 1 + i * 7 % 24
        ends = torch.randint(0, nodes, (2, i), generator=generator)
        ends = ends[:, ends[0] != ends[1]]
        edge_index = torch.unique(torch.cat([ends, ends.flip(0)], 1), dim=1)
        fields = {"edge_attr": torch.rand(edge_index.shape[1], 2, generator=generator), "y": torch.tensor([i])}
        fields["weight"] = torch.arange(edge_index.shape[1])
        if featured:
            fields |= {"x": torch.rand(nodes, 3, generator=generator), "z": torch.arange(nodes)}
        else:
            fields["num_nodes"] = nodes
        made.append(Data(edge_index=edge_index, **fields))
    return made


def policy_of(policy):
    return run(python_source(policy), allowed=("torch", "torch_geometric"))["Policy"]()


def same(one, other):
    assert sorted(one.keys()) == sorted(other.keys())
    for key in one.keys():
        if isinstance(one[key], torch.Tensor):
            assert one[key].dtype == other[key].dtype
            assert torch.equal(one[key], other[key]), key
        else:
            assert one[key] == other[key]


@pytest.mark.parametrize("featured", [True, False])
def test_every_candidate_gives_the_same_graphs(featured):
    made = graphs(featured)
    batch = Batch.from_data_list(made)
    candidates = [
        c
        for c in at.spaces.graphs(composites=True)
        if c.magnitude in ((0.1, 0.2, 0.3, 0.4, 0.5) if featured else (0.3,))
    ]
    candidates += [Subgraph(0.4, length=3), graph_randaugment()]
    for candidate in candidates:
        policy = policy_of(candidate)
        same(policy(batch, seed=5), candidate(batch, seed=5))
        same(policy(made[12], seed=5), candidate(made[12], seed=5))


def test_trees_and_forests_give_the_same_graphs():
    tree = at.Tree().with_node(1, DropNodes(0.3), p=0.6).with_node(2, GraphCL(0.2), p=0.3)
    tree = tree.with_node(3, PermuteEdges(0.4))
    forest = at.Forest({"a": (tree, 0.5), "b": (at.Tree(), 0.5)})
    batch, groups = Batch.from_data_list(graphs()), ["a", "b"] * 8
    same(policy_of(tree)(batch, seed=1, index=7, step=2), tree(batch, seed=1, index=7, step=2))
    same(policy_of(forest)(batch, seed=1), forest(batch, seed=1))
    same(policy_of(forest)(batch, groups, seed=1), forest(batch, groups=groups, seed=1))


def test_graphs_come_back_untouched_in_eval_mode_and_differ_otherwise():
    policy, batch = policy_of(DropNodes(0.5)), Batch.from_data_list(graphs())
    before = batch.clone()
    assert policy(batch).num_nodes < batch.num_nodes
    same(batch, before)
    assert policy.eval()(batch) is batch


def test_fields_that_could_be_cut_wrongly_are_refused():
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    graph = Data(x=torch.ones(4, 1), edge_index=torch.cat([ring, ring.flip(0)], 1), y=torch.ones(4))
    with pytest.raises(ValueError, match="'y' may be of nodes, edges or graphs"):
        policy_of(DropNodes(0.5))(graph)
    del graph.y
    graph.face = torch.tensor([[0], [1], [2]])
    with pytest.raises(ValueError, match="'face' may be of numbers of nodes"):
        policy_of(DropNodes(0.5))(graph)


def test_torchvision_has_no_transforms_of_graphs():
    with pytest.raises(at.errors.ArgumentError, match=r"it has no DropNodes\(0.5\)"):
        torchvision_source(at.Tree().with_node(1, DropNodes(0.5), p=0.5))
    assert "Any" in torchvision_source(Rotate(0.2))
