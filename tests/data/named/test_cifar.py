import io
import tarfile

import numpy as np
import pytest

from augtree.data import load
from augtree.data.load import READERS
from augtree.data.named.cifar import CIFAR10
from augtree.errors import DataError
from augtree.transforms import Chain, Flip, PadCrop

read_cifar10, read_cifar100 = READERS["cifar10"], READERS["cifar100"]
TRAIN, TEST, META = CIFAR10.train, CIFAR10.test, "batches.meta.txt"
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def batch(start, count=20):
    """Pictures whose red is their number, green 100, blue 200; labels 0 to 9 in turn."""
    rows = np.zeros((count, 3073), np.uint8)
    rows[:, 0] = np.arange(count) % 10
    rows[:, 1:1025] = np.arange(start, start + count)[:, None]
    rows[:, 1025:2049], rows[:, 2049:] = 100, 200
    return rows


def files():
    content = {name: batch(20 * i).tobytes() for i, name in enumerate((*TRAIN, TEST))}
    return {**content, META: ("\n".join(NAMES) + "\n\n").encode()}


def unpacked(root, content=None):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name, text in (content or files()).items():
        (folder / name).write_bytes(text)
    return root


def archived(root, content=None):
    with tarfile.open(root / "cifar-10-binary.tar.gz", "w:gz") as tar:
        for name, text in (content or files()).items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return root


@pytest.mark.parametrize("write", [unpacked, archived])
def test_a_tiny_set_by_hand(tmp_path, write):
    data = read_cifar10(write(tmp_path))
    assert data.samples.shape == (120, 3, 32, 32)
    assert data.samples[:, 0, 0, 0].tolist() == list(range(120))
    assert (data.samples[:, 0] == data.samples[:, 0, :1, :1]).all()
    assert data.samples[7, :, 31, 31].tolist() == [7, 100, 200]
    assert data.labels.tolist() == list(range(10)) * 12
    assert data.classes == tuple(NAMES)
    assert (data.split[100:] == 2).all()
    assert data.counts == {"train": 90, "val": 10, "test": 20}
    assert sorted(data.labels[data.indices("val")].tolist()) == list(range(10))
    assert data.preprocess == Chain([Flip(), PadCrop(4)])
    assert data.group_names == ("all",)
    assert data.source == {"source": "cifar10", "root": str(tmp_path), "seed": 0}
    assert data.notes[-2:] == (
        "10 training pictures became validation pictures, by class, seed 0",
        "not the official size: 100 + 20 pictures instead of 50000 + 10000",
    )


def test_the_seed_draws_the_validation_pictures(tmp_path):
    unpacked(tmp_path)
    assert (read_cifar10(tmp_path, seed=1).split != read_cifar10(tmp_path).split).any()


def test_an_archive_that_is_not_the_published_one_is_told(tmp_path):
    notes = read_cifar10(archived(tmp_path)).notes
    assert notes[0].startswith("cifar-10-binary.tar.gz is not the published file: its md5 is ")
    assert notes[0].endswith(", not c32a1d4ab5d03f1284b67883e8d87530")


def test_the_root_may_be_the_folder_or_the_archive_itself(tmp_path):
    for root in ("a", "b"):
        (tmp_path / root).mkdir()
    folder = unpacked(tmp_path / "a") / "cifar-10-batches-bin"
    archive = archived(tmp_path / "b") / "cifar-10-binary.tar.gz"
    assert read_cifar10(folder).fingerprint == read_cifar10(archive).fingerprint


@pytest.mark.parametrize("write", [unpacked, archived])
def test_missing_files_are_named_with_where_they_are_found(tmp_path, write):
    content = files()
    del content["data_batch_3.bin"], content[META]
    with pytest.raises(DataError, match=r"must have data_batch_3.bin, batches.meta.txt\. .*www.cs.toronto.edu/~kriz"):
        read_cifar10(write(tmp_path, content))


def test_nothing_there(tmp_path):
    expected = r"must have cifar-10-batches-bin/ or cifar-10-binary.tar.gz\. cifar10 is .*kriz/cifar.html; with down"
    with pytest.raises(DataError, match=expected):
        read_cifar10(tmp_path)
    with pytest.raises(DataError, match=expected):
        read_cifar10(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (TEST, b"x" * 3072, "test_batch.bin must have 3073 bytes for each picture, got 3072 bytes"),
        (TEST, b"", "test_batch.bin must have 3073 bytes for each picture, got 0 bytes"),
        ("data_batch_2.bin", b"\x0a" * 3073, "data_batch_2.bin must have labels from 0 to 9, got 10 at picture 0"),
        (META, b"cat\ndog\n", "batches.meta.txt must have 10 names, got 2"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_cifar10(unpacked(tmp_path, {**files(), name: content}))


def test_a_damaged_archive(tmp_path):
    archive = archived(tmp_path) / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(DataError, match="must be cifar-10-binary.tar.gz from https"):
        read_cifar10(tmp_path)


COARSE = sorted(f"kind_{chr(97 + i)}" for i in range(20))
FINE = [f"thing_{i}" for i in range(100)]


def hundred(root, changes=None):
    """CIFAR-100 with ten pictures of each fine class to train on and one to test on; class i is of kind i % 20."""

    def rows(copies):
        out = np.zeros((100 * copies, 3074), np.uint8)
        out[:, 1] = np.tile(np.arange(100), copies)
        out[:, 0] = out[:, 1] % 20
        out[:, 2:] = np.arange(100 * copies)[:, None] % 256
        return out.tobytes()

    content = {
        "train.bin": rows(10),
        "test.bin": rows(1),
        "coarse_label_names.txt": "\n".join(COARSE).encode(),
        "fine_label_names.txt": "\n".join(FINE).encode(),
    }
    (root / "cifar-100-binary").mkdir()
    for name, text in {**content, **(changes or {})}.items():
        (root / "cifar-100-binary" / name).write_bytes(text)
    return root


def test_cifar100(tmp_path):
    data = read_cifar100(hundred(tmp_path))
    assert data.samples.shape == (1100, 3, 32, 32)
    assert data.samples[203, :, 5, 5].tolist() == [203, 203, 203]
    assert (int(data.labels[203]), data.classes[3], data.num_classes) == (3, "thing_3", 100)
    assert data.counts == {"train": 900, "val": 100, "test": 100}
    assert sorted(data.labels[data.indices("val")].tolist()) == list(range(100))
    assert data.group_names == ("all",)
    assert data.columns["coarse"][45] == "kind_f"
    grouped = load("cifar100", tmp_path, groups="column:coarse", seed=2)
    assert grouped.group_names == tuple(COARSE)
    assert grouped.group_names[grouped.groups[45]] == "kind_f"
    assert grouped.source == {"source": "cifar100", "root": str(tmp_path), "groups": "column:coarse", "seed": 2}
    assert load(**grouped.source).fingerprint == grouped.fingerprint


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test.bin", bytes([20, 0]) + bytes(3072), "test.bin must have labels from 0 to 19, got 20 at picture 0"),
        ("test.bin", bytes([0, 100]) + bytes(3072), "test.bin must have labels from 0 to 99, got 100 at picture 0"),
        ("train.bin", bytes(3073), "train.bin must have 3074 bytes for each picture, got 3073 bytes"),
        ("fine_label_names.txt", b"a b", "fine_label_names.txt must have 100 names, got 2"),
    ],
)
def test_broken_files_of_cifar100(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_cifar100(hundred(tmp_path, {name: content}))
