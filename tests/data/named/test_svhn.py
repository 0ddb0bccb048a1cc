import numpy as np
import pytest
from scipy.io import savemat

from augtree.data import load
from augtree.data.named.svhn import read_svhn
from augtree.errors import DataError

PER_DIGIT = {"train": 10, "test": 2, "extra": 3}


def write(root, parts=("train", "test"), changes=None):
    """Pictures whose red is their place in the file, green 100, blue 200; labels 1 to 10 in turn."""
    folder = root / "svhn"
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        count = 10 * PER_DIGIT[part]
        x = np.zeros((32, 32, 3, count), np.uint8)
        x[:, :, 0], x[:, :, 1], x[:, :, 2] = np.arange(count), 100, 200
        x[0, 31, 1] = 7  # the upper right corner
        y = (np.arange(count) % 10 + 1).astype(np.uint8).reshape(-1, 1)
        savemat(folder / f"{part}_32x32.mat", {"X": x, "y": y, **(changes or {})})
    return root


def test_a_tiny_set_by_hand(tmp_path):
    data = read_svhn(write(tmp_path))
    assert data.samples.shape == (120, 3, 32, 32)
    assert data.samples[13, :, 5, 5].tolist() == [13, 100, 200]
    assert data.samples[13, :, 0, 31].tolist() == [13, 7, 200]
    assert data.samples[13, :, 31, 0].tolist() == [13, 100, 200]
    assert data.labels[:12].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    assert data.classes == tuple("0123456789")
    assert data.counts == {"train": 90, "val": 10, "test": 20}
    assert (data.split[100:] == 2).all()
    assert data.source == {"source": "svhn", "root": str(tmp_path), "seed": 0}
    assert "10 training pictures became validation pictures, by class, seed 0" in data.notes
    assert "not the official size: 100 pictures in train instead of 73257" in data.notes
    assert any("test_32x32.mat is not the published file" in note for note in data.notes)


def test_extra_pictures_are_for_training_only(tmp_path):
    data = load("svhn", write(tmp_path, ("train", "test", "extra")), extra=True, seed=4)
    assert data.counts == {"train": 120, "val": 10, "test": 20}
    assert (data.split[100:130] == 0).all()
    assert data.source == {"source": "svhn", "root": str(tmp_path), "extra": True, "seed": 4}
    assert load(**data.source).fingerprint == data.fingerprint
    assert data.name == "svhn+extra"


def test_missing_files(tmp_path):
    with pytest.raises(
        DataError, match=r"must have test_32x32.mat .*ufldl.stanford.edu/housenumbers/; with download"
    ):
        read_svhn(tmp_path)
    write(tmp_path, ("test",))
    with pytest.raises(DataError, match=r"svhn: must have train_32x32.mat\. svhn is"):
        read_svhn(tmp_path)
    write(tmp_path, ("train",))
    with pytest.raises(DataError, match=r"must have extra_32x32.mat\."):
        read_svhn(tmp_path, extra=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((32, 32, 1, 20), np.uint8)}, r"X must be uint8 \[32,32,3,N\], got uint8 \[32, 32, 1, 20\]"),
        ({"X": np.zeros((32, 32, 3, 20))}, r"X must be uint8 \[32,32,3,N\], got float64"),
        ({"y": np.ones((3, 1))}, "y must have a label for each of the 20 pictures, got 3"),
        ({"y": np.zeros((20, 1))}, "y must be whole numbers from 1 to 10"),
        ({"y": np.full((20, 1), 11)}, "y must be whole numbers from 1 to 10"),
    ],
)
def test_broken_tables(tmp_path, changes, message):
    write(tmp_path)
    write(tmp_path, ("test",), changes)
    with pytest.raises(DataError, match=message):
        read_svhn(tmp_path)


def test_a_damaged_file(tmp_path):
    path = write(tmp_path) / "svhn" / "test_32x32.mat"
    path.write_bytes(b"no matlab at all")
    with pytest.raises(DataError, match="test_32x32.mat: must be a MATLAB 5 file with X and y"):
        read_svhn(tmp_path)
