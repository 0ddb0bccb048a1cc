import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

import augtree as at
from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import Chain, DropNodes, Identity, Invert, MaskNodes, Normalize, Rotate, SamplePairing

SPACE = at.spaces.images()
NAMES = [candidate for candidate in SPACE if candidate.magnitude == 0.6]


@st.composite
def trees(draw, depth=4):
    """Trees of all forms: any p, lone left and right children, the same candidate twice."""
    nodes = {}
    frontier = [1]
    while frontier:
        index = frontier.pop()
        if draw(st.booleans()) or index == 1:
            sibling = nodes.get(index ^ 1) if index > 1 else None
            p = round(1 - sibling[1], 12) if sibling else draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
            nodes[index] = (draw(st.sampled_from(NAMES[:4])), p)
            if index.bit_length() < depth:
                frontier += [2 * index, 2 * index + 1]
    return at.Tree(nodes)


def by_brute_force(tree):
    """The distribution over paths from the definition alone: every outcome of every coin."""
    found = Counter()
    coins = sorted(tree.nodes)
    for outcome in itertools.product((True, False), repeat=len(coins) + 1):
        skip_root, toss = outcome[0], dict(zip(coins, outcome[1:], strict=True))
        probability, path, index = 1.0, (), 1
        if tree.nodes:
            p = tree.nodes[1].p
            probability *= 1 - p if skip_root else p
            path = () if skip_root else (tree.nodes[1].transform,)
        for coin in coins:
            left = tree.nodes.get(2 * coin)
            right = tree.nodes.get(2 * coin + 1)
            p_left = left.p if left else 1 - right.p if right else 0.5
            probability *= p_left if toss[coin] else 1 - p_left
        while index in tree.nodes:
            index = 2 * index + (0 if toss[index] else 1)
            if index in tree.nodes:
                path += (tree.nodes[index].transform,)
        found[path] += probability
    if not tree.nodes:
        return {(): 1.0}
    return {path: p for path, p in found.items() if p > 1e-15}


@given(trees(depth=3))
def test_paths_are_what_the_definition_says(tree):
    paths = {path: p for p, path in tree.paths()}
    assert len(paths) == len(tree.paths())
    assert sum(paths.values()) == pytest.approx(1)
    expected = by_brute_force(tree)
    assert set(paths) == set(expected)
    for path, p in expected.items():
        assert paths[path] == pytest.approx(p)


@given(trees(), st.integers(0, 2**32))
def test_samples_agree_with_paths(tree, seed):
    count = 4000
    taken = Counter(tree.route(Key.of(seed, range(count))))
    expected = Counter()
    for p, path in tree.paths():
        expected[path] += p
    assert set(taken) <= set(expected)
    for path, p in expected.items():
        assert abs(taken[path] / count - p) < 5 * (p * (1 - p) / count) ** 0.5 + 1e-9


def test_a_path_is_the_composition_of_its_transforms(noise):
    """With every p at 0 or 1 there is one path; at node i the transform draws with the key of node i."""
    tree = (
        at.Tree().with_node(1, Rotate(0.6)).with_node(3, Invert(0.6), p=1.0).with_node(6, SPACE["Color", 0.4], p=1.0)
    )
    assert tree.paths() == [(1.0, (Rotate(0.6), Invert(0.6), SPACE["Color", 0.4]))]
    from augtree.transforms.base import apply_to_pictures

    key, step = Key.of(9, range(len(noise))), noise
    for index in (1, 3, 6):
        step = apply_to_pictures(tree[index].transform, step, key.at(index))
    assert torch.equal(tree(noise, seed=9), step)


def test_skipping_the_root_still_goes_on_to_the_children():
    tree = at.Tree().with_node(1, SPACE["Rotate", 0.2], p=0.0).with_node(2, Invert(0.6), p=1.0)
    black = torch.zeros(5, 1, 2, 2, dtype=torch.uint8)
    assert int(tree(black, seed=0).min()) == 255
    assert tree.paths() == [(1.0, (Invert(0.6),))]


def test_a_missing_child_ends_the_path():
    tree = at.Tree().with_node(1, Rotate(0.6)).with_node(2, Invert(0.6), p=0.3)
    assert [p for p, _ in tree.paths()] == pytest.approx([0.3, 0.7])
    right = at.Tree().with_node(1, Rotate(0.6)).with_node(3, Invert(0.6), p=0.3)
    assert {len(path): p for p, path in right.paths()} == pytest.approx({2: 0.3, 1: 0.7})


def test_identity_is_the_same_as_nothing(noise):
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.5)
    assert tree.with_node(2, Identity(), p=0.4) == tree
    assert at.Tree().with_node(1, Identity()) == at.Tree()
    assert torch.equal(at.Tree()(noise, seed=0), noise)
    assert at.Tree().paths() == [(1.0, ())]
    assert tree.with_node(1, Identity()) == at.Tree()
    assert bool(at.Tree())


