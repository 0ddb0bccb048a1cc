"""The search for a tree: Algorithm 1, its scorers, its result.

search_tree                   a search
SearchOptions                 the options of a search
Cooldown, Density, Retrain    the scorers with their options
TreeResult, Cost, Importance  the result
"""

from augtree.search.importance import Importance
from augtree.search.options import SearchOptions
from augtree.search.result import Cost, TreeResult
from augtree.search.scorers import Cooldown, Density, Retrain
from augtree.search.search import search_tree

__all__ = [
    "Cooldown",
    "Cost",
    "Density",
    "Importance",
    "Retrain",
    "SearchOptions",
    "TreeResult",
    "search_tree",
]
