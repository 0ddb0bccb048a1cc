"""Growing trees: Algorithm 1, its scorers, and what comes out."""

from augtree.search.result import Cost, Importance, TreeResult
from augtree.search.scorers import Cooldown, Density, Retrain
from augtree.search.search import resume, search_tree

__all__ = ["Cooldown", "Cost", "Density", "Importance", "Retrain", "TreeResult", "resume", "search_tree"]
