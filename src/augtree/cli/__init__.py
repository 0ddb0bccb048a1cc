"""The command line: the same words as the library, a module a command."""

from augtree.cli.app import app

__all__ = ["app"]
