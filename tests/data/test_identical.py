import numpy as np
import pytest
import torch
from PIL import Image
from torch_geometric.data import Data

from augtree.data import from_arrays, load
from augtree.data.identical import identical_pictures, identical_rows

NAMES = ["train", "train", "val", "test", "unlabelled", "test"]


def pictures(*contents, height=5):
    """Pictures of two channels, all pixels of a picture alike."""
    return np.array(contents, np.uint8)[:, None, None, None] * np.ones((1, 2, height, 30), np.uint8)


def test_only_pictures_that_agree_in_every_pixel_are_identical():
    some = torch.from_numpy(pictures(1, 2, 1, 1, 2))
    some[3, 0, 0, 0] += 1  # not in the middle, which is compared first
    assert identical_rows(some) == [[0, 2], [1, 4]]


def test_rows_are_in_order_however_their_middles_agree():
    some = torch.from_numpy(pictures(0, 0, 0, 0, 0, 0))
    for row, corner in enumerate([3, 1, 2, 1, 3, 3]):
        some[row, 0, 0, 0] = corner
    assert identical_rows(some) == [[0, 4, 5], [1, 3]]


@pytest.mark.parametrize(
    ("rows", "across", "contradicting"),
    [
        ((0, 1), False, True),
        ((0, 2), True, False),
        ((2, 3), True, True),
        ((3, 5), False, False),
        ((0, 4), False, False),  # both are trained on, and the label of an unlabelled sample is not looked at
        ((3, 4), True, False),
    ],
)
def test_what_is_wrong_with_identical_pictures(rows, across, contradicting):
    x = pictures(*range(6))
    x[rows[1]] = x[rows[0]]
    (found,) = identical_pictures(from_arrays(x, [0, 1, 0, 1, 1, 1], split=NAMES))
    assert found.names == tuple(f"sample {row}" for row in rows)
    assert found.splits == tuple(NAMES[row] for row in rows)
    assert (found.across_splits, found.contradicting) == (across, contradicting)


def test_several_labels():
    x = pictures(0, 1, 2, 0, 1)
    y = [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 0]]
    found = identical_pictures(from_arrays(x, y, classes=["a", "b", "c"], split=["train"] * 4 + ["val"]))
    assert [(each.labels, each.contradicting) for each in found] == [
        (("a;c", "no label"), True),
        (("b", "b"), False),
    ]


def test_pictures_in_files_have_their_names(tmp_path):
    for name, value in {"cat/1": 10, "cat/2": 20, "dog/1": 30, "dog/2": 20, "cat/3": 40, "dog/3": 50}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (6, 6), value).save(tmp_path / f"{name}.png")
    data = load(tmp_path)
    (found,) = identical_pictures(data)
    assert found.names == ("cat/2.png", "dog/2.png")
    assert found.differing(found.labels) == "cat/2.png (cat) and dog/2.png (dog)"
    assert data.take([3, 1]).files == ("dog/1.png", "cat/2.png")


def test_graphs_are_not_compared():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.ones(2, 1), edge_index=edges) for _ in range(4)]
    assert identical_pictures(from_arrays(graphs, [0, 1, 0, 1])) == []


def test_a_data_set_is_compared_once(monkeypatch):
    data = from_arrays(pictures(1, 2, 1), [0, 1, 0], split=["train", "val", "test"])
    found = identical_pictures(data)
    monkeypatch.setattr("augtree.data.identical.identical_rows", lambda _: pytest.fail("compared again"))
    assert identical_pictures(data) is found
