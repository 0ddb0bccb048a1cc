import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augtree.data import from_arrays
from augtree.errors import ArgumentError
from augtree.transforms import Flip

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (20, 6, 7), dtype=np.uint8)
Y = np.arange(20) % 2


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (GREY, (20, 1, 6, 7)),
        (torch.from_numpy(GREY), (20, 1, 6, 7)),
        (GREY[:, None], (20, 1, 6, 7)),
        (GREY[..., None], (20, 1, 6, 7)),
        (np.stack([GREY] * 3, axis=1), (20, 3, 6, 7)),
        (np.stack([GREY] * 3, axis=3), (20, 3, 6, 7)),
        (GREY.astype(np.float32) / 255, (20, 1, 6, 7)),
        (torch.from_numpy(GREY).double() / 255, (20, 1, 6, 7)),
        (GREY.astype(np.float64), (20, 1, 6, 7)),
        (GREY.astype(np.int32), (20, 1, 6, 7)),
    ],
)
def test_forms_of_pictures(x, shape):
    data = from_arrays(x, Y)
    assert data.samples.shape == shape
    assert all((data.samples[:, c].numpy() == GREY).all() for c in range(shape[1]))


def test_the_arrays_are_copied():
    x = GREY.copy()
    data = from_arrays(x, Y)
    x[:] = 0
    assert int(data.samples.max()) > 0


def test_what_is_decided_is_said():
    assert from_arrays(GREY / 255, Y).notes[0] == "float64 in [0, 1] times 255"
    assert from_arrays(GREY > 127, Y).samples.unique().tolist() == [0, 255]
    assert from_arrays(GREY * 1.0, Y).notes[0] == "float64 with whole values in 0..255 taken as they are"
    assert from_arrays(GREY[..., None], Y).notes[0] == "channels stood last in x"
    assert from_arrays(GREY, Y).notes == ("no split is given: 60/20/20 by label and group, seed 0",)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.zeros((20, 3, 8, 3), np.uint8),
            r"x must have 1 to 4 channels .*both the second and the last .*\[20, 3, 8, 3\]",
        ),
        (np.zeros((20, 8, 8, 8), np.uint8), r"x must have 1 to 4 channels .*neither the second nor the last"),
        (np.zeros((20, 64), np.uint8), r"x must be pictures \[N,H,W\], \[N,C,H,W\] or \[N,H,W,C\], got \[20, 64\]"),
        (GREY / 100, r"x must be uint8, .*undo it, x \* std \+ mean.*got 'float64 from 0 to 2.55'"),
        (GREY * 1.0 - 1, "x must be uint8, .*got 'float64 from -1 to 254'"),
        (GREY * np.nan, "x must be uint8, .*got 'float64 from nan to nan'"),
        (GREY.astype(np.int64) + 1, "x must be uint8, .*got 'int64 from 1 to 256'"),
        (GREY.astype(np.complex64), "x must be numbers, got 'complex64'"),
        (list(GREY), r"x/0 must be a PyG Data \(pictures: one array for all, np.stack\(x\)\), got 'ndarray'"),
        ("digits", "x must be an array, a tensor, or a list of PyG graphs, got 'str'"),
    ],
)
def test_what_is_no_pictures(x, message):
    with pytest.raises(ArgumentError, match=message):
        from_arrays(x, Y)


@pytest.mark.parametrize(
    ("y", "classes", "labels", "names"),
    [
        ([5, 7] * 10, None, [0, 1] * 10, ("5", "7")),
        (np.array([10, 9] * 10, np.uint8), None, [1, 0] * 10, ("9", "10")),
        (torch.tensor([1.0, 0.0] * 10), None, [1, 0] * 10, ("0", "1")),
        ([True, False] * 10, None, [1, 0] * 10, ("0", "1")),
        (["dog", "cat"] * 10, None, [1, 0] * 10, ("cat", "dog")),
        (np.array(["dog", "cat"] * 10, object), None, [1, 0] * 10, ("cat", "dog")),
        (["10", "9"] * 10, None, [1, 0] * 10, ("9", "10")),
        (["dog", "cat"] * 10, ["dog", "cat"], [0, 1] * 10, ("dog", "cat")),
        ([0, 2] * 10, ["a", "b", "c"], [0, 2] * 10, ("a", "b", "c")),
        (np.array([[5], [7]] * 10), None, [0, 1] * 10, ("5", "7")),
        ([[1, 0], [1, 1]] * 10, None, [[1, 0], [1, 1]] * 10, ("0", "1")),
        ([[1.0, 0.0], [1.0, 1.0]] * 10, ["a", "b"], [[1, 0], [1, 1]] * 10, ("a", "b")),
    ],
)
def test_forms_of_labels(y, classes, labels, names):
    data = from_arrays(GREY, y, classes=classes)
    assert data.labels.tolist() == labels
    assert data.classes == names


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (None, None, "y must be given: a label for each sample"),
        (Y[:19], None, "y must be as many as the samples, 20, got 19"),
        ([0.5] * 20, None, "y/0 must be a whole number, got 0.5"),
        ([[0, 2]] * 20, None, r"y must be 0 and 1 where it is a matrix \[N,L\], got \[0, 2\]"),
        ([["a", "b"]] * 20, None, "y must be 0 and 1 where it is a matrix"),
        (["cat", "dgo"] * 10, ["cat", "dog"], r"y/1 must be one of the classes \(did you mean dog\?\), got 'dgo'"),
        ([0, 2] * 10, ["cat", "dog"], "labels/1 must be from 0 to 1, got 2"),
        ([None] * 20, None, "y must be whole numbers or texts"),
        (np.zeros((20, 2, 2)), None, r"y must be whole numbers or texts \[N\], or 0 and 1 \[N,L\]"),
    ],
)
def test_what_is_no_labels(y, classes, message):
    with pytest.raises(ArgumentError, match=message):
        from_arrays(GREY, y, classes=classes)