def test_a_sibling_gets_what_is_left():
    tree = at.Tree().with_node(1, Rotate(0.6)).with_node(2, Invert(0.6), p=0.9).with_node(3, SPACE["Color", 0.4])
    assert tree[3].p == 0.1
    assert at.Tree().with_node(1, Rotate(0.6))[1].p == 1.0


def test_candidates_at_one_node_share_their_routes(noise):
    """Replace one candidate and the others do what they did: common random numbers."""
    one = at.Tree().with_node(1, SPACE["Rotate", 0.6], p=0.5).with_node(2, Invert(0.6), p=0.5)
    other = one.with_node(1, SPACE["Brightness", 0.6], p=0.5)
    key = Key.of(0, range(len(noise)))
    swap = {SPACE["Rotate", 0.6]: SPACE["Brightness", 0.6]}
    expected = [tuple(swap.get(step, step) for step in route) for route in one.route(key)]
    assert other.route(key) == expected


def test_routes_are_paths_and_what_is_told_goes_further(noise):
    inner = at.Tree().with_node(1, Invert(0.6), p=0.5)
    chain = Chain([(Rotate(0.6), 0.5), inner])
    outer = at.Tree().with_node(1, chain, p=0.5)
    key = Key.of(0, range(2000))
    routes = Counter(outer.route(key))
    assert set(routes) == {path for _, path in outer.paths()} == {(), (chain,)}
    told = Counter(outer.describe(key))
    assert set(told) == {(), ("Rotate(0.6)",), ("Invert(0.6)",), ("Rotate(0.6)", "Invert(0.6)")}
    assert told[()] == pytest.approx(2000 * (0.5 + 0.5 * 0.25), rel=0.1)
    forest = at.Forest({"a": (outer, 1.0)})
    part = key.take(np.arange(100, 200))
    assert forest.route(part) == outer.route(part)
    untouched = [words == () for words in outer.describe(Key.of(0, range(len(noise))))]
    assert (outer(noise, seed=0) == noise).flatten(1).all(1).tolist() == untouched


def test_a_tree_is_a_frozen_value():
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.7)
    grown = tree.with_node(2, Invert(0.6), p=0.5)
    assert len(tree) == 1
    assert len(grown) == 2
    assert grown.without_node(2) == tree
    assert hash(at.Tree().with_node(1, Rotate(0.6), p=0.7)) == hash(tree)
    with pytest.raises(AttributeError):
        tree.nodes = {}
    with pytest.raises(TypeError):
        tree.nodes[1] = None
    assert pickle.loads(pickle.dumps(grown)) == grown
    assert eval(repr(grown), {"Tree": at.Tree, **vars(at.transforms)}) == grown


def test_without_node_takes_all_below():
    tree = at.Tree({i: (Rotate(0.6), 0.5) for i in range(1, 8)})
    assert sorted(tree.without_node(3).nodes) == [1, 2, 4, 5]
    assert tree.depth == 3
    assert at.Tree().depth == 0


def test_trees_can_stand_in_trees_and_chains(noise):
    inner = at.Tree().with_node(1, Invert(0.6), p=1.0)
    outer = at.Tree().with_node(1, inner, p=1.0).with_node(2, Chain([inner, inner]), p=1.0)
    assert torch.equal(outer(noise, seed=0), 255 - noise)
    assert outer.domain == "image"
    assert not outer.random
    assert at.Tree().with_node(1, SamplePairing(0.6)).mixes


def test_trees_of_graph_transforms():
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    graphs = [Data(x=torch.ones(4, 2), edge_index=edge_index, y=torch.tensor([i % 2])) for i in range(200)]
    tree = at.Tree().with_node(1, DropNodes(0.5), p=0.5).with_node(2, MaskNodes(0.5), p=0.5)
    out = tree(Batch.from_data_list(graphs), seed=0).to_data_list()
    kinds = Counter((g.num_nodes, bool((g.x == 0).any())) for g in out)
    assert set(kinds) == {(2, True), (2, False), (4, True), (4, False)}
    assert min(kinds.values()) > 30
    assert tree(graphs[7], seed=0, index=7).num_nodes == out[7].num_nodes
    assert [int(g.y) for g in out] == [i % 2 for i in range(200)]


def test_a_module_augments_while_training_only(noise):
    module = at.Tree().with_node(1, Invert(0.6)).module()
    assert torch.equal(module(noise), 255 - noise)
    assert torch.equal(module.eval()(noise), noise)
    assert "Invert(0.6)" in repr(module)
    assert pickle.loads(pickle.dumps(module)).policy == module.policy


def test_a_tree_stands_in_a_data_loader(noise):
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.5)

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(noise)

        def __getitem__(self, i):
            return tree(noise[i], seed=5, index=i)

    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(Pictures(), batch_size=16, num_workers=workers)
        assert torch.equal(torch.cat(list(loader)), tree(noise, seed=5))


