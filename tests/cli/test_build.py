import json

import pytest
from typer.testing import CliRunner

from augtree.cli.build import build
from augtree.errors import ArgumentError
from support.protein_files import PDB, write_inputs


def invoke(inputs, out, *more):
    given = dict(zip(("--structures", "--annotations", "--ontology"), inputs, strict=True))
    arguments = [str(word) for pair in given.items() for word in pair]
    return CliRunner().invoke(
        build, ["proteins", *arguments, "--out", str(out), *map(str, more)], catch_exceptions=False
    )


def test_a_build_says_what_it_did(tmp_path):
    inputs = write_inputs(tmp_path, {"P00001.pdb": PDB, "P00002.pdb.gz": PDB, "x.pdb": "bad", "y.txt": ""})
    done = invoke(inputs, tmp_path / "out", "--min-proteins", 1, "--evidence", "IDA, IEA", "--cutoff", 4, "--json")
    assert done.exit_code == 0
    assert "2 graphs of 2 proteins: 8 residues, 4 edges, 5 terms, 7 labels" in done.stderr
    assert "left out: 1 files that are bad (bad_files.csv)" in done.stderr
    last = json.loads(done.stdout)
    assert (last["out"], last["graphs"], last["bad_files"]) == (str(tmp_path / "out"), 2, 1)
    options = json.loads((tmp_path / "out/manifest.json").read_text())["options"]
    assert options == {
        "cutoff": 4.0,
        "fragments": "join",
        "evidence": ["IDA", "IEA"],
        "aspects": "PFC",
        "min_proteins": 1,
    }


def test_wrong_words_are_refused(tmp_path):
    inputs = write_inputs(tmp_path, {"P00001.pdb": PDB})
    with pytest.raises(ArgumentError, match="evidence must be of"):
        invoke(inputs, tmp_path / "out", "--evidence", "none")
