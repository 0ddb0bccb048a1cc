import gzip

import pytest

from augtree.data.proteins.build.names import Structure
from augtree.data.proteins.build.structures import RESIDUES, UNKNOWN, read_structure
from augtree.errors import DataError
from support.protein_files import MMCIF, MMCIF_NUMBERS, MMCIF_PLDDT, MMCIF_TYPES, MMCIF_X, PDB, chain_pdb, pdb_line

LETTERS = RESIDUES + "?"


def letters(found):
    return "".join(LETTERS[i] for i in found.types)


def test_an_mmcif_file_with_alternatives_by_hand():
    found = read_structure(MMCIF.encode(), Structure("T", form="mmcif"))
    assert found.types.tolist() == MMCIF_TYPES
    assert letters(found) == "AMGT?C"
    assert found.numbers.tolist() == MMCIF_NUMBERS
    assert found.points.tolist() == [[x, 0.0, 0.0] for x in MMCIF_X]
    assert found.plddt.tolist() == MMCIF_PLDDT
    assert (found.chains, found.skipped) == (1, 1)


def test_a_pdb_file_with_two_chains_and_a_ligand():
    found = read_structure(PDB.encode(), Structure("T"))
    assert letters(found) == "WVYS"
    assert found.points.tolist() == [[0, 0, 0], [3.8, 0, 0], [0, 5, 0], [3.8, 5, 0]]
    assert found.plddt.tolist() == [91.25, 92.5, 50.0, 50.0]
    assert (found.chains, found.skipped) == (2, 0)


def test_packed_files_hold_the_same():
    plain = read_structure(PDB.encode(), Structure("T"))
    packed = read_structure(gzip.compress(PDB.encode()), Structure("T", packed=True))
    assert packed.points.tolist() == plain.points.tolist()


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        *zip(("MSE", "SEC", "PYL", "SEP", "TPO", "HYP"), "MCKSTP", strict=True),
        *(("UNK", "?"), ("ASX", "?"), ("GLX", "?")),
    ],
)
def test_residues_beyond_the_twenty(name, letter):
    assert letters(read_structure(chain_pdb([0.0], residue=name).encode(), Structure("T"))) == letter


def test_the_twenty():
    three = "ALACYSASPGLUPHEGLYHISILELYSLEUMETASNPROGLNARGSERTHRVALTRPTYR"
    text = "\n".join(pdb_line(i + 1, three[3 * i : 3 * i + 3], i + 1, 4.0 * i) for i in range(20))
    found = read_structure(text.encode(), Structure("T"))
    assert found.types.tolist() == list(range(20))
    assert UNKNOWN == 20


def test_a_residue_that_no_table_has_needs_a_backbone():
    alone = chain_pdb([0.0, 3.0]).replace("ALA A   2", "Q9Q A   2")
    assert letters(read_structure(alone.encode(), Structure("T"))) == "A"


def test_insertion_codes_are_residues_of_their_own():
    text = chain_pdb([0.0, 3.0]).replace("ALA A   2 ", "ALA A   1A")
    assert read_structure(text.encode(), Structure("T")).numbers.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("content", "model", "message"),
    [
        (b"", Structure("T"), "must not be empty"),
        (b"hello\n", Structure("T"), "must have at least one atom"),
        (b"hello\n", Structure("T", form="mmcif"), "must be a mmcif file"),
        (b"data_x\n", Structure("T", form="mmcif"), "must have at least one atom"),
        (gzip.compress(PDB.encode())[:-9], Structure("T", packed=True), "must be an undamaged gzip file"),
        (PDB.encode(), Structure("T", packed=True), "must be an undamaged gzip file"),
        (chain_pdb([0.0]).replace(" CA ", " CB ").encode(), Structure("T"), "must have a residue with a Calpha atom"),
        (chain_pdb([0.0]).replace("ALA", "HOH").encode(), Structure("T"), "must have a residue with a Calpha atom"),
    ],
)
def test_what_is_no_structure_is_refused(content, model, message):
    with pytest.raises(DataError, match=message):
        read_structure(content, model)


DBREF = "DBREF  XXXX A    1     2  UNP    P00001   TEST_HUMAN   {:>5} {:>5}\n"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (chain_pdb([0.0, 3.0]), [401, 402]),
        (chain_pdb([0.0, 3.0], begin=401), [401, 402]),
        (DBREF.format(311, 312) + chain_pdb([0.0, 3.0]), [311, 312]),
        (DBREF.format(1, 2) + chain_pdb([0.0, 3.0]), [401, 402]),
    ],
    ids=["by AlphaFold's rule", "numbered through", "by the file", "a file that counts from 1"],
)
def test_where_a_fragment_lies(text, numbers):
    assert read_structure(text.encode(), Structure("P00001", fragment=3)).numbers.tolist() == numbers


def test_where_a_fragment_lies_in_mmcif():
    text = MMCIF + "_struct_ref_seq.db_align_beg 311\n_struct_ref_seq.pdbx_auth_seq_align_beg 1\n"
    found = read_structure(text.encode(), Structure("P00001", fragment=3, form="mmcif"))
    assert found.numbers.tolist() == [number + 310 for number in MMCIF_NUMBERS]
