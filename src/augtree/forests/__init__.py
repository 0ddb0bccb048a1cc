"""Algorithm 2: one tree a group, then one model on all of them with learned weights."""

from augtree.forests.options import Weighting
from augtree.forests.result import ForestResult
from augtree.forests.search import fit_forest, search_forest
from augtree.forests.weighted import Weighted

__all__ = ["ForestResult", "Weighted", "Weighting", "fit_forest", "search_forest"]
