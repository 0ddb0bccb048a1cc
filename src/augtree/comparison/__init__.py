"""Policies side by side, the same budget for each; and one model to keep."""

from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.ways import Asked, free_policies, policy_of
from augtree.comparison.compare import compare
from augtree.comparison.result import Comparison, Line
from augtree.comparison.resume import resume
from augtree.comparison.rows import ways_of_run
from augtree.comparison.train import Trained, train

__all__ = [
    "Asked",
    "Comparison",
    "Line",
    "Longer",
    "Searched",
    "Soup",
    "Trained",
    "compare",
    "free_policies",
    "policy_of",
    "resume",
    "train",
    "ways_of_run",
]
