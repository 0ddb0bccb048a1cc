import pytest

from augtree.data.proteins.build.archive import Archive, Entry, read_entry, split
from augtree.data.proteins.build.names import Structure
from augtree.errors import DataError
from support.protein_files import PDB, write_inputs, write_tar

FILES = {"b/P00002.pdb": PDB, "P00001.pdb.gz": PDB + "END\n", "a/notes.txt": "no structure"}


@pytest.mark.parametrize(("kind", "mode"), [("tar", "w"), ("compressed tar", "w:gz"), ("compressed tar", "w:xz")])
def test_an_archive_holds_what_its_folder_holds(tmp_path, kind, mode):
    folder, *_ = write_inputs(tmp_path, FILES)
    files = Archive.open(folder)
    assert [entry.file for entry in files.entries] == ["P00001.pdb.gz", "b/P00002.pdb"]
    assert (files.kind, files.ignored) == ("folder", 1)
    found = Archive.open(write_tar(folder, tmp_path / "x.tar", mode))
    assert [entry.file for entry in found.entries] == ["./P00001.pdb.gz", "./b/P00002.pdb"]
    assert (found.kind, found.ignored) == (kind, 1)
    contents = [read_entry(folder, entry) for entry in files.entries]
    if kind == "tar":
        assert [read_entry(found.place, entry) for entry in found.entries] == contents
    assert list(found.streamed([0, 1])) == list(enumerate(contents))
    assert list(found.streamed([1])) == [(1, contents[1])]


@pytest.mark.parametrize("content", [None, b"", b"no archive", b"\x1f\x8b damaged"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "x.tar"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match="x.tar: must be a folder or"):
        Archive.open(path)


def test_a_damaged_archive_is_refused(tmp_path):
    folder, *_ = write_inputs(tmp_path, FILES)
    path = write_tar(folder, tmp_path / "x.tar.gz", "w:gz")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="undamaged"):
        Archive.open(path)


def test_a_folder_without_structures_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match="must have structure files .*, got 1 other files"):
        Archive.open(tmp_path)


def test_parts_are_bounded_in_files_and_bytes():
    entries = [Entry(str(i), size, Structure(str(i))) for i, size in enumerate([5, 5, 1, 1, 1, 50, 1])]
    assert split(range(7), entries, most=3, size=10) == [(0, 1), (2, 3, 4), (5,), (6,)]
