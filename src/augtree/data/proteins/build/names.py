"""What a structure file's name says: the protein, the fragment, the form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

ALPHAFOLD = re.compile(r"AF-(?P<protein>[A-Za-z0-9]+(?:-\d+)?)-F(?P<fragment>\d+)-model_v(?P<version>\d+)")
"""AF-P12345-F1-model_v4; an isoform has its number behind the accession."""
ENDING = re.compile(r"\.(?P<form>pdb|ent|cif|mmcif)(?P<packed>\.gz)?", re.IGNORECASE)


@dataclass(frozen=True)
class Structure:
    """A file's structure. A name that is not AlphaFold's is the protein's, and the structure is whole."""

    protein: str
    fragment: int = 1
    version: int = 0
    form: Literal["pdb", "mmcif"] = "pdb"
    packed: bool = False

    @property
    def accession(self) -> str:
        """The protein without the number of an isoform, as annotations name it."""
        return re.sub(r"-\d+$", "", self.protein)


def structure_of(file: str) -> Structure | None:
    """What a file's name says; None where it is no structure.

    >>> structure_of("human/AF-P12345-F2-model_v4.cif.gz")
    Structure(protein='P12345', fragment=2, version=4, form='mmcif', packed=True)
    >>> structure_of("P12345.pdb").protein, structure_of("notes.txt")
    ('P12345', None)
    """
    name = PurePosixPath(file).name
    stem = re.sub(ENDING.pattern + "$", "", name, flags=re.IGNORECASE)
    ending = ENDING.fullmatch(name[len(stem) :])
    if ending is None or not stem or stem.startswith("."):
        return None
    form: Literal["pdb", "mmcif"] = "pdb" if ending["form"].lower() in ("pdb", "ent") else "mmcif"
    packed = ending["packed"] is not None
    found = ALPHAFOLD.fullmatch(stem)
    if found is None:
        return Structure(stem, form=form, packed=packed)
    return Structure(found["protein"], int(found["fragment"]), int(found["version"]), form, packed)


def choose_structures(models: Sequence[Structure]) -> tuple[list[int], dict[int, int]]:
    """Which models to read, one for each fragment of a protein; and for each that is left out, the one instead of it.

    The newest version counts, then PDB before mmCIF (the same atoms, read in a third of the time), then the first.
    """
    best: dict[tuple[str, int], int] = {}
    for i, model in enumerate(models):
        known = best.setdefault((model.protein, model.fragment), i)
        if rank(model) > rank(models[known]):
            best[model.protein, model.fragment] = i
    kept = set(best.values())
    instead = {i: best[m.protein, m.fragment] for i, m in enumerate(models) if i not in kept}
    return sorted(kept), instead


def rank(model: Structure) -> tuple[int, bool]:
    """The higher of two models of the same fragment is read."""
    return model.version, model.form == "pdb"
