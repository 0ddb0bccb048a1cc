"""A batch that is cut is what PyG gives for the same graphs."""

import pytest
import torch

from augtree.policies.presets import graphcl
from augtree.transforms import DropNodes, PermuteEdges
from augtree.transforms.graph_parts import is_plain, joined, parts_of

pyg = pytest.importorskip("torch_geometric.data")


def graphs(count=11, **fields):
    rng = torch.Generator().manual_seed(0)
    out = []
    for i in range(count):
        nodes = 2 + i % 5
        edges = torch.randint(0, nodes, (2, 3 * (i % 4)), generator=rng)
        kept = {"x": torch.randn(nodes, 3, generator=rng), "edge_attr": torch.randn(edges.shape[1], 2, generator=rng)}
        given = {**kept, "edge_index": edges, "y": torch.tensor([i % 2]), "weights": torch.rand(1, 4, generator=rng)}
        out.append(pyg.Data(**{**given, **{name: make(nodes, i) for name, make in fields.items()}}))
    return out


def same(one, other):
    assert {*one.keys()} == {*other.keys()}
    assert one.num_graphs == other.num_graphs
    assert one.num_nodes == other.num_nodes
    for key in one.keys():
        assert type(one[key]) is type(other[key])
        assert torch.equal(one[key], other[key]) if isinstance(one[key], torch.Tensor) else one[key] == other[key]
    for mine, yours in zip(one.to_data_list(), other.to_data_list(), strict=True):
        assert {*mine.keys()} == {*yours.keys()}
        for key in mine.keys():
            assert torch.equal(torch.as_tensor(mine[key]), torch.as_tensor(yours[key])), key


@pytest.mark.parametrize("size", [1, 3, 4, 11, 20])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"x": lambda *_: None, "num_nodes": lambda nodes, _: nodes},
        {"face": lambda nodes, _: torch.full((3, 2), nodes - 1)},
    ],
    ids=["features", "no features", "other node numbers"],
)
def test_every_part_is_the_batch_of_its_graphs(size, fields):
    given = graphs(**fields)
    found = parts_of(pyg.Batch.from_data_list(given), size)
    assert len(found) == -(-11 // size)
    assert is_plain(found[0])
    for i, part in enumerate(found):
        same(part, pyg.Batch.from_data_list(given[i * size : (i + 1) * size]))
    same(joined(*found), pyg.Batch.from_data_list(given))
    same(joined(found[-1], found[0]), pyg.Batch.from_data_list([*given[(len(found) - 1) * size :], *given[:size]]))


@pytest.mark.parametrize("policy", [DropNodes(0.5), PermuteEdges(0.5), graphcl()], ids=str)
def test_parts_of_what_was_augmented_are_augmented_parts(policy):
    given = graphs()
    whole = policy(pyg.Batch.from_data_list(given), seed=3, index=range(11))
    for i, part in enumerate(parts_of(whole, 4)):
        places = range(4 * i, min(4 * i + 4, 11))
        same(part, policy(pyg.Batch.from_data_list([given[j] for j in places]), seed=3, index=list(places)))


def test_parts_can_be_augmented_and_cut_again():
    whole = pyg.Batch.from_data_list(graphs())
    twice = [small for part in parts_of(whole, 6) for small in parts_of(DropNodes(0.5)(part, seed=1, index=0), 3)]
    assert [small.num_graphs for small in twice] == [3, 3, 3, 2]


def test_fields_that_are_no_tensors_come_along():
    given = graphs(name=lambda _, i: f"graph {i}")
    whole = pyg.Batch.from_data_list(given)
    assert not is_plain(whole)
    assert [part.name for part in parts_of(whole, 6)] == [
        [f"graph {i}" for i in range(6)],
        [f"graph {i}" for i in range(6, 11)],
    ]
    assert joined(*parts_of(whole, 6)).name == whole.name
