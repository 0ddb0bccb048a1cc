"""Targeted augmentation: paste the object of a picture on the background of another group.

Gao, Sagawa, Koh, Hashimoto and Liang, "Out-of-Domain Robustness via Targeted Augmentations", ICML 2023: Copy-Paste
(Same Y). There, animals of iWildCam are pasted on empty pictures of cameras that have seen the same species, so that
a camera's own background is randomised, and the habitat, which a background also shows, is kept. Here a background
is, by default, another group's picture of the same label, whose own object gives way to the mean colour around it.
Pictures are pasted before the task's preprocessing, so masks fit to the pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.baselines.base import Baseline, require_groups, require_one_label
from augtree.baselines.loop import Batch, fit_by
from augtree.data import Dataset
from augtree.data.masks import Masks
from augtree.errors import ArgumentError, number, one_of
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of

PARTNERS = ("label", "all")


@dataclass(frozen=True)
class Targeted(Baseline):
    """Objects on the backgrounds of other groups.

    Examples
    --------
    >>> Targeted(p=0.9).spec()
    {'way': 'targeted', 'p': 0.9, 'partners': 'label', 'empty': None}

    """

    name = "targeted"
    about = "pastes the object of a picture on the background of another group"
    source = "Gao et al. 2023, ICML"
    needs = "masks or boxes, and a label with them in two groups"
    costs = "1"
    settings = ("supervised",)
    domains = ("image",)

    p: float = 0.5
    """The probability that a sample is pasted."""
    partners: str = "label"
    """Groups whose backgrounds are taken: those that have the sample's label, or all others."""
    empty: str | None = None
    """The class of pictures without an object: if given, these alone are the backgrounds, as in the paper."""

    def __post_init__(self) -> None:
        number("p", self.p, 0, 1)
        one_of("partners", self.partners, PARTNERS)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        require_one_label(self.name, data)
        if data.masks is None or not data.masks.take(data.indices("train")).bits.any():
            rule = "must have training samples with masks or boxes (columns of index.csv, or masks= of from_arrays)"
            raise ArgumentError(self.name, rule, data.name)
        require_groups(self.name, data)
        if self.empty is not None:
            one_of(f"{self.name}/empty", self.empty, data.classes)
        if not self.backgrounds(data, data.indices("train")).share:
            raise ArgumentError(self.name, self.rule, data.name)

    @property
    def rule(self) -> str:
        """What must be so that a sample can be pasted."""
        if self.empty is not None:
            return f"must have masks of a label in one group, and pictures of {self.empty} in another that has it too"
        if self.partners == "label":
            return "must have a label that occurs with masks in two groups, or partners='all'"
        return "must have masks in two groups"

    def backgrounds(self, data: Dataset, rows: Rows) -> Backgrounds:
        """Which of these samples can be pasted, and on what."""
        if data.masks is None:
            raise ArgumentError(self.name, "must have data with masks or boxes", data.name)
        empty = None if self.empty is None else data.classes.index(self.empty)
        return Backgrounds(data, data.masks, rows, same_label=self.partners == "label", empty=empty)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        backgrounds = self.backgrounds(trainer.data, trainer.rows)
        state = fit_by(trainer, seed, lambda batch: self.loss(trainer, backgrounds, batch))
        return state, {"can be pasted": backgrounds.share}

    def loss(self, trainer: Trainer, backgrounds: Backgrounds, batch: Batch) -> Tensor:
        """The loss of a batch, some of whose pictures are pasted."""
        return trainer.step_losses(self.inputs(trainer, backgrounds, batch), batch.labels).mean()

    def inputs(self, trainer: Trainer, backgrounds: Backgrounds, batch: Batch) -> Tensor:
        """A batch, some of whose pictures are pasted: these go through the preprocessing again, by the same draws."""
        places, partners = self.draw(backgrounds, batch)
        inputs: Tensor = batch.inputs
        if not len(places):
            return inputs
        rows, masks = batch.rows[places], backgrounds.masks
        pictures = pasted(
            *(trainer.samples_on_device(rows), masks[rows].to(trainer.device)),
            *(trainer.samples_on_device(partners), masks[partners].to(trainer.device)),
        )
        seed = seed_of(batch.seed, "preprocess")
        pictures = trainer.apply_policy(trainer.preprocess, pictures, rows, batch.draws[places], seed)
        return inputs.index_copy(0, torch.from_numpy(places).to(inputs.device), pictures)

    def draw(self, backgrounds: Backgrounds, batch: Batch) -> tuple[Rows, Rows]:
        """The places in a batch of the samples to be pasted, and the rows of the pictures that they are pasted on."""
        key = batch.key("targeted")
        chosen, drawn = key.uniform(0) < self.p, key.uniform(1)
        places, partners = [], []
        for i, row in enumerate(batch.rows.tolist()):
            pool = backgrounds.pool(row)
            if chosen[i] and pool.size:
                places.append(i)
                partners.append(pool[int(drawn[i] * pool.size)])
        return np.array(places, np.int64), np.array(partners, np.int64)


class Backgrounds:
    """The training pictures on which the object of each sample may be pasted."""

    def __init__(self, data: Dataset, masks: Masks, rows: Rows, *, same_label: bool, empty: int | None) -> None:
        self.masks, self.labels, self.groups = masks, data.labels.numpy(), data.groups
        self.same_label, self.empty = same_label, empty
        areas = masks.areas
        if empty is None:
            self.has_object = areas > 0
            usable = self.has_object & (areas < masks.height * masks.width)
        else:
            usable = self.labels == empty
            self.has_object = (areas > 0) & ~usable
        self.candidates = rows[usable[rows]]
        self.cells = {(int(self.labels[row]), int(self.groups[row])) for row in rows}
        self.pools: dict[tuple[int, int], Rows] = {}
        self.share = float(np.mean([self.pool(row).size > 0 for row in rows.tolist()]))

    def pool(self, row: int) -> Rows:
        """The rows of the backgrounds for a sample; none where its object is not known."""
        if not self.has_object[row]:
            return self.candidates[:0]
        cell = int(self.labels[row]), int(self.groups[row])
        if cell not in self.pools:
            self.pools[cell] = self.candidates[self.allowed(*cell)]
        return self.pools[cell]

    def allowed(self, label: int, group: int) -> Any:
        """Which of the candidates may be the background of a sample of this label and group."""
        groups = self.groups[self.candidates]
        if not self.same_label:
            return groups != group
        if self.empty is None:
            return (groups != group) & (self.labels[self.candidates] == label)
        return np.isin(groups, [other for of, other in self.cells if of == label and other != group])


def pasted(pictures: Tensor, masks: Tensor, others: Tensor, other_masks: Tensor) -> Tensor:
    """The objects of pictures [N,C,H,W] on others, whose own objects give way to the mean colour around them.

    >>> object, background = torch.full((1, 1, 2, 2), 9), torch.tensor([[[[1, 2], [3, 200]]]])
    >>> here = torch.tensor([[[True, False], [False, False]]])
    >>> pasted(object, here, background, here.flip(1, 2)).tolist()
    [[[[9, 2], [3, 2]]]]
    """
    around = ~other_masks[:, None]
    total = (others * around).sum((2, 3), keepdim=True, dtype=torch.int64)
    count = around.sum((2, 3), keepdim=True).clamp(min=1)
    mean = ((2 * total + count) // (2 * count)).to(others.dtype)  # rounded, and the same on every device
    return torch.where(masks[:, None], pictures, torch.where(around, others, mean))
