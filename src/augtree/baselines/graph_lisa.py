"""LISA for graphs: mixes representations within a label across groups, and within a group across labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.baselines.base import Baseline
from augtree.baselines.learning import encoder_of, preprocessed, train_by
from augtree.baselines.partners import drawn_partners, label_numbers
from augtree.data import Dataset
from augtree.errors import ArgumentError, number, whole_number
from augtree.keys import Key
from augtree.tasks import Task
from augtree.tasks.classification import ClassificationTrainer
from augtree.tasks.trainer import Trainer
from augtree.training.judging import label_losses
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of
from augtree.transforms.graph_parts import joined

STRATEGY, PARTNER, SHARE = range(3)
"""Counters of the draws; those from SHARE on make a share."""


class Pairs(NamedTuple):
    """The partner of each sample of a batch, and the sample's own share of the mixture."""

    partners: Rows
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class GraphLisa(Baseline):
    """LISA (Yao et al. 2022) on graphs, which are mixed as pooled representations, before the classifier.

    Each sample is mixed with a partner of the same label and another group or, with probability 1 - `across_groups`,
    of the same group and another label; the losses of both labels are mixed in the same proportion, from
    Beta(alpha, alpha). Where a sample has no partner of the one kind it gets one of the other; without any it stays
    as it is. Multi-label, samples have the same label where all their labels agree.
    """

    name: ClassVar[str] = "lisa"
    about: ClassVar[str] = "mixes graphs within a label across groups, and within a group across labels"
    source: ClassVar[str] = "Yao, Wang, Li, Zhang, Liang, Zou and Finn, 2022, ICML"
    needs: ClassVar[str] = "at least two groups"
    costs: ClassVar[str] = "2 (each sample and its partner)"
    settings: ClassVar[tuple[str, ...]] = ("supervised",)
    domains: ClassVar[tuple[str, ...]] = ("graph",)

    across_groups: float = 0.5
    """The probability of a partner of the same label and another group."""
    alpha: int = 2
    """The shares of the mixture are from Beta(alpha, alpha)."""

    def __post_init__(self) -> None:
        number("across_groups", self.across_groups, 0, 1)
        whole_number("alpha", self.alpha, 1, 100)

    def check(self, task: Task, data: Dataset) -> None:
        """Raise where all training samples are of one group."""
        super().check(task, data)
        names = [data.group_names[group] for group in np.unique(data.groups[data.indices("train")])]
        if len(names) < 2:
            raise ArgumentError("groups", "must be at least two among the training samples, for lisa", names)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The classifier."""
        task = cast(ClassificationTrainer, trainer).task
        encoder, start = encoder_of(trainer, self.name), trainer.fresh(seed)
        rates = task.rates(trainer.total_steps)

        def loss(batch: tuple[Any, Tensor, Tensor]) -> Tensor:
            graphs, labels, share = batch
            with trainer.precision():
                one, two = encoder.features(graphs).chunk(2)
                logits = encoder.fc(torch.lerp(two, one, share[:, None].to(one.dtype))).float()
            mine, other = (label_losses(logits, each, task.label_smoothing) for each in labels.chunk(2))
            return torch.lerp(other, mine, share).mean()

        return train_by(trainer, start, rates, seed, self.batches(trainer, len(rates), seed), loss), {}

    def batches(self, trainer: Trainer, steps: int, seed: int) -> Iterator[tuple[Any, int]]:
        """The samples of each step and then their partners, the labels of both, and the shares of the first."""
        size, order = trainer.batch_size, trainer.order_of(trainer.rows, seed)
        for step in range(steps):
            rows, draw_ids = order(step * size, size)
            partners, shares = self.pairs(trainer.data, trainer.rows, rows, Key.of(seed, draw_ids, role="lisa"))
            own = preprocessed(trainer, rows, draw_ids, seed)
            others = preprocessed(trainer, partners, draw_ids, seed_of(seed, "partner"))
            labels = trainer.labels_of(np.concatenate([rows, partners]))
            share = torch.from_numpy(shares).float().to(trainer.device)
            yield (joined(own, others), labels, share), 2 * size

    def pairs(self, data: Dataset, pool: Rows, rows: Rows, key: Key) -> Pairs:
        """What each of some samples is mixed with, among a pool that contains them."""
        labels = np.full(len(data), -1)
        labels[pool] = label_numbers(data, pool)
        same_label = labels[rows][:, None] == labels[pool]
        same_group = data.groups[rows][:, None] == data.groups[pool]
        kinds = [same_label & ~same_group, same_group & ~same_label]
        across, within = (drawn_partners(kind, key.uniform(PARTNER)) for kind in kinds)
        first = key.uniform(STRATEGY) < self.across_groups
        wanted, instead = np.where(first, across, within), np.where(first, within, across)
        chosen = np.where(wanted >= 0, wanted, instead)
        alone = chosen < 0
        shares = np.where(alone, 1.0, beta_draws(self.alpha, key))
        return Pairs(np.where(alone, rows, pool[chosen]), shares)


def beta_draws(alpha: int, key: Key) -> NDArray[np.float64]:
    """Numbers from Beta(alpha, alpha): the middle one of 2 alpha - 1 uniform numbers."""
    uniform = np.stack([key.uniform(SHARE + i) for i in range(2 * alpha - 1)])
    middle: NDArray[np.float64] = np.sort(uniform, axis=0)[alpha - 1]
    return middle
