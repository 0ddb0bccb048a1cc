"""Small files in the publishers' forms, written by hand."""

import gzip
import io
import tarfile

COLUMNS = """
group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id label_entity_id label_seq_id
pdbx_PDB_ins_code Cartn_x Cartn_y Cartn_z occupancy B_iso_or_equiv auth_seq_id auth_asym_id pdbx_PDB_model_num
"""

# Residue 2 is selenomethionine in two places, of which B is the fuller; 3 is in two places, equally full; 4 is SER or
# THR; 5 has no Calpha; 6 is in no table; 7 is selenocysteine. Then a calcium ion and water. The second model is far.
MMCIF = "\n".join(
    [
        "data_TINY",
        "loop_",
        "_entity.id",
        "_entity.type",
        "1 polymer",
        "2 non-polymer",
        "3 water",
        "loop_",
        *(f"_atom_site.{column}" for column in COLUMNS.split()),
        "ATOM   1  N  N  . ALA A 1 1 ? -1.0 0.0 0.0 1.00 90.5 1 A 1",
        "ATOM   2  C  CA . ALA A 1 1 ? 0.0 0.0 0.0 1.00 90.5 1 A 1",
        "HETATM 3  C  CA A MSE A 1 2 ? 0.0 9.0 0.0 0.40 80.0 2 A 1",
        "HETATM 4  C  CA B MSE A 1 2 ? 3.8 0.0 0.0 0.60 70.0 2 A 1",
        "ATOM   5  C  CA A GLY A 1 3 ? 7.5 0.0 0.0 0.50 60.0 3 A 1",
        "ATOM   6  C  CA B GLY A 1 3 ? 70.0 0.0 0.0 0.50 50.0 3 A 1",
        "ATOM   7  C  CA A SER A 1 4 ? 50.0 0.0 0.0 0.30 40.0 4 A 1",
        "ATOM   8  C  CA B THR A 1 4 ? 11.0 0.0 0.0 0.70 30.0 4 A 1",
        "ATOM   9  N  N  . LYS A 1 5 ? 12.0 0.0 0.0 1.00 30.0 5 A 1",
        "ATOM   10 C  C  . LYS A 1 5 ? 13.0 0.0 0.0 1.00 30.0 5 A 1",
        "HETATM 11 N  N  . Q9Q A 1 6 ? 14.0 0.0 0.0 1.00 20.0 6 A 1",
        "HETATM 12 C  CA . Q9Q A 1 6 ? 15.0 0.0 0.0 1.00 20.0 6 A 1",
        "HETATM 13 C  C  . Q9Q A 1 6 ? 16.0 0.0 0.0 1.00 20.0 6 A 1",
        "ATOM   14 C  CA . SEC A 1 7 ? 18.5 0.0 0.0 1.00 10.0 7 A 1",
        "HETATM 15 CA CA . CA  B 2 . ? 3.0 0.0 0.0 1.00 5.0 8 A 1",
        "HETATM 16 O  O  . HOH C 3 . ? 4.0 0.0 0.0 1.00 5.0 9 A 1",
        "ATOM   17 C  CA . ALA A 1 1 ? 500.0 0.0 0.0 1.00 1.0 1 A 2",
        "ATOM   18 C  CA . ALA A 1 2 ? 504.0 0.0 0.0 1.00 1.0 2 A 2",
        "",
    ]
)
MMCIF_TYPES = [0, 10, 5, 16, 20, 1]
"""A, M, G, T, unknown, C."""
MMCIF_NUMBERS = [1, 2, 3, 4, 6, 7]
MMCIF_X = [0.0, 3.8, 7.5, 11.0, 15.0, 18.5]
MMCIF_PLDDT = [90.5, 70.0, 60.0, 30.0, 20.0, 10.0]
MMCIF_PAIRS = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
"""Neighbours are 3.5 to 4 apart, next neighbours 7.2 or more."""


def pdb_line(number, residue, seq, x, y=0.0, z=0.0, chain="A", name=" CA ", element="C", alt=" ", occ=1.0, b=50.0):
    """An ATOM line."""
    place = f"{x:8.3f}{y:8.3f}{z:8.3f}{occ:6.2f}{b:6.2f}"
    return f"ATOM  {number:5d} {name}{alt}{residue} {chain}{seq:4d}    {place}          {element:>2}"


def chain_pdb(places, begin=1, residue="ALA"):
    """A PDB file of one chain along x."""
    lines = [pdb_line(i + 1, residue, begin + i, x) for i, x in enumerate(places)]
    return "\n".join([*lines, "TER", "END", ""])


# Two chains of two residues, 5 apart from each other; then a ligand that is an amino acid too.
PDB = "\n".join(
    [
        pdb_line(1, "TRP", 1, 0.0, b=91.25),
        pdb_line(2, "VAL", 2, 3.8, b=92.5),
        "TER",
        pdb_line(3, "TYR", 1, 0.0, y=5.0, chain="B"),
        pdb_line(4, "SEP", 2, 3.8, y=5.0, chain="B"),
        "TER",
        pdb_line(5, "GLY", 9, 1.0, y=2.0).replace("ATOM  ", "HETATM"),
        "END",
        "",
    ]
)

OBO = """format-version: 1.2
data-version: releases/2024-01-01

[Term]
id: GO:0000001
name: process
namespace: biological_process

[Term]
id: GO:0000002
name: growth ! and more
namespace: biological_process
alt_id: GO:0000099
is_a: GO:0000001 ! process

[Term]
id: GO:0000003
name: first part of growth
namespace: biological_process
relationship: part_of GO:0000002 ! growth
relationship: regulates GO:0000004 ! function

[Term]
id: GO:0000004
name: function
namespace: molecular_function

[Term]
id: GO:0000005
name: gone
namespace: molecular_function
is_a: GO:0000004
is_obsolete: true

[Term]
id: GO:0000006
name: binding
namespace: molecular_function
is_a: GO:0000004 {source="x"} ! function
relationship: part_of GO:0000003

[Typedef]
id: part_of
name: part of
"""


def gaf_line(protein, term, evidence="IDA", aspect="P", qualifier=""):
    """A row of a GAF file."""
    cells = ["UniProtKB", protein, protein, qualifier, term, "PMID:1", evidence, "", aspect, "name", "", "protein"]
    return "\t".join([*cells, "taxon:9606", "20240101", "UniProt", "", ""])


GAF = "\n".join(
    [
        "!gaf-version: 2.2",
        gaf_line("P00001", "GO:0000003"),
        gaf_line("P00001", "GO:0000006", "IEA", "F", "enables"),
        gaf_line("P00002", "GO:0000099", "IEA"),
        gaf_line("P00003", "GO:0000004", "IDA", "F", "NOT|enables"),
        gaf_line("P00003", "GO:0000001", "ND"),
        gaf_line("P00003", "GO:0000005", "IDA", "F"),
        "",
    ]
)


def write_inputs(folder, structures):
    """A folder of structures, annotations and an ontology: the arguments of build_proteins."""
    place = folder / "structures"
    for name, text in structures.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
    (folder / "goa.gaf").write_text(GAF)
    (folder / "go.obo.gz").write_bytes(gzip.compress(OBO.encode()))
    return place, folder / "goa.gaf", folder / "go.obo.gz"


def write_tar(folder, path, mode):
    """The files of a folder in a tar archive."""
    with tarfile.open(path, mode) as tar:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = tarfile.TarInfo(f"./{file.relative_to(folder).as_posix()}")
            content = file.read_bytes()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path
