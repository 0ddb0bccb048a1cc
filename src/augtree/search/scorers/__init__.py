"""Scorers: they judge what the tree gains from one more candidate."""

from augtree.search.scorers.base import ScorerOptions, ScoringContext
from augtree.search.scorers.cooldown import Cooldown
from augtree.search.scorers.density import Density
from augtree.search.scorers.retrain import Retrain

SCORERS: dict[str, type[ScorerOptions]] = {"cooldown": Cooldown, "density": Density, "retrain": Retrain}

__all__ = ["SCORERS", "Cooldown", "Density", "Retrain", "ScorerOptions", "ScoringContext"]
