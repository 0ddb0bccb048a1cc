"""Data sets and their readers."""

from augtree.data.tu import read_tu

__all__ = ["read_tu"]
