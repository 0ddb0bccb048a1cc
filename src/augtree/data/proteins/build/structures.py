"""Residues and their Calpha atoms from the bytes of a PDB or mmCIF file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.data.bounded import gunzip
from augtree.data.proteins.build.names import Structure
from augtree.errors import DataError, need

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
"""The 20 types, as they are numbered; 20 is unknown."""
UNKNOWN = len(RESIDUES)
SAME_AS = {"U": "C", "O": "K"}
"""Selenocysteine is counted as cysteine, pyrrolysine as lysine."""
NUMBERS = {letter: RESIDUES.index(SAME_AS.get(letter, letter)) for letter in RESIDUES + "".join(SAME_AS)}
NO_RESIDUE, BY_ATOMS = -1, -2
STEP = 200
"""AlphaFold's fragments of a long protein begin at residues 1, 201, 401 ..."""

Bools = NDArray[np.bool_]
Texts = NDArray[np.bytes_]


@dataclass(frozen=True, eq=False)
class Residues:
    """The residues of all chains of the first model, in the file's order."""

    types: NDArray[np.uint8]
    """A place in RESIDUES, or UNKNOWN."""
    numbers: NDArray[np.int32]
    """The residue numbers; for a fragment of AlphaFold's, the places in the whole protein."""
    plddt: NDArray[np.float32]
    """The B factor column, which is pLDDT in AlphaFold's files."""
    points: NDArray[np.float64]
    """Where the Calpha atoms are, [n,3] in angstrom."""
    chains: int
    skipped: int
    """Residues without a Calpha atom."""


def residue_number(letter: str) -> int:
    """The type for a letter of a sequence.

    >>> residue_number("A"), residue_number("U") == residue_number("C"), residue_number("X")
    (0, True, 20)
    """
    return NUMBERS.get(letter.upper(), UNKNOWN)


def read_structure(content: bytes, model: Structure) -> Residues:
    """The residues of a structure file, or a DataError that says why there are none."""
    gemmi = need("gemmi", "protein")
    text = unpacked(content) if model.packed else content
    if not text.strip():
        raise DataError("must not be empty")
    try:
        if model.form == "pdb":
            structure, begin = gemmi.read_pdb_string(text), begin_in_pdb(text, model)
        else:
            block = gemmi.cif.read_string(text)[0]
            structure, begin = gemmi.make_structure_from_block(block), begin_in_mmcif(block, model)
        flat = gemmi.FlatStructure(structure)
    except (ValueError, RuntimeError, IndexError) as error:
        raise DataError(f"must be a {model.form} file ({error})") from error
    return place_fragment(residues_of(flat), begin, model)


def unpacked(content: bytes) -> bytes:
    """What a gzip file holds."""
    try:
        return gunzip(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"must be an undamaged gzip file ({error})") from error


def residues_of(flat: Any) -> Residues:
    """One node a residue of a polymer that is an amino acid and has a Calpha atom."""
    if len(flat.model_num) == 0:
        raise DataError("must have at least one atom")
    # Ligands, sugars and water are told apart by the file (what follows TER, or the table of entities).
    used = (flat.model_num == flat.model_num[0]) & (flat.entity_type <= 1)
    residue, first = residue_of_each_atom(flat)
    names, which = np.unique(texts(flat.residue_names), return_inverse=True)
    kind = np.array([kind_of(name.decode("ascii", "replace")) for name in names], np.int64)[which]
    atoms = texts(flat.atom_names)
    points = np.asarray(flat.pos)
    is_calpha = (atoms == b"CA") & (flat.element_names == b"C") & np.isfinite(points).all(axis=1)
    unlisted = (kind == BY_ATOMS) & has_all(residue, len(first), [atoms == b"N", is_calpha, atoms == b"C"])
    kind = np.where(unlisted, UNKNOWN, kind)
    used &= kind >= 0

    calpha = np.flatnonzero(used & is_calpha)
    best = calpha[np.lexsort((calpha, -flat.occ[calpha], residue[calpha]))]
    best = best[np.unique(residue[best], return_index=True)[1]]
    if len(best) == 0:
        raise DataError("must have a residue with a Calpha atom")
    chains = texts(flat.chain_ids)
    return Residues(
        types=kind[best].astype(np.uint8),
        numbers=np.asarray(flat.resnums)[best].astype(np.int32),
        plddt=np.asarray(flat.b_iso)[best].astype(np.float32),
        points=points[best].astype(np.float64),
        chains=len(np.unique(chains[best])),
        skipped=len(np.unique(residue[used])) - len(best),
    )


def residue_of_each_atom(flat: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of each atom's residue, in the file's order, and the first atom of each residue.

    Residues that share chain, number and insertion code are one: alternatives that differ in kind.
    """
    chain = texts(flat.chain_ids)
    begins = np.concatenate([[True], (chain[1:] != chain[:-1]) | (flat.model_num[1:] != flat.model_num[:-1])])
    run = np.cumsum(begins)
    key = np.stack([run, flat.resnums, flat.icodes], axis=1).astype(np.int64)
    changes = np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)])
    stretch = np.cumsum(changes) - 1
    _, first, same = np.unique(key[changes], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[same.reshape(-1)][stretch], np.flatnonzero(changes)[first[order]]


def has_all(residue: NDArray[np.int64], count: int, atoms: list[Bools]) -> Bools:
    """For each atom, whether its residue has all of these atoms."""
    there = np.ones(count, bool)
    for one in atoms:
        there &= np.bincount(residue[one], minlength=count) > 0
    return there[residue]


def texts(names: Any) -> Texts:
    """Fixed-width names of gemmi, as numpy has them."""
    return np.ascontiguousarray(names).view("S8")[:, 0]


@cache
def kind_of(name: str) -> int:
    """The type of a residue by its name: its own, its parent's (MSE is MET), unknown; or none, or to be seen."""
    gemmi = need("gemmi", "protein")
    info = gemmi.find_tabulated_residue(name)
    if not info.found():
        return BY_ATOMS
    return residue_number(info.one_letter_code) if info.is_amino_acid() else NO_RESIDUE


def begin_in_pdb(text: bytes, model: Structure) -> int | None:
    """How far a fragment's residue numbers are from the protein's, as DBREF says."""
    if model.fragment == 1:
        return None
    line = next((line for line in text.splitlines() if line.startswith(b"DBREF ")), None)
    return None if line is None else difference(line[55:60], line[14:18])


def begin_in_mmcif(block: Any, model: Structure) -> int | None:
    """How far a fragment's residue numbers are from the protein's, as _struct_ref_seq says."""
    if model.fragment == 1:
        return None
    ends = (block.find_value(f"_struct_ref_seq.{key}") for key in ("db_align_beg", "pdbx_auth_seq_align_beg"))
    return difference(*ends)


def difference(there: Any, here: Any) -> int | None:
    """The difference of two numbers in a file, if they are numbers."""
    try:
        return int(there) - int(here)
    except (TypeError, ValueError):
        return None


def place_fragment(residues: Residues, begin: int | None, model: Structure) -> Residues:
    """Residue numbers of the whole protein: by what the file says, or by AlphaFold's rule where it counts from 1."""
    if model.fragment == 1:
        return residues
    if not begin and int(residues.numbers.min()) <= STEP * (model.fragment - 1):
        begin = STEP * (model.fragment - 1)
    numbers = (residues.numbers + (begin or 0)).astype(np.int32)
    return Residues(residues.types, numbers, residues.plddt, residues.points, residues.chains, residues.skipped)
