"""Algorithm 2: one tree a group, then one model on all of them with learned weights.

search_forest, fit_forest    a forest for a data set in groups; the weights alone, for given trees
Weighting                    the options of the weights
Weighted                     a forest as a policy of `compare` and `evaluate`
ForestResult                 the result
"""

from augtree.forests.fit import fit_forest
from augtree.forests.options import Weighting
from augtree.forests.result import ForestResult
from augtree.forests.search import search_forest
from augtree.forests.weighted import Weighted

__all__ = ["ForestResult", "Weighted", "Weighting", "fit_forest", "search_forest"]
