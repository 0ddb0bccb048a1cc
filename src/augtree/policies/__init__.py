"""Policies: trees and forests of transforms.

Tree     a distribution over short sequences of transforms
Forest   a tree for each group, with weights
load     a policy from a JSON file
save     a policy to a JSON file

A tree and a forest have `paths`, `to_text`, `to_dot`, `to_svg`, `save` and `module`, and are called like a function.
Free policies by name ("trivialaugment", "flip-crop", ...) are in `augtree.policies.presets`.
"""

from augtree.policies.codec import load, save
from augtree.policies.forest import Forest
from augtree.policies.tree import Tree

__all__ = ["Forest", "Tree", "load", "save"]
