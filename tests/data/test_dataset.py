import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augtree.data import Dataset, from_arrays, load
from augtree.data.splits import SPLITS
from augtree.errors import ArgumentError
from augtree.transforms import DropNodes, Flip, Identity


def tiny(**changes):
    """Six pictures 1x2x2, two classes, two groups."""
    given = dict(
        name="tiny",
        samples=torch.arange(24, dtype=torch.uint8).reshape(6, 1, 2, 2),
        labels=torch.tensor([0, 1, 0, 1, 0, 1]),
        classes=("cat", "dog"),
        split=np.array([0, 0, 0, 1, 1, 2], np.int8),
        groups=np.array([0, 0, 1, 1, 0, 1], np.int64),
        group_names=("day", "night"),
        columns={"camera": tuple("abcdef")},
    )
    return Dataset(**{**given, **changes})


def graphs():
    return tuple(
        Data(x=torch.ones(2, 1) * i, edge_index=torch.tensor([[0, 1], [1, 0]]), note="n", num=i) for i in range(6)
    )


def test_what_it_says_of_itself():
    data = tiny()
    assert (len(data), data.domain, data.multilabel, data.num_classes) == (6, "image", False, 2)
    assert data.counts == {"train": 3, "val": 2, "test": 1}
    assert repr(data) == "Dataset(tiny: 6 pictures 1x2x2, 2 classes, 2 groups; train 3, val 2, test 1)"
    several = tiny(samples=graphs(), labels=torch.zeros(6, 2, dtype=torch.uint8))
    assert (several.domain, several.multilabel) == ("graph", True)
    assert repr(several) == "Dataset(tiny: 6 graphs, 2 labels, 2 groups; train 3, val 2, test 1)"


def test_indices():
    data = tiny()
    assert data.indices().tolist() == [0, 1, 2, 3, 4, 5]
    assert data.indices("train").tolist() == [0, 1, 2]
    assert data.indices(group="night").tolist() == [2, 3, 5]
    assert data.indices("val", "day").tolist() == [4]
    assert data.indices("val").dtype == np.int64
    with pytest.raises(
        ArgumentError, match=r"split must be one of train, val, test, unlabelled \(did you mean test\?\), got 'tets'"
    ):
        data.indices("tets")
    with pytest.raises(ArgumentError, match="group must be one of day, night, got 'noon'"):
        data.indices(group="noon")


@pytest.mark.parametrize("samples", [None, graphs()])
def test_take(samples):
    data = tiny() if samples is None else tiny(samples=samples)
    part = replace(data, source={"source": "x"}).take([5, 0])
    assert part.labels.tolist() == [1, 0]
    assert part.split.tolist() == [2, 0]
    assert part.groups.tolist() == [1, 0]
    assert part.columns == {"camera": ("f", "a")}
    assert part.source is None
    if samples is None:
        assert part.samples.flatten().tolist() == [20, 21, 22, 23, 0, 1, 2, 3]
    else:
        assert part.samples == (samples[5], samples[0])
    assert len(data.take(torch.tensor([1]))) == 1


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 6], "indices must be from 0 to 5, got 6"),
        ([-1], "indices must be from 0 to 5, got -1"),
        ([0.5], "indices must be a list of whole numbers"),
        ([True, False, False, False, False, False], "indices must be a list of whole numbers"),
        ([5], "split must have at least one training sample"),
        ([], "samples must not be empty"),
    ],
)
def test_what_cannot_be_taken(indices, message):
    with pytest.raises(ArgumentError, match=message):
        tiny().take(indices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"samples": torch.zeros(6, 2, 2, dtype=torch.uint8)},
            r"samples must be pictures \[N,C,H,W\], got \[6, 2, 2\]",
        ),
        ({"samples": torch.zeros(6, 1, 2, 2)}, "samples must be uint8 .*got torch.float32"),
        (
            {"samples": torch.zeros(6, 1, 2, 2, dtype=torch.uint8, device="meta")},
            "samples must be on the CPU, got 'meta'",
        ),
        ({"samples": [1]}, "samples must be a uint8 tensor or a tuple of PyG graphs, got 'list'"),
        ({"samples": (1,)}, "samples/0 must be a PyG Data, got 'int'"),
        (
            {"labels": torch.zeros(6)},
            r"labels must be int64 \[N\], or uint8 \[N,L\] of 0 and 1, got 'torch.float32 \[6\]'",
        ),
        ({"labels": [0] * 6}, "labels must be int64 .*got 'list'"),
        ({"labels": torch.zeros(5, dtype=torch.int64)}, "labels must be as many as the samples, 6, got 5"),
        ({"labels": torch.tensor([0, 1, 2, 0, 0, 0])}, "labels/2 must be from 0 to 1, got 2"),
        ({"labels": torch.tensor([0, 1, 0, 0, 0, -1])}, "labels/5 must be from 0 to 1, got -1"),
        (
            {"labels": torch.zeros(6, 3, dtype=torch.uint8)},
            "labels must have a column for each of the 2 classes, got 3",
        ),
        ({"labels": torch.full((6, 2), 2, dtype=torch.uint8)}, "labels/0/0 must be from 0 to 1, got 2"),
        ({"split": np.zeros(6, np.int64)}, r"split must be a numpy array of int8, \[N\], got 'int64 \[6\]'"),
        ({"split": [0] * 6}, "split must be a numpy array of int8, .*got 'list'"),
        ({"split": np.zeros(7, np.int8)}, "split must be as many as the samples, 6, got 7"),
        ({"split": np.array([0, 0, 0, 4, 0, 0], np.int8)}, "split/3 must be from 0 to 3, got 4"),
        ({"split": np.ones(6, np.int8)}, "split must have at least one training sample"),
        ({"groups": np.array([0, 2, 0, 0, 0, 0])}, "groups/1 must be from 0 to 1, got 2"),
        ({"group_names": ("b", "a")}, "group_names must be sorted"),
        ({"group_names": ("a", "a")}, "group_names must be at least one name, and all different"),
        ({"classes": ("a", "a")}, "classes must be at least one name, and all different"),
        ({"classes": ["a", "b"]}, "classes must be a tuple of texts"),
        ({"columns": {"camera": ("a",)}}, "columns/camera must be as many as the samples, 6, got 1"),
        ({"preprocess": DropNodes(0.1)}, "preprocess must be for images, as the samples are, got 'DropNodes"),
    ],
)
def test_what_is_no_data_set(changes, message):
    with pytest.raises(ArgumentError, match=message):
        tiny(**changes)


