"""augtree learns data augmentation: trees of transformations, for images and for graphs."""

from augtree import errors, testing, transforms
from augtree.errors import AugtreeError
from augtree.policies import Forest, Tree, load
from augtree.transforms import spaces
from augtree.transforms.wrap import wrap

__version__ = "0.1.0"

__all__ = ["AugtreeError", "Forest", "Tree", "errors", "load", "spaces", "testing", "transforms", "wrap"]
