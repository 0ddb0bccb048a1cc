"""Scorers: how good the tree would be with one more candidate."""

from augtree.search.scorers.anneal import Anneal, Retrain
from augtree.search.scorers.base import Bench, ScorerOptions
from augtree.search.scorers.density import Density

SCORERS: dict[str, type[ScorerOptions]] = {"anneal": Anneal, "density": Density, "retrain": Retrain}

__all__ = ["SCORERS", "Anneal", "Bench", "Density", "Retrain", "ScorerOptions"]
