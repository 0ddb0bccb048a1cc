import pickle
from collections import Counter

import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.errors import ArgumentError, InputError
from augtree.transforms import DropNodes, Invert, MaskNodes, Rotate

DARK = at.Tree().with_node(1, Invert(0.6), p=1.0)
PLAIN = at.Tree()
FOREST = at.Forest({"photo": (DARK, 0.25), "sketch": (PLAIN, 0.75)})


def test_each_sample_gets_its_groups_tree(noise):
    groups = ["photo", "sketch"] * 32
    done = FOREST(noise, groups=groups, seed=0)
    assert torch.equal(done[::2], 255 - noise[::2])
    assert torch.equal(done[1::2], noise[1::2])
    assert torch.equal(FOREST(noise[0], groups="photo", seed=0), 255 - noise[0])


def test_a_groups_tree_does_what_it_does_alone(noise):
    forest = at.Forest({"a": (at.Tree().with_node(1, Rotate(0.6), p=0.5), 0.5), "b": (DARK, 0.5)})
    done = forest(noise, groups=["a"] * 64, seed=4)
    assert torch.equal(done, forest["a"].tree(noise, seed=4))


def test_without_groups_trees_are_drawn_by_weight():
    black = torch.zeros(8000, 1, 1, 1, dtype=torch.uint8)
    share = float((FOREST(black, seed=0) == 255).float().mean())
    assert abs(share - 0.25) < 0.02
    assert {path: p for p, path in FOREST.paths()} == pytest.approx({(Invert(0.6),): 0.25, (): 0.75})


def test_splitting_changes_nothing(noise):
    forest = at.Forest({"a": (at.Tree().with_node(1, Rotate(0.6), p=0.5), 0.5), "b": (DARK, 0.5)})
    whole = forest(noise, seed=1)
    assert torch.equal(torch.cat([forest(noise[:9], seed=1), forest(noise[9:], seed=1, index=9)]), whole)
    groups = ["a", "b"] * 32
    whole = forest(noise, groups=groups, seed=1)
    parts = [forest(noise[:9], groups=groups[:9], seed=1), forest(noise[9:], groups=groups[9:], seed=1, index=9)]
    assert torch.equal(torch.cat(parts), whole)


def test_graphs_by_group():
    graphs = [Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1], [1, 0]])) for _ in range(60)]
    forest = at.Forest(
        {
            "small": (at.Tree().with_node(1, DropNodes(0.5)), 0.5),
            "large": (at.Tree().with_node(1, MaskNodes(0.5)), 0.5),
        }
    )
    groups = ["small", "large"] * 30
    out = forest(Batch.from_data_list(graphs), groups=groups, seed=0).to_data_list()
    kinds = Counter((group, g.num_nodes, int((g.x == 0).sum())) for group, g in zip(groups, out, strict=True))
    assert kinds == {("small", 2, 0): 30, ("large", 4, 2): 30}
    mixed = forest(Batch.from_data_list(graphs), seed=0).to_data_list()
    assert {g.num_nodes for g in mixed} == {2, 4}


def test_groups_may_be_numbers_or_arrays():
    import numpy as np

    forest = at.Forest({"0": (DARK, 0.5), "1": (PLAIN, 0.5)})
    black = torch.zeros(3, 1, 1, 1, dtype=torch.uint8)
    for groups in ([0, 1, 0], np.array([0, 1, 0]), torch.tensor([0, 1, 0])):
        assert forest(black, groups=groups).view(-1).tolist() == [255, 0, 255]
    for group in (0, np.int64(0), torch.tensor(0), "0"):
        assert forest(black[0], groups=group).item() == 255
    assert forest(black[:0], groups=[]).shape == (0, 1, 1, 1)


def test_names_are_told_apart_to_the_last_letter():
    forest = at.Forest({"a": (DARK, 0.5), "a\0": (PLAIN, 0.5)})
    black = torch.zeros(2, 1, 1, 1, dtype=torch.uint8)
    assert forest(black, groups=["a", "a\0"]).view(-1).tolist() == [255, 0]


def test_equal_forests_do_the_same_whatever_order_they_were_written_in(noise):
    turned = at.Tree().with_node(1, Rotate(0.6), p=0.5)
    one, other = at.Forest({"a": (DARK, 0.5), "b": (turned, 0.5)}), at.Forest({"b": (turned, 0.5), "a": (DARK, 0.5)})
    assert one == other
    assert hash(one) == hash(other)
    assert torch.equal(one(noise, seed=0), other(noise, seed=0))


def test_the_choice_of_a_tree_is_independent_of_what_the_tree_does():
    """Half the samples get a tree whose root is applied to half of them: a quarter is changed, not half or none."""
    half = at.Tree().with_node(1, Invert(0.6), p=0.5)
    forest = at.Forest({"a": (half, 0.5), "b": (PLAIN, 0.5)})
    black = torch.zeros(8000, 1, 1, 1, dtype=torch.uint8)
    assert abs(float((forest(black, seed=0) == 255).float().mean()) - 0.25) < 0.02


def test_weights_need_not_sum_to_the_last_bit():
    forest = at.Forest({name: (DARK if name == "c" else PLAIN, 0.1) for name in "abcdefghij"})
    black = torch.zeros(20_000, 1, 1, 1, dtype=torch.uint8)
    assert abs(float((forest(black, seed=0) == 255).float().mean()) - 0.1) < 0.01
    short = at.Forest({"a": (PLAIN, 1 - 5e-10)})
    assert torch.equal(short(black, seed=0), black)


def test_a_module_takes_groups_and_seeds(noise):
    module = FOREST.module()
    assert torch.equal(module(noise, groups=["photo"] * 64, seed=1), 255 - noise)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["photo"] * 3, "there must be a group for each of the 64 samples, got 3"),
        (["photo"] * 63 + ["cartoon"], "a group must be one of photo, sketch, got 'cartoon'"),
    ],
)
def test_groups_must_fit(noise, groups, message):
    with pytest.raises(InputError, match=message):
        FOREST(noise, groups=groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "groups must map at least one group to its tree and weight"),
        ([], "groups must map at least one group"),
        ({"a": DARK}, "groups/a must be a tree and its weight"),
        ({3: (DARK, 1.0)}, "groups must have names that are text, got 3"),
        ({"\ud800": (DARK, 1.0)}, "groups must have names that are text"),
        (
            {"a": (DARK, 0.5), "b": (at.Tree().with_node(1, DropNodes(0.2)), 0.5)},
            "groups must have trees that all work on images or all on graphs",
        ),
        ({"a": (DARK, 0.5)}, "groups must have weights that sum to 1, got 0.5"),
        ({"a": (DARK, 1.5), "b": (DARK, -0.5)}, r"groups/a/weight must be a number in \[0, 1\], got 1.5"),
        ({"a": (Rotate(0.6), 1.0)}, "groups/a must be a tree and its weight"),
        ({"": (DARK, 1.0)}, "groups must have names that are text"),
    ],
)
def test_what_is_no_forest_is_refused(groups, message):
    with pytest.raises(ArgumentError, match=message):
        at.Forest(groups)


def test_a_forest_is_a_frozen_value():
    again = pickle.loads(pickle.dumps(FOREST))
    assert again == FOREST
    assert hash(again) == hash(FOREST)
    assert len(FOREST) == 2
    assert at.Forest({"photo": (DARK, 0.5), "sketch": (PLAIN, 0.5)}) != FOREST
    with pytest.raises(TypeError):
        FOREST.groups["photo"] = None
    assert torch.equal(FOREST.module().eval()(torch.zeros(1, 1, 1)), torch.zeros(1, 1, 1))
