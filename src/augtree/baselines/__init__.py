"""Baselines: free policies, published methods, one file each, and controls that cost as much as a search.

free_policies, policy_of    the policies that need no search; a policy as a user writes it, as a value
Longer, Soup, Searched      longer trainings, averages of cool-downs, whole searches
Baseline, METHODS           a published method, and all of them by name
PolicyLike                  a policy as a user may write it
"""

from augtree.baselines.base import Baseline
from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.methods import PolicyLike, free_policies, policy_of
from augtree.baselines.registry import METHODS

__all__ = ["METHODS", "Baseline", "Longer", "PolicyLike", "Searched", "Soup", "free_policies", "policy_of"]
