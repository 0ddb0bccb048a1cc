"""augtree learns data augmentation: trees of transformations, for images and for graphs."""

from augtree import data, errors, tasks, testing, transforms
from augtree.comparison import compare, resume, train
from augtree.errors import AugtreeError
from augtree.evaluation import evaluate
from augtree.forests import Weighted, Weighting, fit_forest, search_forest
from augtree.policies import Forest, Tree, load, save
from augtree.search import search_tree
from augtree.transforms import spaces
from augtree.transforms.wrap import wrap
from augtree.version import __version__ as __version__

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