def test_preprocessing_for_anything_is_for_pictures_too():
    assert tiny(preprocess=Identity()).preprocess == Identity()
    assert tiny(preprocess=Flip()).preprocess == Flip()


def big(val=20, source=None):
    """100 training samples of two classes, 60 and 40, some for validation, ten for the test."""
    n = 110 + val
    x = torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1).expand(n, 1, 6, 6).clone()
    y = [0] * 60 + [1] * 40 + [0, 1] * ((val + 10) // 2)
    data = from_arrays(x, y, split=["train"] * 100 + ["val"] * val + ["test"] * 10, name="big")
    return replace(data, source=source)


def label_counts(data, split):
    return np.bincount(data.labels[data.indices(split)].numpy()).tolist()


def test_few_labels():
    few = big().few(train=10, val=4)
    assert few.counts == {"train": 10, "val": 4, "test": 10}
    assert [label_counts(few, split) for split in SPLITS] == [[6, 4], [2, 2], [5, 5], []]
    assert few.name == "big[train=10, val=4]"
    assert few.notes[-1] == "few labels: train=10, val=4, drawn by label with seed 0 from big"
    assert few.fingerprint == big().few(train=10, val=4).fingerprint
    assert few.fingerprint != big().few(train=10, val=4, seed=1).fingerprint
    assert big().few(train=10, seed=1).name == "big[train=10, seed=1]"


def test_few_without_numbers_is_the_set_itself():
    data = big()
    assert data.few() is data


def test_few_takes_missing_validation_samples_from_training_samples_that_are_not_kept():
    data = big()
    few = data.few(train=10, val=60)
    assert few.counts == {"train": 10, "val": 60, "test": 10}
    numbers = {split: set(few.samples[few.indices(split), 0, 0, 0].tolist()) for split in SPLITS}
    assert set(range(100, 120)) < numbers["val"]
    assert not numbers["val"] & numbers["train"]
    assert numbers["test"] == set(range(120, 130))
    carved = data.few(val=30)
    assert carved.counts == {"train": 90, "val": 30, "test": 10}
    assert label_counts(carved, "train") == [54, 36]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train": 101}, "train must be a whole number from 1 to 100, got 101"),
        ({"train": 0}, "train must be a whole number from 1 to 100, got 0"),
        ({"val": 0}, "val must be a whole number from 1 to 130, got 0"),
        ({"train": 90, "val": 31}, "val must be at most 30, what is there beside the training samples, got 31"),
        ({"val": 120}, "val must be at most 119, what is there beside the training samples, got 120"),
    ],
)
def test_few_of_what_is_not_there(given, message):
    with pytest.raises(ArgumentError, match=message):
        big().few(**given)


