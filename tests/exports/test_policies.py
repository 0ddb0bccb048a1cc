"""`at.export`: what it takes, where it writes, and what it refuses."""

import pytest

import augtree as at
from augtree.errors import ArgumentError, PolicyFileError
from augtree.transforms import Rotate

TREE = at.Tree().with_node(1, Rotate(0.6), p=0.7)


def test_values_files_runs_and_names_are_exported(tmp_path):
    TREE.save(tmp_path / "tree.json")
    source = at.export(TREE)
    assert at.export(tmp_path / "tree.json", to="python") == source
    assert at.export(str(tmp_path)) == source  # as the folder of a run
    assert "def randaugment" in at.export("randaugment", to="torchvision")


def test_a_file_is_written_and_an_existing_one_kept(tmp_path):
    out = tmp_path / "policy.py"
    source = at.export(TREE, to="albumentations", out=out)
    assert out.read_text() == source
    with pytest.raises(ArgumentError, match=r"out must be a new file \(overwrite=True replaces"):
        at.export(TREE, out=out)
    assert out.read_text() == source
    assert out.read_text() != at.export(TREE, out=out, overwrite=True) == out.read_text()


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(
        ArgumentError, match=r"to must be one of python, .* \(did you mean torchvision\?\), got 'torchvison'"
    ):
        at.export(TREE, to="torchvison")
    with pytest.raises(ArgumentError, match="policy must be a policy, a file"):
        at.export(None)
    with pytest.raises(PolicyFileError, match="there is no such file, and the names are"):
        at.export("nothing.json")
    with pytest.raises(PolicyFileError, match="must be that of a run with a policy"):
        at.export(tmp_path)
