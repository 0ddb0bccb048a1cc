"""augtree learns data augmentation: trees of transformations, for images and for graphs.

Names are imported when they are first used, so that the command line can answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from augtree.version import __version__ as __version__

if TYPE_CHECKING:
    from augtree import data, errors, loggers, search, tasks, testing, transforms
    from augtree.comparison.compare import compare
    from augtree.comparison.resume import resume
    from augtree.comparison.train import train
    from augtree.errors import AugtreeError
    from augtree.evaluation.evaluate import evaluate
    from augtree.exports import export, export_model
    from augtree.forests import Weighted, Weighting, fit_forest, search_forest
    from augtree.policies import Forest, Tree, load, save
    from augtree.report.page import write_report
    from augtree.runs import executors
    from augtree.search import search_tree
    from augtree.transforms import spaces
    from augtree.transforms.wrap import wrap

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
    "executors",
    "export",
    "export_model",
    "fit_forest",
    "load",
    "loggers",
    "resume",
    "save",
    "search",
    "search_forest",
    "search_tree",
    "spaces",
    "tasks",
    "testing",
    "train",
    "transforms",
    "wrap",
    "write_report",
]
HOMES = {
    "comparison": ("compare", "resume", "train"),
    "errors": ("AugtreeError",),
    "evaluation": ("evaluate",),
    "exports": ("export", "export_model"),
    "forests": ("Weighted", "Weighting", "fit_forest", "search_forest"),
    "policies": ("Forest", "Tree", "load", "save"),
    "report.page": ("write_report",),
    "runs": ("executors",),
    "search": ("search_tree",),
    "transforms": ("spaces",),
    "transforms.wrap": ("wrap",),
}
"""The module of each name that is not a module itself."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in HOMES.items() if name in names), None)
    value: object = import_module(f"{__name__}.{name}" if home is None else f"{__name__}.{home}")
    value = value if home is None else getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
