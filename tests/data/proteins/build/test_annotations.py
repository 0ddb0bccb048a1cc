import os
from pathlib import Path

import numpy as np
import pytest

from augtree.data.proteins.build.annotations import evidence_codes, make_labels, read_annotations
from augtree.data.proteins.build.ontology import read_ontology
from augtree.errors import ArgumentError, DataError
from support.protein_files import GAF, OBO, gaf_line


@pytest.fixture
def gaf(tmp_path):
    (tmp_path / "goa.gaf").write_text(GAF)
    return tmp_path / "goa.gaf"


@pytest.fixture
def ontology(tmp_path):
    (tmp_path / "go.obo").write_text(OBO)
    return read_ontology(tmp_path / "go.obo")


def test_negations_and_no_data_are_dropped(gaf):
    found = read_annotations(gaf)
    assert found.terms == {
        "P00001": {"GO:0000003", "GO:0000006"},
        "P00002": {"GO:0000099"},
        "P00003": {"GO:0000005"},
    }
    assert found.counts == {
        "rows": 6,
        "negated": 1,
        "no_data": 1,
        "other_evidence": 0,
        "other_aspect": 0,
        "used": 4,
    }
    assert found.version == "2.2"


def test_evidence_and_aspects_are_chosen(gaf):
    assert read_annotations(gaf, "experimental", "P").terms == {"P00001": {"GO:0000003"}}
    assert read_annotations(gaf, ["IEA"]).terms == {"P00001": {"GO:0000006"}, "P00002": {"GO:0000099"}}


def test_labels_follow_the_ontology(gaf, ontology):
    labels, counts = make_labels(
        ["P00003", "P00001", "P00002", "P00009"], read_annotations(gaf).terms, ontology, min_proteins=1
    )
    assert labels.terms == tuple(f"GO:000000{i}" for i in (1, 2, 3, 4, 6))
    assert labels.names[1] == "growth"
    assert labels.namespaces == (*["biological_process"] * 3, *["molecular_function"] * 2)
    rows = [labels.indices[a:b].tolist() for a, b in zip(labels.indptr[:-1], labels.indptr[1:], strict=True)]
    assert rows == [[], [0, 1, 2, 3, 4], [0, 1], []]
    assert counts == {"annotations": 4, "of_unknown_terms": 1, "annotated_proteins": 2, "terms_too_rare": 0}


def test_rare_terms_are_dropped_and_a_protein_counts_once(gaf, ontology):
    twice = ["P00001", "P00001", "P00002"]
    labels, counts = make_labels(twice, read_annotations(gaf).terms, ontology, min_proteins=2)
    assert labels.terms == ("GO:0000001", "GO:0000002")
    assert labels.indptr.tolist() == [0, 2, 4, 6]
    assert counts["terms_too_rare"] == 3


def test_terms_of_other_aspects_are_not_reached(gaf, ontology):
    # GO:0000006 is a function that is part of a process.
    found = read_annotations(gaf, aspects="F")
    labels, _ = make_labels(["P00001"], found.terms, ontology, min_proteins=1, aspects="F")
    assert labels.terms == ("GO:0000004", "GO:0000006")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("!gaf-version: 2.1\n", "must be annotations in the GAF 2 format, with at least one row"),
        ("!gaf-version: 1.0\n" + gaf_line("P", "GO:1"), "must be GAF 2, .*got version 1.0, 17 columns at line 2"),
        ("!gpa-version: 1.1\nUniProtKB\tP\tx\n", "must be GAF 2, .*got version unknown, 3 columns at line 2"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "x.gaf").write_text(content)
    with pytest.raises(DataError, match=message):
        read_annotations(tmp_path / "x.gaf")


@pytest.mark.parametrize("evidence", ["IDAA", ["IDA", "ND"], []])
def test_evidence_must_be_known(evidence):
    with pytest.raises(ArgumentError, match="evidence must be"):
        evidence_codes(evidence)


def test_aspects_must_be_known(gaf):
    with pytest.raises(ArgumentError, match="aspects must be some of P"):
        read_annotations(gaf, aspects="X")


@pytest.mark.skipif(not os.environ.get("AUGTREE_DATA"), reason="AUGTREE_DATA is not set")
def test_the_labels_of_the_prebuilt_human_proteins_come_from_their_files():
    root = Path(os.environ["AUGTREE_DATA"]) / "proteins"
    if not (root / "go_labels.npz").exists():
        pytest.skip(f"there is no {root / 'go_labels.npz'}")
    found = read_annotations(next(root.glob("*.gaf.gz")))
    assert found.counts["rows"] == 475_402
    with np.load(root / "go_labels.npz") as wanted:
        ontology = read_ontology(next(root.glob("*.obo.gz")))
        labels, _ = make_labels(wanted["ids"].tolist(), found.terms, ontology, min_proteins=50)
        assert labels.terms == tuple(wanted["terms"].tolist())
        assert np.array_equal(labels.indptr, wanted["indptr"])
        assert np.array_equal(labels.indices, wanted["indices"])
