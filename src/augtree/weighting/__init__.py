"""Algorithm 2: one tree a group, then one model on all of them with learned weights."""

from augtree.weighting.forest import fit_forest, search_forest
from augtree.weighting.options import Weighting
from augtree.weighting.result import ForestResult
from augtree.weighting.weighted import Weighted

__all__ = ["ForestResult", "Weighted", "Weighting", "fit_forest", "search_forest"]
