"""augtree learns data augmentation: trees of transformations, for images and for graphs."""

from augtree import data, errors, tasks, testing, transforms
from augtree.comparison import compare, evaluate, resume, train
from augtree.errors import AugtreeError
from augtree.policies import Forest, Tree, load, save
from augtree.search import search_tree
from augtree.transforms import spaces
from augtree.transforms.wrap import wrap
from augtree.weighting import Weighted, Weighting, fit_forest, search_forest

__version__ = "0.1.0"

__all__ = [
    "AugtreeError",
    "Forest",
    "Tree",
    "Weighted",
    "Weighting",
    "compare",
    "data",
    "errors",
    "evaluate",
    "fit_forest",
    "load",
    "resume",
    "save",
    "search_forest",
    "search_tree",
    "spaces",
    "tasks",
    "testing",
    "train",
    "transforms",
    "wrap",
]