def test_few_has_a_source_only_where_load_can_give_it_again():
    data = big(source={"source": "big", "seed": 3})
    few = data.few(train=10, seed=3)
    assert few.source == {"source": "big", "seed": 3, "train": 10}
    assert data.few(train=10, seed=4).source is None
    assert few.few(train=5, seed=3).source is None
    assert big().few(train=10).source is None


@pytest.mark.parametrize(
    "changes",
    [
        {"samples": torch.arange(1, 25, dtype=torch.uint8).reshape(6, 1, 2, 2)},
        {"samples": torch.arange(24, dtype=torch.uint8).reshape(6, 2, 2, 1)},
        {"labels": torch.tensor([0, 1, 0, 1, 0, 0])},
        {"classes": ("cat", "dig")},
        {"classes": ("cat", "dog", "emu")},
        {"split": np.array([0, 0, 0, 1, 2, 2], np.int8)},
        {"groups": np.array([0, 0, 1, 1, 0, 0])},
        {"group_names": ("day", "nights")},
    ],
)
def test_the_fingerprint_tells_sets_apart(changes):
    assert tiny(**changes).fingerprint != tiny().fingerprint


def test_the_fingerprint_does_not_know_where_a_set_came_from():
    other = tiny(name="other", source={"source": "/there"}, notes=("x",), columns={})
    assert other.fingerprint == tiny().fingerprint


def test_the_fingerprint_of_graphs():
    data = tiny(samples=graphs())
    assert data.fingerprint == tiny(samples=graphs()).fingerprint
    for field, value in (
        ("x", torch.zeros(2, 1)),
        ("note", "m"),
        ("num", 9),
        ("nested", {"a": [1.5]}),
    ):
        changed = graphs()
        changed[4][field] = value
        assert tiny(samples=changed).fingerprint != data.fingerprint, field
    changed = graphs()
    changed[2].odd = object()
    with pytest.raises(ArgumentError, match="samples/2/odd must be a tensor, an array, .* fingerprint, got 'object'"):
        _ = tiny(samples=changed).fingerprint


def test_the_fingerprint_is_the_same_in_another_process():
    code = "from augtree.data import load; print(load('digits', train=50).fingerprint)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == load("digits", train=50).fingerprint
    assert len(done.stdout.strip()) == 64


def test_a_set_can_be_pickled():
    data = tiny(samples=graphs(), preprocess=DropNodes(0.1))
    again = pickle.loads(pickle.dumps(data))
    assert again.fingerprint == data.fingerprint
    assert again.preprocess == data.preprocess


def test_with_labels_the_rest_of_the_training_samples_is_unlabelled():
    whole = replace(big(), source={"source": "x", "seed": 0})
    data = whole.with_labels(10)
    train = whole.counts["train"]
    assert data.counts == {**whole.counts, "train": 10, "unlabelled": train - 10}
    assert str(data).endswith(f"test {whole.counts['test']}, unlabelled {train - 10})")
    assert label_counts(data, "train") == [6, 4]
    assert (data.samples == whole.samples).all()
    assert (data.split[whole.split > 0] == whole.split[whole.split > 0]).all()
    both = np.concatenate([data.indices("train"), data.indices("unlabelled")])
    assert sorted(both.tolist()) == whole.indices("train").tolist()
    assert data.fingerprint != whole.fingerprint
    assert data.name == f"{whole.name}[labels=10]"
    assert data.source == {"source": "x", "labels": 10, "seed": 0}
    told = f"10 of {train} training samples keep their labels, drawn by label with seed 0"
    assert data.notes[-1] == f"{told}; the other {train - 10} are unlabelled"
    assert whole.with_labels(None) is whole


def test_other_seeds_keep_other_labels_and_fewer_are_among_more():
    data = big()
    some, others = data.with_labels(10), data.with_labels(10, seed=1)
    assert some.indices("train").tolist() != others.indices("train").tolist()
    assert others.name == f"{data.name}[labels=10, seed=1]"
    assert {*data.with_labels(4).indices("train").tolist()} < {*some.indices("train").tolist()}


@pytest.mark.parametrize("labels", [0, 1000, 2.5])
def test_labels_must_be_there(labels):
    with pytest.raises(ArgumentError, match="labels must be a whole number from 1 to"):
        big().with_labels(labels)


def test_few_leaves_unlabelled_samples_alone():
    data = replace(big(), source={"source": "x", "seed": 0}).with_labels(10)
    few = data.few(train=4, val=2)
    assert few.counts == {**data.counts, "train": 4, "val": 2}
    assert few.source is None  # load draws the labels last
    again = replace(big(), source={"source": "x", "seed": 0}).few(train=20).with_labels(10)
    assert again.source == {"source": "x", "train": 20, "labels": 10, "seed": 0}
    assert again.counts["unlabelled"] == 10
