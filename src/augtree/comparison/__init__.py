"""Policies side by side, the same budget for each; and one model to keep."""

from augtree.comparison.controls import Longer, Searched, Soup
from augtree.comparison.evaluation import Evaluation, evaluate
from augtree.comparison.model import Trained, train
from augtree.comparison.runs import ways_of_run
from augtree.comparison.table import Comparison, Line
from augtree.comparison.trainings import Asked, compare, free_policies, policy_of, resume

__all__ = [
    "Asked",
    "Comparison",
    "Evaluation",
    "Line",
    "Longer",
    "Searched",
    "Soup",
    "Trained",
    "compare",
    "evaluate",
    "free_policies",
    "policy_of",
    "resume",
    "train",
    "ways_of_run",
]
