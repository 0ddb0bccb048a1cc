"""Semi-supervised learning: the loss on few labelled samples, and consistency on many unlabelled ones.

As in UDA (Xie et al. 2020): the prediction for a sample after preprocessing alone (the plain view) is the target of
the prediction for the same sample after the policy (the strong view). Labels of unlabelled samples are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.data import Dataset
from augtree.errors import DataError, number, one_of, printable, true_or_false, whole_number
from augtree.keys import Key
from augtree.tasks.classification import Classification, ClassificationTrainer
from augtree.tasks.consistency import SCHEDULES, annealed, confident, consistency, divergence, signal_threshold
from augtree.training.judging import label_losses
from augtree.training.sampling import Order, Rows
from augtree.training.state import seed_of
from augtree.training.trainer import chunks
from augtree.transforms import Identity
from augtree.transforms.base import Policy
from augtree.transforms.graph_parts import joined

Draws = tuple[Rows, Rows]
"""Rows of samples, and the positions of their draws."""


@dataclass(frozen=True)
class SemiSupervised(Classification):
    """Train a classifier on few labelled and many unlabelled samples; the policy makes the strong view.

    `batch_size` and `epochs` count labelled samples. A model is judged on unaugmented validation data, as in
    `Classification`.

    Examples
    --------
    >>> SemiSupervised(model="wrn-28-2", ratio=5, tsa="linear").kind
    'semisupervised'

    """

    kind: ClassVar[str] = "semisupervised"
    ratio: int = 7
    """How many unlabelled samples a step has for each labelled one."""
    weight: float = 1.0
    """The weight of the consistency loss beside the supervised loss (lambda)."""
    sharpen: float = 0.4
    """The temperature that sharpens the targets of the consistency loss, above 0; at 1 they stay as they are."""
    confidence: float = 0.8
    """The probability that a target must exceed to count; 0 lets all targets count."""
    tsa: str = "none"
    """The schedule of training-signal annealing (none, linear, log or exp): it raises, from 1/classes to 1, the
    probability beyond which labelled samples are left out as learned."""
    include_labelled: bool = True
    """Whether the labelled training samples also serve as unlabelled ones, as in UDA."""
    augment_labelled: bool = False
    """Whether the policy also augments labelled samples, which are otherwise only preprocessed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("ratio", self.ratio, 1, 10**6)
        number("weight", self.weight, 0, 1e6)
        number("sharpen", self.sharpen, 0, 1, open_low=True)
        number("confidence", self.confidence, 0, 0.9999)
        one_of("tsa", self.tsa, SCHEDULES)
        for name in ("include_labelled", "augment_labelled"):
            true_or_false(name, getattr(self, name))

    def check(self, data: Dataset) -> None:
        """Raise for data without unlabelled samples."""
        if not len(data.indices("unlabelled")):
            raise DataError(
                f"{data.name}: semi-supervised training needs unlabelled samples, got none: keep the labels of some"
                " training samples only (labels=1000), or name a split unlabelled"
            )

    def prepare(self, data: Dataset) -> SemiSupervisedTrainer:
        return SemiSupervisedTrainer(self, data)


