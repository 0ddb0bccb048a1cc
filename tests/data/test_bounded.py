"""Archives that want to do harm: names that lead out of a folder, links, small files that unpack to large ones."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from augtree import data
from augtree.data import bounded
from augtree.data.named.cifar import CIFAR10, find_files
from augtree.data.named.idx import read_idx
from augtree.data.proteins.build.structures import unpacked
from augtree.errors import DataError


def picture() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(file, "PNG")
    return file.getvalue()


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def all_files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def small(monkeypatch):
    """No file in an archive may be large."""
    monkeypatch.setattr(bounded, "LARGEST", 10_000)


HOSTILE = ("../evil.png", "../../evil.png", "/evil.png", "C:\\evil.png", "a/../../evil.png")


def test_names_that_lead_out_of_an_archive_make_no_file(tmp_path):
    rows = "".join(f"a/{i}.png,{'cd'[i % 2]},{split}\n" for i, split in enumerate(["train", "train", "val", "val"]))
    good = {"index.csv": f"path,label,split\n{rows}", **{f"a/{i}.png": picture() for i in range(4)}}
    path = zipped(tmp_path / "set.zip", {**good, **dict.fromkeys(HOSTILE, picture())})
    link = zipfile.ZipInfo("a/link.png")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    before = all_files(tmp_path)
    found = data.load(path, cache=tmp_path / "cache")
    assert len(found) == 4
    assert [name for name in all_files(tmp_path) if not name.startswith("cache/")] == before
    for name in (*HOSTILE, "a/link.png"):
        zipped(path, {**good, "index.csv": f"{good['index.csv']}{name},c,train\n", "a/link.png": "/etc/passwd"})
        assert any("unreadable" in note for note in data.load(path, cache=tmp_path / "cache").notes)
    assert [name for name in all_files(tmp_path) if not name.startswith("cache/")] == before


def test_a_picture_that_unpacks_to_too_much_is_unreadable_and_a_table_is_refused(tmp_path, small):
    bomb = b"\0" * 20_000
    names = [f"{'cd'[i % 2]}/{i}.png" for i in range(6)]
    path = zipped(tmp_path / "set.zip", {**dict.fromkeys(names, picture()), "c/bomb.png": bomb})
    notes = data.load(path, cache=tmp_path / "cache").notes
    assert any("a file in an archive must unpack to at most 10000 bytes, got 20000 or more" in note for note in notes)
    zipped(path, {**dict.fromkeys(names, picture()), "index.csv": bomb})
    with pytest.raises(DataError, match=r"index\.csv cannot be read \(a file in an archive must unpack to at most 1"):
        data.load(path)


def test_graphs_and_packed_files_that_unpack_to_too_much_are_refused(tmp_path, small):
    packed = gzip.compress(b"\0" * 20_000)
    path = zipped(tmp_path / "TINY.zip", {"TINY_A.txt": b"1, 2\n" * 4000})
    with pytest.raises(DataError, match="must unpack to at most 10000 bytes, got 20000 or more"):
        data.load(path)
    (tmp_path / "idx.gz").write_bytes(packed)
    with pytest.raises(DataError, match="must unpack to at most 10000 bytes, got 10001 or more"):
        read_idx(tmp_path / "idx.gz")
    with pytest.raises(DataError, match="must unpack to at most 10000 bytes"):
        unpacked(packed)
    with tarfile.open(tmp_path / CIFAR10.archive, "w:gz") as archive:
        member = tarfile.TarInfo(f"x/{CIFAR10.test}")
        member.size = 20_000
        archive.addfile(member, io.BytesIO(b"\0" * 20_000))
    with pytest.raises(DataError, match="must unpack to at most 10000 bytes, got 20000 or more"):
        find_files(CIFAR10, tmp_path)


def test_links_in_a_tar_archive_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    with tarfile.open(tmp_path / CIFAR10.archive, "w:gz") as archive:
        for name, kind in (("batches.meta.txt", tarfile.SYMTYPE), (CIFAR10.test, tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(tmp_path / "secret")
            archive.addfile(member)
    with pytest.raises(DataError, match=rf"batches\.meta\.txt|{CIFAR10.test}"):
        find_files(CIFAR10, tmp_path)
