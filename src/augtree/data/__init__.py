"""Data sets: samples with labels, each in one split and in one group.

load          by name, or from a folder or zip file of pictures, a TU set, or built protein graphs
from_arrays   from arrays, tensors or PyG graphs
group         the same samples in other groups
Dataset       what these return
read_tu       the graphs of a TU set, without labels, splits and groups around them

`augtree.data.proteins` builds protein graphs from structures. The readers are in `pictures`, `graphs`, `named` and
`proteins`.
"""

from augtree.data.arrays import from_arrays
from augtree.data.dataset import Dataset
from augtree.data.graphs.tu import read_tu
from augtree.data.groups import group
from augtree.data.load import load

__all__ = ["Dataset", "from_arrays", "group", "load", "read_tu"]
