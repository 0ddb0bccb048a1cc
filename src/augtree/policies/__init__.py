"""Policies: trees and forests of transforms, as objects, files and pictures."""

from augtree.policies.codec import load, save
from augtree.policies.forest import Forest
from augtree.policies.tree import Tree

__all__ = ["Forest", "Tree", "load", "save"]
