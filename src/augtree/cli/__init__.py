"""The command line: the same words as the library, a module a command."""

from augtree.cli import apply, compare, data, demo, evaluate, forest, resume, runs, search, train
from augtree.cli.app import app

__all__ = ["app", "apply", "compare", "data", "demo", "evaluate", "forest", "resume", "runs", "search", "train"]
