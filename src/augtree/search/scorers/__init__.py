"""Scorers: how good the tree would be with one more candidate."""

from augtree.search.scorers.base import Bench, ScorerOptions
from augtree.search.scorers.cooldown import Cooldown
from augtree.search.scorers.density import Density
from augtree.search.scorers.retrain import Retrain

SCORERS: dict[str, type[ScorerOptions]] = {"cooldown": Cooldown, "density": Density, "retrain": Retrain}

__all__ = ["SCORERS", "Bench", "Cooldown", "Density", "Retrain", "ScorerOptions"]