class SemiSupervisedTrainer(ClassificationTrainer):
    """A step's batch is the labelled samples, the plain and the strong views, in one pass through the model."""

    task: SemiSupervised

    def __init__(self, task: SemiSupervised, data: Dataset) -> None:
        task.check(data)
        self.unlabelled = data.indices("unlabelled")
        super().__init__(task, data)
        self.views = 1 + 2 * task.ratio

    # ---- batches

    def batches(
        self, policy: Policy, rows: Rows, order: Order | None, seed: int, first: int, steps: int
    ) -> Iterator[tuple[Any, Tensor]]:
        """The batches of some steps, each with the labels of its labelled samples, which come first.

        Unlabelled samples are shuffled anew when all were seen. Where the caller brings an order of the labelled
        ones, each of them comes with unlabelled ones of its group, so that groups have the same weight among both.
        """
        size = min(self.task.batch_size, len(rows))
        unlabelled_size = size * self.task.ratio
        pool, pool_seed = self.pool(rows), seed_of(seed, "unlabelled")
        if order is None:
            order, unlabelled_order = self.order_of(rows, seed), self.order_of(pool, pool_seed)
        else:
            unlabelled_order = unlabelled_of_same_group(order, self.task.ratio, self.data, pool, pool_seed)
        for start, count in chunks(first, steps, self.augmented_at_once(unlabelled_size) if self.pictures else 1):
            labelled = order(start * size, count * size)
            unlabelled = unlabelled_order(start * unlabelled_size, count * unlabelled_size)
            labels = self.labels_of(labelled[0])
            own, plain, strong = self.labelled_and_views(policy, labelled, unlabelled, seed)
            if not self.pictures:
                yield joined(own, plain, strong), labels
                continue
            for i in range(count):
                part, views = slice(i * size, (i + 1) * size), slice(i * unlabelled_size, (i + 1) * unlabelled_size)
                yield torch.cat((own[part], plain[views], strong[views])), labels[part]

    def pool(self, rows: Rows) -> Rows:
        """The samples of the consistency loss: the unlabelled ones, and the labelled ones where they are included."""
        return np.union1d(self.unlabelled, rows) if self.task.include_labelled else self.unlabelled

    def labelled_and_views(
        self, policy: Policy, labelled: Draws, unlabelled: Draws, seed: int
    ) -> tuple[Any, Any, Any]:
        """Labelled samples, and the plain and the strong view of unlabelled ones."""
        return (
            self.augmented(policy if self.task.augment_labelled else Identity(), *labelled, seed),
            self.augmented(Identity(), *unlabelled, seed_of(seed, "plain")),
            self.augmented(policy, *unlabelled, seed_of(seed, "strong")),
        )

    # ---- the objective

    def loss_scalars(self, first: int, steps: int) -> Tensor:
        """The threshold of training-signal annealing at each step."""
        classes = 2 if self.data.multilabel else max(2, self.data.num_classes)
        thresholds = [
            [signal_threshold(self.task.tsa, step, self.total_steps, classes)] for step in range(first, first + steps)
        ]
        return torch.tensor(thresholds, dtype=torch.float32)

    def step_loss(self, inputs: Any, labels: Tensor, loss_scalars: Tensor) -> Tensor:
        with self.precision():
            logits = self.require_logits(self.forward(self.normalised(inputs)), len(labels) * self.views)
        return self.loss(logits.float(), labels, loss_scalars[0])

    def loss(self, logits: Tensor, labels: Tensor, threshold: Tensor) -> Tensor:
        """The loss of a step, from the logits of labelled samples, plain views and strong views."""
        task, views = self.task, len(labels) * self.task.ratio
        labelled, plain, strong = logits.split((len(labels), views, views))
        unsupervised = consistency(
            plain, strong, sharpen=task.sharpen, confidence=task.confidence, multilabel=self.data.multilabel
        )
        return self.supervised(labelled, labels, threshold) + task.weight * unsupervised

    def supervised(self, logits: Tensor, labels: Tensor, threshold: Tensor) -> Tensor:
        """The loss of the labels that are not yet learned; multi-label, each of a sample's labels by itself."""
        smoothing = self.task.label_smoothing
        if not self.data.multilabel:
            probabilities = (-F.cross_entropy(logits.detach(), labels, reduction="none")).exp()
            return annealed(label_losses(logits, labels, smoothing), probabilities, threshold)
        targets = labels.to(logits.dtype)
        entropy = partial(F.binary_cross_entropy_with_logits, reduction="none")
        probabilities = (-entropy(logits.detach(), targets)).exp()
        return annealed(entropy(logits, targets * (1 - smoothing) + smoothing / 2), probabilities, threshold)

    def inner_inputs(self, policy: Policy, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """Labelled samples as a step has them, and both views of unlabelled ones of their groups."""
        pool_seed = seed_of(seed, "unlabelled", int(draw_ids[0]))
        others = unlabelled_of_same_group(
            lambda *_: (rows, draw_ids), self.task.ratio, self.data, self.pool(self.rows), pool_seed
        )
        views = self.labelled_and_views(policy, (rows, draw_ids), others(0, len(rows) * self.task.ratio), seed)
        return torch.cat(views) if self.pictures else joined(*views)

    def inner_outputs(
        self, inputs: Any, labels: Tensor, forward: Callable[[Any], Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of each sample: its own, then the strong views beside it; signal annealing is left out."""
        task, count, multilabel = self.task, len(labels), self.data.multilabel
        with self.precision():
            logits = (forward or self.model)(self.normalised(inputs)).float()
        self.require_logits(logits, count * self.views)
        labelled, plain, strong = logits.split((count, count * task.ratio, count * task.ratio))
        outputs = torch.cat((labelled[:, None], strong.view(count, task.ratio, -1)), 1).flatten(0, 1)
        rows = outputs.view(count, 1 + task.ratio, -1)
        supervised = label_losses(rows[:, 0], labels, task.label_smoothing)[:, None]
        losses = divergence(plain, rows[:, 1:].flatten(0, 1), task.sharpen, multilabel)
        mask = confident(plain, task.confidence, multilabel).to(losses.dtype)
        each = (1 + task.ratio) * task.weight / task.ratio  # of a strong view, since the loss is the mean of all rows
        losses = (losses * mask).view(count, task.ratio, -1).mean(2) * each
        weights = (mask * each).view(count, task.ratio, -1).expand(-1, -1, logits.shape[1])
        curvature = torch.cat((torch.full_like(rows[:, :1], 1 + task.ratio), weights), 1).flatten(0, 1)
        return outputs, torch.cat((supervised * (1 + task.ratio), losses), 1).flatten(), curvature


def unlabelled_of_same_group(order: Order, ratio: int, data: Dataset, pool: Rows, seed: int) -> Order:
    """For each labelled sample of an order, `ratio` samples of its group, drawn from the pool by position alone."""
    groups = data.groups[pool]
    pool, sizes = pool[np.argsort(groups, kind="stable")], np.bincount(groups, minlength=len(data.group_names))
    starts = np.cumsum(sizes) - sizes

    def unlabelled(start: int, count: int) -> Draws:
        group = np.repeat(data.groups[order(start // ratio, count // ratio)[0]], ratio)
        empty = group[sizes[group] == 0]
        if len(empty):
            name = data.group_names[empty[0]]
            raise DataError(f"{data.name}: every group needs unlabelled samples, got none in {printable(name)}")
        places = np.arange(start, start + count)
        draw = Key.of(seed, places, role="unlabelled").uniform()
        chosen = pool[starts[group] + np.minimum((draw * sizes[group]).astype(np.int64), sizes[group] - 1)]
        return chosen, chosen + (places << 32)

    return unlabelled
