"""Data sets and their readers."""

from augtree.data.arrays import from_arrays
from augtree.data.dataset import Dataset
from augtree.data.graphs.tu import read_tu
from augtree.data.groups import group
from augtree.data.load import load

__all__ = ["Dataset", "from_arrays", "group", "load", "read_tu"]
