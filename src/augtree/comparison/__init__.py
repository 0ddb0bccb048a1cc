"""Policies side by side, the same budget for each; and one model to keep."""

from augtree.comparison.model import Trained, train
from augtree.comparison.table import Comparison, Line
from augtree.comparison.trainings import Asked, compare, free_policies, policy_of, resume

__all__ = ["Asked", "Comparison", "Line", "Trained", "compare", "free_policies", "policy_of", "resume", "train"]
