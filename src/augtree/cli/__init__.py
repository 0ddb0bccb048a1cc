"""The command line: the same words as the library."""

from augtree.cli import apply, data, evaluate, forest, search
from augtree.cli.app import app

__all__ = ["app", "apply", "data", "evaluate", "forest", "search"]
