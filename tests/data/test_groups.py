import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.data.groups import (
    check_groups,
    cut,
    group,
    group_problems,
    merge_like,
    merged,
    merged_name,
    nearest_group,
    nodes_and_degrees,
)
from augtree.errors import ArgumentError, DataError


def ring(nodes, chords=0):
    ends = [(i, (i + 1) % nodes) for i in range(nodes)] + [(i, (i + 2) % nodes) for i in range(chords)]
    pairs = torch.tensor(ends + [(b, a) for a, b in ends]).T
    return Data(edge_index=pairs, num_nodes=nodes, x=torch.ones(nodes, 1))


def graphs(count=160, seed=0):
    rng = np.random.default_rng(seed)
    made = [ring(int(rng.integers(5, 60)), int(rng.integers(0, 5))) for _ in range(count)]
    split = np.array(["train", "val", "val", "test"])[np.arange(count) % 4]
    return at.data.from_arrays(made, np.arange(count) // 4 % 2, split=split.tolist())


def pictures(groups, split=None, labels=None, columns=None):
    rng = np.random.default_rng(0)
    shade = {name: 40 * i for i, name in enumerate(sorted(set(groups)))}
    x = np.stack([np.full((8, 8), shade[name]) + rng.integers(0, 5, (8, 8)) for name in groups]).astype(np.uint8)
    split = ["train" if i % 3 == 0 else "val" for i in range(len(groups))] if split is None else split
    labels = [i // 3 % 2 for i in range(len(groups))] if labels is None else labels
    return at.data.from_arrays(x, labels, groups=groups, split=split)


@pytest.mark.parametrize("parts", [2, 3, 4, 5])
def test_sizes_and_degrees_are_cut_at_quantiles_of_the_training_graphs(parts):
    data = group(graphs(800), f"size-degree:{parts}x{parts}")
    assert len(data.group_names) == parts**2
    nodes, _ = nodes_and_degrees(data)
    train = data.split == 0
    counts = np.bincount(data.groups[train], minlength=parts**2)
    assert counts.max() <= 2 * counts.min() + 8  # quantiles: about as many in each
    for number, name in enumerate(data.group_names):
        size, _ = (int(part[-1]) for part in name.split())
        here = nodes[data.groups == number]
        low, high = np.quantile(nodes[train], [size / parts, (size + 1) / parts])
        assert here.max() <= high or size == parts - 1
        assert here.min() > low or size == 0
    by_size = [
        nodes[np.char.startswith(np.array(data.group_names)[data.groups], f"size{i}")].mean() for i in range(parts)
    ]
    assert by_size == sorted(by_size)


def test_groups_do_not_depend_on_who_has_a_label():
    data = graphs(400)
    few = group(data.with_labels(20, seed=0), "size-degree:2x2")
    assert (few.groups == group(data, "size-degree:2x2").groups).all()


def test_one_way_alone():
    data = graphs()
    assert group(data, "size:3").group_names == ("size0", "size1", "size2")
    assert group(data, "degree:2").group_names == ("degree0", "degree1")
    assert group(data, "size:1").group_names == ("all",)


def test_a_cut_by_hand():
    values = np.array([1.0, 2, 2, 3, 10, 11])
    assert cut(values, values, 2).tolist() == [0, 0, 0, 1, 1, 1]
    assert cut(values, values, 3).tolist() == [0, 0, 0, 1, 2, 2]
    assert cut(np.array([5.0, 5, 5]), np.array([5.0, 5, 5]), 4).tolist() == [0, 0, 0]  # equal values stay together


def test_shapes():
    nodes, degree = nodes_and_degrees(at.data.from_arrays([ring(5), ring(6, 3)], [0, 1], split=["train", "val"]))
    assert nodes.tolist() == [5, 6]
    assert degree.tolist() == [2, 3]


def test_a_column_of_the_index(tmp_path):
    from PIL import Image

    lines = ["path,label,camera"]
    for i in range(12):
        Image.new("L", (8, 8), i * 20).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{'ab'[i % 2]},{'east' if i < 6 else 'west'}")
    (tmp_path / "index.csv").write_text("\n".join(lines))
    data = group(at.data.load(tmp_path), "column:camera")
    assert data.group_names == ("east", "west")
    assert sorted(np.bincount(data.groups)) == [6, 6]
    with pytest.raises(
        ArgumentError, match=r"column of the data, which has camera \(did you mean camera\?\), got 'column:camra'"
    ):
        group(data, "column:camra")


def test_a_function_of_a_sample():
    data = pictures(["x", "y"] * 12)
    found = group(data, lambda picture: "dark" if picture.float().mean() < 20 else "bright")
    assert found.group_names == ("bright", "dark")
    assert found.source is None
    assert [found.group_names[g] for g in found.groups[:2]] == ["dark", "bright"]
    with pytest.raises(ArgumentError, match="groups/0 must give each sample a group with a name"):
        group(data, lambda _: "")


@pytest.mark.parametrize("by", ["size-degree:4", "size:2x2", "size:0", "size-degree:0x2", "camera", 7])
def test_a_wrong_rule_is_told(by):
    with pytest.raises(ArgumentError, match="groups must"):
        group(graphs(), by)


def test_pictures_have_no_degree():
    with pytest.raises(ArgumentError, match="by size or degree must be for graphs"):
        group(pictures(["x", "y"] * 12), "size:2")


def test_small_groups_are_reported_before_anything_runs():
    names = ["big"] * 60 + ["noval"] * 4 + ["one class"] * 30 + ["untrained"] * 20
    split = (
        [("train", "val")[i % 2] for i in range(60)]
        + ["train"] * 4
        + [("train", "val")[i % 2] for i in range(30)]
        + ["val"] * 20
    )
    labels = [i // 2 % 2 for i in range(60)] + [0, 1, 0, 1] + [0] * 30 + [0, 1] * 10
    data = pictures(names, split, labels)
    assert [str(problem) for problem in group_problems(data)] == [
        "group noval has 0 validation samples of at least 8",
        "group one class has only one class among its 15 training samples",
        "group untrained has no training sample",
    ]
    with pytest.raises(
        DataError, match=r"(?s)group noval has 0 .*; group one class .*Merge such groups.*--merge nearest"
    ):
        check_groups(data)
    found = merged(data, "nearest")
    assert group_problems(found) == []
    # "untrained" brings no second class to "one class", so both end up with the rest
    assert found.group_names == ("big+noval+one class+untrained",)
    assert "groups that are too small were merged" in found.notes[-1]
    assert len(found) == len(data)


def test_groups_are_joined_by_the_names_of_merged_ones():
    data = pictures(["a"] * 60 + ["b"] * 60 + ["c"] * 6 + ["d"] * 6)
    wanted = merged(data, "nearest")
    assert wanted.group_names == ("a", "b+c+d")
    found = merge_like(data, wanted.group_names)
    assert found.group_names == wanted.group_names
    assert np.array_equal(found.groups, wanted.groups)
    assert merge_like(found, wanted.group_names).fingerprint == wanted.fingerprint
    assert merge_like(data, ["a+d", "x"]).group_names == ("a+d", "b", "c")


@pytest.mark.parametrize(
    ("part", "names", "whole"),
    [
        ("b", ["a+b+c", "d"], "a+b+c"),
        ("b", ["ab+c", "bc"], "b"),
        ("a+b", ["a+b+c"], "a+b+c"),
        ("a", ["a", "a+b"], "a"),
        ("a", ["a+b", "a+c"], "a"),  # nobody knows
    ],
)
def test_what_a_group_is_part_of(part, names, whole):
    assert merged_name(part, names) == whole


def test_the_likest_is_the_nearest_in_colour():
    """Shades 0, 40, 80, 120: the last is joined with the third, not with the first."""
    names = ["a"] * 60 + ["b"] * 60 + ["c"] * 60 + ["d"] * 6
    data = group(pictures(names), "given", merge="nearest")
    assert data.group_names == ("a", "b", "c+d")


def test_the_likest_of_graphs_is_of_near_size():
    assert nearest_group(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]]), 2) == 1
    assert nearest_group(np.array([[np.inf, 0.0], [1.0, 0.0], [5.0, 0.0]]), 0) in (1, 2)  # a group without samples


def test_nothing_to_merge_changes_nothing():
    data = pictures(["a"] * 60 + ["b"] * 60)
    assert merged(data, "nearest") is data
    with pytest.raises(ArgumentError, match="merge must be one of nearest"):
        merged(data, "closest")


def test_a_group_must_not_be_called_as_the_whole_is():
    data = pictures(["all", "b"] * 24)
    with pytest.raises(DataError, match="a group must not be called all, which is the name of the whole in tables"):
        check_groups(data)
    check_groups(pictures(["all"] * 24))  # one group is the whole


def test_the_groups_that_came_with_the_data_are_a_column_too():
    data = pictures(["a", "b"] * 24)
    assert group(data, "column:group").group_names == ("a", "b")
    assert (group(data, "column:group").groups == data.groups).all()


def test_small_groups_of_graphs_join_those_that_are_likest():
    """By log size and degree: the rings of 40 nodes join those of 30 and not those of 8."""
    sizes = [8] * 24 + [30] * 24 + [40] * 2
    split = ["train", "val"] * 25
    data = at.data.from_arrays([ring(n) for n in sizes], [0, 0, 1, 1] * 12 + [0, 1], groups=sizes, split=split)
    assert merged(data, "nearest").group_names == ("30+40", "8")
