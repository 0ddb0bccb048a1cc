"""Algorithm 2: one tree a group, then one model on all of them with learned weights."""

from augtree.weighting.forest import fit_forest, search_forest
from augtree.weighting.options import Weighting
from augtree.weighting.result import ForestResult

__all__ = ["ForestResult", "Weighting", "fit_forest", "search_forest"]
