"""GroupDRO: train for the worst group, by weights that grow with the groups' losses.

Sagawa, Koh, Hashimoto and Liang, "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020, Algorithm 1:
groups are drawn uniformly; q_g grows by exp(step size times loss of g) and is normalised; the loss is sum of q_g l_g.
A batch holds several samples of a group, whose mean is its loss; a group that is not in it keeps its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.baselines.base import Baseline, require_groups
from augtree.baselines.loop import Batch, fit_by, outputs_of
from augtree.data import Dataset
from augtree.errors import number
from augtree.keys import Key
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Order, Rows
from augtree.training.state import State


@dataclass(frozen=True)
class GroupDro(Baseline):
    """Groups weighted by how bad they are.

    Examples
    --------
    >>> GroupDro().needs
    'two groups or more'

    """

    name = "group-dro"
    about = "groups drawn alike, weighted towards the worst"
    source = "Sagawa et al. 2020, ICLR"
    needs = "two groups or more"
    costs = "1"
    settings = ("supervised",)
    domains = ("image", "graph")

    step_size: float = 0.01
    """How fast the weights grow with the losses."""
    adjustment: float = 0.0
    """Added to a group's loss as adjustment / sqrt(samples of the group), for what small groups overfit."""

    def __post_init__(self) -> None:
        number("step_size", self.step_size, 0, 100)
        number("adjustment", self.adjustment, 0, 1e6)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        require_groups(self.name, data)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        data = trainer.data
        members = members_of(trainer)
        slack = torch.tensor([self.adjustment / max(1, len(rows)) ** 0.5 for rows in members]).to(trainer.device)
        present = torch.tensor([float(len(rows) > 0) for rows in members], device=trainer.device)
        weights = present / present.sum()

        def loss(batch: Batch) -> Tensor:
            outputs = outputs_of(trainer, batch.inputs, len(batch.labels))
            groups = torch.from_numpy(data.groups[batch.rows]).to(trainer.device)
            each, there = group_means(trainer.output_losses(outputs, batch.labels), groups, len(members))
            each = each + slack * there
            weights.copy_(reweighted(weights, each.detach(), self.step_size))
            return (weights * each).sum()

        state = fit_by(trainer, seed, loss, order=by_group(members, seed))
        return state, {f"weight {name}": float(w) for name, w in zip(data.group_names, weights, strict=True)}


def reweighted(weights: Tensor, losses: Tensor, step_size: float) -> Tensor:
    """The weights after one step.

    >>> reweighted(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]), 1.0)
    tensor([0.2689, 0.7311])
    """
    grown = weights * torch.exp(step_size * losses)
    return grown / grown.sum()


def group_means(losses: Tensor, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The mean loss of each group, 0 for those without a sample; and which have one."""
    member = torch.nn.functional.one_hot(groups, count).to(losses.dtype)
    number_of = member.sum(0)
    return losses @ member / number_of.clamp(min=1), (number_of > 0).to(losses.dtype)


def members_of(trainer: Trainer) -> list[Rows]:
    """The training rows of each group."""
    groups = trainer.data.groups[trainer.rows]
    return [trainer.rows[groups == group] for group in range(len(trainer.data.group_names))]


def by_group(members: list[Rows], seed: int) -> Order:
    """An endless sequence of draws: a group, each as often, then one of its samples."""
    present = [rows for rows in members if len(rows)]
    starts = np.cumsum([0, *map(len, present)])[:-1]
    sizes = np.array([len(rows) for rows in present])
    every = np.concatenate(present)

    def order(start: int, count: int) -> tuple[Rows, Rows]:
        places = np.arange(start, start + count)
        key = Key.of(seed, places, role="group-dro")
        group = key.below(len(present), 0)
        return every[starts[group] + key.below(sizes[group], 1)], places

    return order
