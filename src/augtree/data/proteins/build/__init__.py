"""From structures and Gene Ontology files to a folder of compact graphs and labels."""

from augtree.data.proteins.build.pipeline import Build, build_proteins

__all__ = ["Build", "build_proteins"]
