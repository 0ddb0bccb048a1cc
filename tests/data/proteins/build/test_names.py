import pytest

from augtree.data.proteins.build.names import Structure, choose_structures, structure_of


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("AF-P12345-F1-model_v4.pdb.gz", Structure("P12345", 1, 4, "pdb", True)),
        ("x/AF-Q8WZ42-F167-model_v4.cif", Structure("Q8WZ42", 167, 4, "mmcif", False)),
        ("AF-P12345-2-F1-model_v6.cif.gz", Structure("P12345-2", 1, 6, "mmcif", True)),
        ("P12345.pdb", Structure("P12345")),
        ("pdb1abc.ENT.GZ", Structure("pdb1abc", packed=True)),
        ("a.b.mmcif", Structure("a.b", form="mmcif")),
        ("AF-P12345-F1-predicted_aligned_error_v4.json", None),
        ("._P12345.pdb", None),
        (".pdb", None),
        ("P12345.gz", None),
    ],
)
def test_what_a_name_says(file, model):
    assert structure_of(file) == model


def test_annotations_know_no_isoforms():
    assert Structure("P12345-2").accession == "P12345"


def test_of_several_files_for_a_fragment_one_is_read():
    files = ["AF-P1-F1-model_v3.pdb", "AF-P1-F1-model_v4.cif", "AF-P1-F1-model_v4.pdb", "AF-P1-F2-model_v4.cif"]
    assert choose_structures([structure_of(file) for file in files]) == ([2, 3], {0: 2, 1: 2})
