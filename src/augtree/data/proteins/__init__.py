"""Protein graphs with Gene Ontology labels: built from structures, and read."""

from augtree.data.proteins.build import Build, build_proteins
from augtree.data.proteins.reader import is_proteins, proteins_dataset, read_human_proteins, read_proteins

__all__ = ["Build", "build_proteins", "is_proteins", "proteins_dataset", "read_human_proteins", "read_proteins"]
