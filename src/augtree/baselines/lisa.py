"""LISA: blend samples of one label across groups, or of one group across labels.

Yao, Wang, Li, Zhang, Liang, Zou and Finn, "Improving Out-of-Distribution Robustness via Selective Augmentation", ICML
2022. Every step blends within labels (probability p) or within groups, with one share from Beta(alpha, alpha);
partners are drawn from all training samples. One that has no partner stays as it is. Graphs, which cannot be blended,
go through the model one by one, and what its classifier takes is blended.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from augtree.baselines.base import Baseline, require_groups, require_one_label
from augtree.baselines.loop import Batch, fit_by, shares
from augtree.baselines.mixup import blend, soft_loss
from augtree.data import Dataset
from augtree.errors import ArgumentError, TaskError, number
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of
from augtree.transforms import Identity


@dataclass(frozen=True)
class Lisa(Baseline):
    """Blends within a label across groups, and within a group across labels.

    Examples
    --------
    >>> Lisa(p=1.0).spec()
    {'way': 'lisa', 'alpha': 2.0, 'p': 1.0}

    """

    name = "lisa"
    about = "blends within a label across groups, or within a group across labels"
    source = "Yao et al. 2022, ICML"
    needs = "two groups or more, with labels in common"
    costs = "1 (2 for graphs)"
    settings = ("supervised",)
    domains = ("image", "graph")

    alpha: float = 2.0
    """Shares are drawn from Beta(alpha, alpha)."""
    p: float = 0.5
    """The share of the steps that blend within labels; the others blend within groups."""

    def __post_init__(self) -> None:
        number("alpha", self.alpha, 0, 100, open_low=True)
        number("p", self.p, 0, 1)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        require_one_label(self.name, data)
        require_groups(self.name, data)
        partners = Partners(data, data.indices("train"))
        if self.p > 0 and not any(partners.pool(cell, within_label=True).size for cell in partners.cells):
            raise ArgumentError(self.name, "must have a label that occurs in two groups, or p = 0", data.name)
        if self.p < 1 and not any(partners.pool(cell, within_label=False).size for cell in partners.cells):
            raise ArgumentError(self.name, "must have a group with two labels, or p = 1", data.name)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        partners = Partners(trainer.data, trainer.rows)
        if trainer.pictures:
            return fit_by(trainer, seed, lambda batch: self.loss(trainer, partners, batch)), {}
        require_features(trainer.model)
        return fit_by(trainer, seed, lambda batch: self.graph_loss(trainer, partners, batch), passes=2), {}

    def draw(self, partners: Partners, batch: Batch) -> tuple[float, Rows]:
        """The share of each sample itself, and the row of its partner."""
        within_label = bool(batch.key_of_step("lisa strategy").uniform()[0] < self.p)
        share = float(shares(batch.key_of_step("lisa share"), self.alpha)[0])
        return share, partners.of(batch, within_label)

    def loss(self, trainer: Trainer, partners: Partners, batch: Batch) -> Tensor:
        """The loss of blended pictures."""
        share, rows = self.draw(partners, batch)
        inputs = blend(batch.inputs, partner_inputs(trainer, batch, rows), share)
        return soft_loss(trainer, inputs, batch.labels, trainer.labels_of(rows), share)

    def graph_loss(self, trainer: Trainer, partners: Partners, batch: Batch) -> Tensor:
        """The loss of graphs whose representations are blended."""
        share, rows = self.draw(partners, batch)
        model: Any = trainer.model
        with trainer.precision():
            features = [model.features(graphs) for graphs in (batch.inputs, partner_inputs(trainer, batch, rows))]
            outputs = model.fc(features[0] * share + features[1] * (1 - share)).float()
        own, other = (trainer.output_losses(outputs, labels) for labels in (batch.labels, trainer.labels_of(rows)))
        return (share * own + (1 - share) * other).mean()


Cell = tuple[int, int]
"""A label and a group."""


class Partners:
    """The training rows that each sample may be blended with."""

    def __init__(self, data: Dataset, rows: Rows) -> None:
        self.labels, self.groups = data.labels.numpy(), data.groups
        cells: dict[Cell, list[int]] = defaultdict(list)
        for row in rows.tolist():
            cells[self.cell(row)].append(row)
        self.cells = {cell: np.array(members) for cell, members in cells.items()}
        self.pools: dict[tuple[Cell, bool], Rows] = {}

    def cell(self, row: int) -> Cell:
        """The label and the group of a sample."""
        return int(self.labels[row]), int(self.groups[row])

    def pool(self, cell: Cell, within_label: bool) -> Rows:
        """The rows of the same label and other groups, or of the same group and other labels."""
        if (cell, within_label) not in self.pools:
            same, differs = (0, 1) if within_label else (1, 0)
            parts = [
                members
                for other, members in self.cells.items()
                if other[same] == cell[same] and other[differs] != cell[differs]
            ]
            self.pools[cell, within_label] = np.concatenate([np.zeros(0, np.int64), *parts])
        return self.pools[cell, within_label]

    def of(self, batch: Batch, within_label: bool) -> Rows:
        """The row of each sample's partner; its own where it has none."""
        drawn = batch.key("lisa partner").uniform()
        found = batch.rows.copy()
        for i, row in enumerate(batch.rows.tolist()):
            pool = self.pool(self.cell(row), within_label)
            if pool.size:
                found[i] = pool[int(drawn[i] * pool.size)]
        return found


def partner_inputs(trainer: Trainer, batch: Batch, rows: Rows) -> Any:
    """The partners, with draws of their own in the preprocessing."""
    return trainer.augmented(Identity(), rows, batch.draws, seed_of(batch.seed, "lisa partner"))


def require_features(model: nn.Module) -> None:
    """Raise for a model without the parts whose values are blended."""
    if not (hasattr(model, "features") and hasattr(model, "fc")):
        raise TaskError(f"lisa needs a model with features(batch) and fc for graphs, got {type(model).__name__}")
