"""LISA: blend samples of one label across groups, or of one group across labels.

Yao, Wang, Li, Zhang, Liang, Zou and Finn, "Improving Out-of-Distribution Robustness via Selective Augmentation", ICML
2022. Every step blends within labels (probability p) or within groups, with one share from Beta(alpha, alpha);
partners are drawn from all training samples. One that has no partner stays as it is. Graphs, which cannot be blended,
go through the model one by one, and what its classifier takes is blended.

In contrastive training the blends are the views: each view of a sample is blended with a partner of its own by the
same rules, with a share of its own, in place of other augmentation. There is no second label to be mixed, so the
sample keeps the larger share of its views. Samples without a label, and those for validation and test
(`samples="all"`), stay as they are and are nobody's partners. Graphs are blended before the projection.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from augtree.baselines.base import Baseline, require_groups, require_one_label
from augtree.baselines.loop import Batch, fit_by, shares
from augtree.baselines.mixup import blend, soft_loss
from augtree.data import Dataset
from augtree.errors import ArgumentError, TaskError, number
from augtree.keys import Key
from augtree.models import Model
from augtree.tasks import Task
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.tasks.contrastive_losses import nt_xent
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
    settings = ("supervised", "contrastive")
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
        partners = Partners(data)
        if self.p > 0 and not any(partners.pool(cell, within_label=True).size for cell in partners.cells):
            raise ArgumentError(self.name, "must have a label that occurs in two groups, or p = 0", data.name)
        if self.p < 1 and not any(partners.pool(cell, within_label=False).size for cell in partners.cells):
            raise ArgumentError(self.name, "must have a group with two labels, or p = 1", data.name)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        partners = Partners(trainer.data)
        if isinstance(trainer, ContrastiveTrainer):
            passes = 2 if trainer.pictures else 2 + len(trainer.augmented_views)
            loss = partial(self.view_loss, trainer, partners)
            return fit_by(trainer, seed, loss, passes=passes), {}
        if trainer.pictures:
            return fit_by(trainer, seed, partial(self.loss, trainer, partners)), {}
        require_features(trainer.model)
        return fit_by(trainer, seed, partial(self.graph_loss, trainer, partners), passes=2), {}

    def draw(self, partners: Partners, batch: Batch, view: int | None = None) -> tuple[Tensor, Rows]:
        """The share of each sample itself, 1 where it has no partner, and the row of its partner.

        The shares of a step are equal. A view has draws of its own, and the larger share of its sample.
        """
        own = "" if view is None else f" {view}"
        within_label = bool(batch.key_of_step("lisa strategy").uniform()[0] < self.p)
        share = shares(batch.key_of_step(f"lisa share{own}"), self.alpha)
        rows = partners.of(batch.rows, batch.key(f"lisa partner{own}"), within_label)
        share = share if view is None else share.maximum(1 - share)
        return torch.where(torch.from_numpy(rows == batch.rows), 1.0, share), rows

    def loss(self, trainer: Trainer, partners: Partners, batch: Batch) -> Tensor:
        """The loss of blended pictures."""
        share, rows = self.draw(partners, batch)
        share = share.to(trainer.device)
        inputs = blend(batch.inputs, partner_inputs(trainer, batch, rows), share.view(-1, 1, 1, 1))
        return soft_loss(trainer, inputs, batch.labels, trainer.labels_of(rows), share)

    def graph_loss(self, trainer: Trainer, partners: Partners, batch: Batch) -> Tensor:
        """The loss of graphs whose representations are blended."""
        share, rows = self.draw(partners, batch)
        share, graphs = share.to(trainer.device), (batch.inputs, partner_inputs(trainer, batch, rows))
        own, other = (blendable(trainer, each) for each in graphs)
        with trainer.precision():
            outputs = cast(Model, trainer.model).fc(blend(own, other, share[:, None])).float()
        own, other = (trainer.output_losses(outputs, labels) for labels in (batch.labels, trainer.labels_of(rows)))
        return (share * own + (1 - share) * other).mean()

    def view_loss(self, trainer: ContrastiveTrainer, partners: Partners, batch: Batch) -> Tensor:
        """NT-Xent of blended views."""
        views = batch.inputs.unbind(1) if trainer.pictures else batch.inputs
        blended = [self.blended_view(trainer, partners, batch, view, i) for i, view in enumerate(views, 1)]
        if trainer.pictures:
            return trainer.step_losses(torch.stack(blended, 1), batch.labels).mean()
        with trainer.precision():
            one, two = (cast(Model, trainer.model).fc(features) for features in blended)
        return nt_xent(one.float(), two.float(), trainer.task.temperature).mean()

    def blended_view(
        self, trainer: ContrastiveTrainer, partners: Partners, batch: Batch, view: Any, index: int
    ) -> Tensor:
        """The first or the second view, blended unless the task leaves it as it is; of graphs their features."""
        if index not in trainer.augmented_views:
            return blendable(trainer, view).float()
        share, rows = self.draw(partners, batch, index)
        partner = trainer.view(Identity(), index, rows, batch.draws, seed_of(batch.seed, "lisa partner"))
        own, other = (blendable(trainer, part) for part in (view, partner))
        return blend(own, other, share.to(trainer.device).view(-1, *[1] * (own.ndim - 1)))


Cell = tuple[int, int]
"""A label and a group."""


class Partners:
    """The training samples that each of them may be blended with; other samples have no partners."""

    def __init__(self, data: Dataset) -> None:
        self.labels, self.groups = data.labels.numpy(), data.groups
        self.known = set(data.indices("train").tolist())
        cells: dict[Cell, list[int]] = defaultdict(list)
        for row in sorted(self.known):
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

    def of(self, rows: Rows, key: Key, within_label: bool) -> Rows:
        """The row of each sample's partner; its own where it has none."""
        drawn, found = key.uniform(), rows.copy()
        for i, row in enumerate(rows.tolist()):
            pool = self.pool(self.cell(row), within_label) if row in self.known else rows[:0]
            if pool.size:
                found[i] = pool[int(drawn[i] * pool.size)]
        return found


def partner_inputs(trainer: Trainer, batch: Batch, rows: Rows) -> Any:
    """The partners, with draws of their own in the preprocessing."""
    return trainer.augmented(Identity(), rows, batch.draws, seed_of(batch.seed, "lisa partner"))


def blendable(trainer: Trainer, inputs: Any) -> Tensor:
    """Pictures as they are, and the features of graphs."""
    if trainer.pictures:
        return cast(Tensor, inputs)
    with trainer.precision():
        return cast(Model, trainer.model).features(inputs)


def require_features(model: nn.Module) -> None:
    """Raise for a model without the parts whose values are blended."""
    if not (hasattr(model, "features") and hasattr(model, "fc")):
        raise TaskError(f"lisa needs a model with features(batch) and fc for graphs, got {type(model).__name__}")
