"""augtree learns data augmentation: trees of transformations, for images and for graphs."""

from augtree import data, errors, testing, transforms
from augtree.errors import AugtreeError
from augtree.policies import Forest, Tree, load, save
from augtree.transforms import spaces
from augtree.transforms.wrap import wrap

__version__ = "0.1.0"

__all__ = [
    "AugtreeError",
    "Forest",
    "Tree",
    "data",
    "errors",
    "load",
    "save",
    "spaces",
    "testing",
    "transforms",
    "wrap",
]
