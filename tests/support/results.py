"""A result of a search, made by hand."""

from augtree import Tree
from augtree.search.importance import Importance
from augtree.search.result import Cost, FreePolicy, TreeResult
from support.searches import INVERT

COST = Cost(1000, 500, 2.5, 12.3, 40, 1.25)
FREE = {
    "tree": FreePolicy(0.50, 0.05, 0.9, 0.0, 0.0),
    "none": FreePolicy(0.80, 0.06, 0.8, 0.30, 0.02),
    "randaugment": FreePolicy(0.60, 0.05, 0.85, 0.10, 0.01),
}
RESULT = TreeResult(
    tree=Tree().with_node(1, INVERT, 0.5),
    importances={"Invert": Importance(0.25, 0.0125)},
    history=[
        {"node": 1, "round": 0, "candidate": "yardstick", "loss": 1.0, "loss_se": 0.1, "seconds": 0.5, "forward": 9},
        {"node": 1, "round": 0, "candidate": "Fog", "p": 0.5, "failed": 'it said "no", twice', "seconds": 0.25},
    ],
    cost=COST,
    free=FREE,
    notes=["Node 2 is empty: Cutout was best, but not on fresh data."],
    deterministic=True,
)