def test_groups():
    data = from_arrays(GREY, Y, groups=["night", "day"] * 10)
    assert data.group_names == ("day", "night")
    assert data.groups.tolist() == [1, 0] * 10
    assert from_arrays(GREY, Y, groups=torch.tensor([7, 3] * 10)).group_names == ("3", "7")
    assert from_arrays(GREY, Y).group_names == ("all",)
    with pytest.raises(ArgumentError, match="groups must be as many as the samples, 20, got 1"):
        from_arrays(GREY, Y, groups=["a"])
    with pytest.raises(ArgumentError, match=r"groups must be texts or whole numbers \[N\]"):
        from_arrays(GREY, Y, groups=[0.5] * 20)


def test_splits():
    given = from_arrays(GREY, Y, split=["Train"] * 10 + ["dev"] * 5 + ["test"] * 5)
    assert given.split.tolist() == [0] * 10 + [1] * 5 + [2] * 5
    assert given.notes == ()
    without = from_arrays(GREY, Y, split=["train"] * 10 + ["test"] * 10)
    assert without.counts == {"train": 8, "val": 2, "test": 10}
    assert without.notes == ("no validation samples are given: 2 training samples (20 %) became them, seed 0",)
    made = from_arrays(GREY, Y)
    assert made.counts == {"train": 12, "val": 4, "test": 4}
    assert (from_arrays(GREY, Y, seed=1).split != made.split).any()
    with pytest.raises(
        ArgumentError,
        match="split/1 must be one of train, training, val, .*, test, testing, unlabelled, unlabeled, got 'tr'",
    ):
        from_arrays(GREY, Y, split=["train", "tr"] * 10)
    with pytest.raises(ArgumentError, match="split must be as many as the samples, 20, got 1"):
        from_arrays(GREY, Y, split=["train"])
    with pytest.raises(ArgumentError, match="split must have at least one training sample"):
        from_arrays(GREY, Y, split=["test"] * 20)


def graph(**fields):
    return Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), **fields)


def test_graphs_with_their_own_labels():
    data = from_arrays([graph(y=torch.tensor([i % 2 + 5])) for i in range(6)])
    assert data.labels.tolist() == [0, 1] * 3
    assert (data.classes, data.domain) == (("5", "6"), "graph")
    several = from_arrays([graph(y=torch.tensor([[i % 2, 1]])) for i in range(6)])
    assert several.labels.tolist() == [[0, 1], [1, 1]] * 3
    assert from_arrays([graph() for _ in range(6)], ["a", "b"] * 3).classes == ("a", "b")


def test_graphs_without_labels():
    with pytest.raises(
        ArgumentError, match=r"x/1/y must be a label, as for the other graphs \(or give y\), got None"
    ):
        from_arrays([graph(y=torch.tensor([0])), graph()])
    with pytest.raises(ArgumentError, match="x/1/y must be a label, as for the other graphs"):
        from_arrays([graph(y=torch.tensor([0])), graph(y=torch.tensor([0, 1]))])


def test_name_and_preprocessing_are_kept_and_there_is_no_source():
    data = from_arrays(GREY, Y, name="mine", preprocess=Flip())
    assert (data.name, data.preprocess, data.source) == ("mine", Flip(), None)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (torch.tensor([[0, 1], [1, 3]]), r"must hold nodes from 0 to 2, got \[0, 3\]"),
        (torch.tensor([[-1], [0]]), r"must hold nodes from 0 to 2, got \[-1, 0\]"),
        (torch.tensor([[0, 1, 2]]), r"must be an int64 tensor \[2, edges\], got"),
        (torch.tensor([[0.0], [1.0]]), r"must be an int64 tensor \[2, edges\], got"),
        (None, r"must be an int64 tensor \[2, edges\], got None"),
    ],
)
def test_edges_between_nodes_that_are_not_there(edges, words):
    good = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [2]]))
    with pytest.raises(ArgumentError, match=f"^x/1/edge_index {words}"):
        from_arrays([good, Data(x=torch.ones(3, 1), edge_index=edges)], [0, 1])
