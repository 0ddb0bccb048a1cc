import gzip
import struct

import numpy as np
import pytest

from augtree.data.load import READERS
from augtree.data.named.idx import read_idx
from augtree.errors import DataError

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
read_mnist, read_fashion_mnist = READERS["mnist"], READERS["fashion-mnist"]


def idx(values):
    head = struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(np.uint8).tobytes()


def contents():
    """Pictures 2x3 whose first pixel is their number, 10 a class to train on and 2 to test on."""
    out = []
    for count in (100, 20):
        pictures = np.zeros((count, 2, 3))
        pictures[:, 0, 0], pictures[:, 1, 2] = np.arange(count), 9
        out += [pictures, np.arange(count) % 10]
    return dict(zip(FILES, map(idx, out), strict=True))


def write(root, folder="mnist", packed=False, changes=None):
    place = root / folder
    place.mkdir(parents=True)
    for name, content in {**contents(), **(changes or {})}.items():
        if content is not None:
            (place / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    return root


@pytest.mark.parametrize("packed", [False, True])
def test_a_tiny_set_by_hand(tmp_path, packed):
    data = read_mnist(write(tmp_path, packed=packed))
    assert data.samples.shape == (120, 1, 2, 3)
    assert data.samples[41].tolist() == [[[41, 0, 0], [0, 0, 9]]]
    assert data.samples[101, 0, 0, 0] == 1
    assert data.labels.tolist() == [*list(range(10)) * 10, *list(range(10)) * 2]
    assert data.counts == {"train": 90, "val": 10, "test": 20}
    assert (data.name, data.fill, data.preprocess) == ("mnist", 0, None)
    assert data.source == {"source": "mnist", "root": str(tmp_path), "seed": 0}
    assert data.notes[-1] == "not the official size: 100 + 20 pictures instead of 60000 + 10000"
    assert any("is not the published file" in note for note in data.notes) == packed


def test_fashion_has_names_and_is_never_taken_from_mnist(tmp_path):
    write(tmp_path)
    with pytest.raises(DataError, match=r"must have t10k-images-idx3-ubyte .*zalandoresearch/fashion-mnist"):
        read_fashion_mnist(tmp_path)
    data = read_fashion_mnist(write(tmp_path, "FashionMNIST/raw"))
    assert (data.name, data.classes[9]) == ("fashion-mnist", "Ankle boot")


def test_the_root_may_be_the_folder_itself(tmp_path):
    write(tmp_path)
    assert read_mnist(tmp_path / "mnist").fingerprint == read_mnist(tmp_path).fingerprint


def test_missing_files_are_named(tmp_path):
    write(tmp_path, changes={FILES[1]: None})
    with pytest.raises(
        DataError, match=r"mnist: must have train-labels-idx1-ubyte\. mnist is .*; with download=True"
    ):
        read_mnist(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            FILES[0],
            b"\x00\x00\x0d\x03" + bytes(12),
            "must begin as an idx file of bytes does, 00 00 08, got 00 00 0d 03",
        ),
        (FILES[0], b"\x00\x00\x08\x03\x00", "must begin as an idx file"),
        (FILES[0], b"", "must begin as an idx file"),
        (FILES[0], idx(np.zeros((100, 2, 3)))[:-1], r"must have 600 values for its shape \[100, 2, 3\], got 599"),
        (FILES[0], idx(np.zeros((100, 6))), r"must be pictures \[N,H,W\], got \[100, 6\]"),
        (FILES[1], idx(np.zeros(7)), r"must have 100 labels, got \[7\]"),
        (FILES[3], idx(np.full(20, 10)), "must have labels from 0 to 9, got 10 at 0"),
        (FILES[2], idx(np.zeros((20, 4, 4))), "training and test pictures must be of one size"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, message):
    write(tmp_path, changes={name: content})
    with pytest.raises(DataError, match=message):
        read_mnist(tmp_path)


def test_a_damaged_packed_file(tmp_path):
    path = tmp_path / "a.gz"
    for content in (gzip.compress(idx(np.zeros(50)))[:-9], b"no gzip"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="must be a whole file, packed by gzip"):
            read_idx(path)
