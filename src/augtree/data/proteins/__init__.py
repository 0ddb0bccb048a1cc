"""Protein graphs with Gene Ontology labels.

build_proteins        from structures (PDB, mmCIF, AlphaFold's archives) to a folder; returns a Build
read_proteins         that folder as a data set
read_human_proteins   the prebuilt human set
"""

from augtree.data.proteins.build import Build, build_proteins
from augtree.data.proteins.human import read_human_proteins
from augtree.data.proteins.reader import read_proteins

__all__ = ["Build", "build_proteins", "read_human_proteins", "read_proteins"]
