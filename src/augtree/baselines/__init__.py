"""Baselines: the policies that need no search, and controls that cost as much as a search.

free_policies, policy_of    the policies that need no search; a policy as a user writes it, as a value
Longer, Soup, Searched      longer trainings, averages of cool-downs, whole searches
PolicyLike                  a policy as a user may write it
"""

from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.methods import PolicyLike, free_policies, policy_of

__all__ = ["Longer", "PolicyLike", "Searched", "Soup", "free_policies", "policy_of"]