def test_a_tree_stands_in_a_pyg_data_set():
    graph = Data(x=torch.ones(6, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]))

    class Graphs(InMemoryDataset):
        def __init__(self, transform):
            super().__init__(transform=transform)
            self.data, self.slices = self.collate([graph] * 8)

    loader = DataLoader(Graphs(at.Tree().with_node(1, DropNodes(0.5))), batch_size=4)
    assert [batch.num_nodes for batch in loader] == [12, 12]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: at.Tree().with_node(0, Rotate(0.6)), "index must be a whole number from 1 to 1023, got 0"),
        (lambda: at.Tree().with_node(1024, Rotate(0.6)), "index must be a whole number from 1 to 1023"),
        (lambda: at.Tree().with_node(1, Rotate(0.6), p=1.4), r"nodes/1/p must be a number in \[0, 1\], got 1.4"),
        (lambda: at.Tree().with_node(2, Rotate(0.6)), "nodes/2 must have a parent 1"),
        (lambda: at.Tree().with_node(1, "Rotate"), "nodes/1/transform must be a transform, got 'Rotate'"),
        (lambda: at.Tree().with_node(1, Normalize()), "nodes/1/transform must not change shape or type"),
        (
            lambda: at.Tree().with_node(1, Rotate(0.6)).with_node(2, DropNodes(0.2)),
            "nodes/2/transform must work on images as the other nodes do",
        ),
        (
            lambda: at.Tree({1: (Rotate(0.6), 1), 2: (Rotate(0.6), 0.5), 3: (Rotate(0.6), 0.4)}),
            "nodes/2/p must sum to 1 with its sibling's, which is 0.4, got 0.5",
        ),
        (
            lambda: at.Tree().with_node(1, Invert()).with_node(2, Invert(), 0.5).with_node(3, Invert(), 0.6),
            r"nodes/3/p must be 0.5, what node 2 leaves \(take that out first to change both\), got 0.6",
        ),
        (lambda: at.Tree().with_node(1, Invert()).without_node(9), r"index must be that of a node \(1\), got 9"),
        (lambda: at.Tree().without_node(1), r"index must be that of a node \(none\), got 1"),
        (lambda: at.Tree({1: Rotate(0.6)}), "nodes/1 must be a transform and its p"),
        (lambda: at.Tree({"1": (Rotate(0.6), 1)}), "nodes must be a whole number from 1 to 1023, got '1'"),
        (lambda: at.Tree([Rotate(0.6)]), "nodes must be a mapping"),
        (lambda: at.Tree({1: (Identity(), 1), 2: (Rotate(0.6), 0.5)}), "nodes/2 must not stand under Identity"),
    ],
)
def test_what_is_no_tree_is_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_tree_of_pictures_refuses_graphs_and_the_other_way_round(noise):
    with pytest.raises(InputError, match="Tree works on pictures, got graphs"):
        at.Tree().with_node(1, Rotate(0.6))(Data(x=torch.ones(2, 1)))
    with pytest.raises(InputError, match="Tree works on graphs, got pictures"):
        at.Tree().with_node(1, DropNodes(0.2))(noise)


def test_an_empty_tree_returns_something_of_its_own(noise):
    done = at.Tree()(noise, seed=0)
    assert torch.equal(done, noise)
    assert done.data_ptr() != noise.data_ptr()
    batch = Batch.from_data_list([Data(x=torch.ones(2, 1))])
    assert at.Tree()(batch) is not batch


def test_results_share_no_memory_with_what_came_in():
    """Where no sample is touched, too: writing into a result must not spoil the data set."""
    data = torch.full((100, 1, 4, 4), 9, dtype=torch.uint8)
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.5)
    for i in range(100):
        tree(data[i], seed=0, index=i).zero_()
    assert int(data.min()) == 9


def test_a_tree_is_a_collection_of_its_indices():
    tree = at.Tree().with_node(1, Rotate(0.6)).with_node(3, Invert(), p=0.5)
    assert list(tree) == [1, 3]
    assert 3 in tree
    assert 2 not in tree


def test_unhashable_functions_can_stand_in_a_tree():
    class Fog:
        __hash__ = None

        def __call__(self, picture):
            return picture

    tree = at.Tree().with_node(1, at.wrap(Fog(), name="Fog"), p=0.5)
    assert len(tree.paths()) == 2


def test_numbers_of_all_kinds_become_pythons():
    tree = at.Tree().with_node(1, Rotate(np.float64(0.5)), p=np.float32(0.5)).with_node(2, Invert(1), p=1)
    assert repr(tree) == (
        "Tree().with_node(1, Rotate(magnitude=0.5, fill=128), p=0.5).with_node(2, Invert(magnitude=1.0), p=1.0)"
    )


def test_compiled_models_can_hold_a_policy(noise):
    module = torch.compile(at.Tree().with_node(1, Invert()).module(), backend="eager")
    assert torch.equal(module(noise), 255 - noise)
