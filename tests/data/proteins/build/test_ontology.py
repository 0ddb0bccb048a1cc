import gzip

import pytest

from augtree.data.proteins.build.ontology import Term, read_ontology
from augtree.errors import DataError
from support.protein_files import OBO


@pytest.mark.parametrize("packed", [False, True])
def test_a_small_ontology(tmp_path, packed):
    path = tmp_path / "go.obo"
    path.write_bytes(gzip.compress(OBO.encode()) if packed else OBO.encode())
    found = read_ontology(path)
    assert found.version == "releases/2024-01-01"
    assert sorted(found.terms) == [f"GO:000000{i}" for i in (1, 2, 3, 4, 6)]
    assert found.terms["GO:0000003"] == Term("first part of growth", "biological_process", ("GO:0000002",))
    assert found.terms["GO:0000006"].parents == ("GO:0000004", "GO:0000003")
    assert found.other_ids == {"GO:0000099": "GO:0000002"}


def test_finding_and_following(tmp_path):
    (tmp_path / "go.obo").write_text(OBO)
    found = read_ontology(tmp_path / "go.obo")
    assert found.find("GO:0000099") == "GO:0000002"
    assert found.find("GO:0000005") is None
    assert found.find("GO:1234567") is None
    assert found.with_ancestors(["GO:0000003"]) == {"GO:0000001", "GO:0000002", "GO:0000003"}
    assert found.with_ancestors(["GO:0000006"]) == {f"GO:000000{i}" for i in (1, 2, 3, 4, 6)}


def test_a_circle_ends(tmp_path):
    (tmp_path / "go.obo").write_text("[Term]\nid: a\nis_a: b\n\n[Term]\nid: b\nis_a: a\n")
    assert read_ontology(tmp_path / "go.obo").with_ancestors(["a"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be an ontology in the OBO format"),
        (b"[Term]\nname: x\n", "each \\[Term\\] must have an id, got one with name"),
        (b"\xff\xfe\x00", "must be a text file"),
        (b"\x1f\x8bxxxx", "must be a text file"),
    ],
)
def test_what_is_no_ontology_is_refused(tmp_path, content, message):
    (tmp_path / "go.obo").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_ontology(tmp_path / "go.obo")
