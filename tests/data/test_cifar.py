import io
import tarfile

import numpy as np
import pytest

from augtree.data.cifar import META, TEST, TRAIN, read_cifar10
from augtree.errors import DataError
from augtree.transforms import Chain, Flip, PadCrop

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
    assert data.notes == (
        "10 training pictures became validation pictures, by class, seed 0",
        "not the official size: 100 + 20 pictures instead of 50000 + 10000",
    )


def test_the_seed_draws_the_validation_pictures(tmp_path):
    unpacked(tmp_path)
    assert (read_cifar10(tmp_path, seed=1).split != read_cifar10(tmp_path).split).any()


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
    expected = r"must have cifar-10-batches-bin/ or cifar-10-binary.tar.gz\. CIFAR-10 is .*kriz/cifar.html"
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
