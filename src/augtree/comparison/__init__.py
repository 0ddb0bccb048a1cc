"""Policies side by side, with the same budget for each; and one model to keep.

compare, Comparison, Line          a comparison, its result, and the line of a policy in its table
significance, Significance         whether a method is better over several data sets (Wilcoxon)
rows_of_run, rows_with_weights     the rows for a run: its policy, its search again, its controls; other weights
train, Trained                     one model with a policy
resume                             go on with a run of any kind
Longer, Soup, Searched, PolicyLike, free_policies, policy_of    from `augtree.baselines`
"""

from augtree.baselines import Longer, PolicyLike, Searched, Soup, free_policies, policy_of
from augtree.comparison.compare import compare
from augtree.comparison.result import Comparison, Line
from augtree.comparison.resume import resume
from augtree.comparison.rows import rows_of_run, rows_with_weights
from augtree.comparison.significance import Significance, significance
from augtree.comparison.train import Trained, train

__all__ = [
    "Comparison",
    "Line",
    "Longer",
    "PolicyLike",
    "Searched",
    "Significance",
    "Soup",
    "Trained",
    "compare",
    "free_policies",
    "policy_of",
    "resume",
    "rows_of_run",
    "rows_with_weights",
    "significance",
    "train",
]
