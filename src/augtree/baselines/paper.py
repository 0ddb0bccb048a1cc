"""The paper's own way as written: a density tree for each group from its samples alone, then Algorithm 2.

"Learning Tree-Structured Composition of Data Augmentation", TMLR 2024: AutoAugment's 16 operations (for graphs
GraphCL's four) at five magnitudes, uniform weights at the start, raw directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from augtree.baselines.base import Baseline
from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.data.groups import MIN_VAL_SAMPLES
from augtree.errors import ArgumentError, whole_number
from augtree.forests import Weighted, Weighting
from augtree.forests.group_trees import group_alone
from augtree.policies import Forest, Tree
from augtree.search import search_tree
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import spaces


@dataclass(frozen=True)
class Paper(Baseline):
    """A forest by density matching, with weights by Algorithm 2.

    Examples
    --------
    >>> Paper(depth=2).spec()
    {'way': 'paper', 'depth': 2, 'alpha': 50}

    """

    name = "paper"
    about = "a tree for each group by density matching, weights by Algorithm 2"
    source = "Learning Tree-Structured Composition of Data Augmentation, 2024, TMLR"
    needs = f"{MIN_VAL_SAMPLES} validation samples of each group"
    costs = "8: up to 7 nodes on each group's samples (with --steps: 7 a group), a weighted one; and the scorings"
    settings = ("supervised",)
    domains = ("image", "graph")

    depth: int = 3
    """The levels of each tree."""
    alpha: int = 50
    """Steps between two updates of the weights."""

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, 1, 10)
        whole_number("alpha", self.alpha, 1, 10**6)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        for group in data.group_names:
            found = len(data.indices("val", group))
            if found < MIN_VAL_SAMPLES:
                rule = f"must have {MIN_VAL_SAMPLES} validation samples of each group, here {group}"
                raise ArgumentError(self.name, rule, found)

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:
        names = trainer.data.group_names
        found = [self.tree(trainer, group, seed, parts) for group in range(len(names))]
        trees = Forest({name: (tree, 1 / len(names)) for name, tree in zip(names, found, strict=True)})
        weighting = Weighting(alpha=self.alpha, start="uniform", d="raw")
        end = Weighted(trees, weighting).fit(trainer, seed)
        return end.theta, {f"weight {name}": float(w) for name, w in zip(names, end.w, strict=True)}

    def tree(self, trainer: Trainer, group: int, seed: int, parts: Parts) -> Tree:
        """A group's tree, from its own samples."""
        data = trainer.data
        own = group_alone(data, data.group_names[group])
        space = spaces.graphs() if data.domain == "graph" else spaces.images(fill=data.fill)
        options: dict[str, Any] = {"scorer": "density", "depth": self.depth, "check": 0, "seed": seed}
        return parts.search(f"group {group + 1}", search_tree, own, trainer.task, space, **options).tree
