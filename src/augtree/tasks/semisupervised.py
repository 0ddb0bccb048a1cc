"""Few labels: the supervised loss on labelled samples, and consistency of the policy's view of unlabelled ones.

As UDA has it (Xie et al. 2020): what the model says of a sample as it is (preprocessed) is the target of what it says
of the same sample as the policy makes it. Labels of unlabelled samples are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, number, one_of, whole_number
from augtree.keys import Key
from augtree.tasks.classification import Classification
from augtree.tasks.consistency import SCHEDULES, annealed, consistency, divergence, signal_threshold, taught
from augtree.training.optimizers import Optimizer, Weights
from augtree.training.trainer import CHUNK_BYTES, Order, Rows, State, Trainer, seed_of, some
from augtree.transforms import Identity
from augtree.transforms.base import Policy
from augtree.transforms.graph_parts import joined

Drawn = tuple[Rows, Rows]
"""Which samples, and what their draws depend on."""


@dataclass(frozen=True)
class SemiSupervised(Classification):
    """Train a classifier on few labels and many unlabelled samples, whose strong view is the policy's.

    `batch_size` and `epochs` count labelled samples; all that `Classification` has is here, with the same meaning. A
    model is judged on clean validation data, as there.
    """

    kind: ClassVar[str] = "semisupervised"
    ratio: int = 7
    """Unlabelled samples for each labelled one in a step; 7 as in FixMatch (Sohn et al. 2020)."""
    weight: float = 1.0
    """Lambda: what the consistency counts beside the supervised loss."""
    sharpen: float = 0.4
    """The temperature of the target; 1 leaves it as it is."""
    confidence: float = 0.8
    """Targets whose highest chance is not above this teach nothing; multi-label, either way counts. 0: all teach."""
    tsa: str = "none"
    """Training-signal annealing: the course (linear, log, exp) of the chance from which on a labelled sample is known
    well enough to be left out, from 1/classes to 1 over the steps of a whole training."""
    include_labelled: bool = True
    """Whether the labelled training samples are among the unlabelled ones too, without their labels, as in UDA."""
    augment_labelled: bool = False
    """Whether labelled samples go through the policy as well; else they are preprocessed only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("ratio", self.ratio, 1, 10**6)
        number("weight", self.weight, 0, 1e6)
        number("sharpen", self.sharpen, 0, 1, open_low=True)
        number("confidence", self.confidence, 0, 0.9999)
        one_of("tsa", self.tsa, SCHEDULES)
        for name in ("include_labelled", "augment_labelled"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(name, "must be True or False", getattr(self, name))

    def check(self, data: Dataset) -> None:
        """Raise for data without unlabelled samples."""
        if not len(data.indices("unlabelled")):
            raise DataError(
                f"{data.name}: semi-supervised training needs unlabelled samples, got none: keep the labels of some"
                " training samples only (labels=1000), or name a split unlabelled"
            )

    def prepare(self, data: Dataset) -> SemiSupervisedTrainer:
        """Everything that trainings and judgements on this data need."""
        return SemiSupervisedTrainer(self, data)


class SemiSupervisedTrainer(Trainer):
    """A step's batch is the labelled samples, the plain and the strong views, in one pass through the model."""

    task: SemiSupervised

    def __init__(self, task: SemiSupervised, data: Dataset) -> None:
        task.check(data)
        self.unlabelled = data.indices("unlabelled")
        super().__init__(task, data)
        self.views = 1 + 2 * task.ratio
        kinds = 2 if data.multilabel else max(2, data.num_classes)
        self.optimizer = WithThreshold(
            self.optimizer, lambda step: signal_threshold(task.tsa, step, self.total_steps, kinds)
        )

    def train(
        self,
        state: State,
        policy: Policy,
        rates: Sequence[float],
        seed: int,
        rows: Rows | None = None,
        tick: Any = None,
        order: Order | None = None,
    ) -> State:
        """Train on, a step for each rate; labelled samples come as in `Trainer.train`.

        Unlabelled ones are shuffled anew when all were seen. Where labelled samples come in an order of one's own,
        each brings unlabelled ones of its group, so that groups have the same weight among both.
        """
        rows = self.rows if rows is None else some(rows)
        pool = self.pool(rows)
        drawn = seed_of(seed, "unlabelled")
        if order is None:
            orders = Orders(self.order_of(rows, seed), self.order_of(pool, drawn))
        else:
            orders = Orders(order, beside(order, self.task.ratio, self.data, pool, drawn))
        return super().train(state, policy, rates, seed, rows, tick, orders)

    def pool(self, rows: Rows) -> Rows:
        """The samples that consistency is asked of."""
        return np.union1d(self.unlabelled, rows) if self.task.include_labelled else self.unlabelled

    def _batches(
        self, policy: Policy, order: Order, size: int, first: int, steps: int, seed: int
    ) -> Iterator[tuple[Any, Tensor]]:
        """The batches of some steps: labelled samples, plain views, strong views; and the labels of the first."""
        orders = cast(Orders, order)
        more = size * self.task.ratio
        together = max(1, CHUNK_BYTES // (self.samples[0].numel() * more)) if self.pictures else 1
        for start in range(first, first + steps, together):
            count = min(together, first + steps - start)
            which, where = orders(start * size, count * size)
            labels = self.labels[torch.from_numpy(which).to(self.device)]
            given, plain, strong = self.three(
                policy, (which, where), orders.unlabelled(start * more, count * more), seed
            )
            if not self.pictures:
                yield joined(given, plain, strong), labels
                continue
            for i in range(count):
                mine, others = slice(i * size, (i + 1) * size), slice(i * more, (i + 1) * more)
                yield torch.cat((given[mine], plain[others], strong[others])), labels[mine]

    def three(self, policy: Policy, labelled: Drawn, unlabelled: Drawn, seed: int) -> tuple[Any, Any, Any]:
        """Labelled samples, and the plain and the strong view of unlabelled ones."""
        return (
            self.augmented(policy if self.task.augment_labelled else Identity(), *labelled, seed),
            self.augmented(Identity(), *unlabelled, seed_of(seed, "plain")),
            self.augmented(policy, *unlabelled, seed_of(seed, "strong")),
        )

    def inner_inputs(self, policy: Policy, which: Rows, where: Rows, seed: int) -> Any:
        """Labelled samples as a step has them, and both views of unlabelled ones of their groups."""
        drawn = seed_of(seed, "unlabelled", int(where[0]))
        others = beside(lambda *_: (which, where), self.task.ratio, self.data, self.pool(self.rows), drawn)
        found = self.three(policy, (which, where), others(0, len(which) * self.task.ratio), seed)
        return torch.cat(found) if self.pictures else joined(*found)

    def inner_outputs(
        self, inputs: Any, labels: Tensor, forward: Callable[[Any], Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of each sample: its own, then the strong views beside it. Signal annealing plays no part here."""
        task, count, multilabel = self.task, len(labels), self.data.multilabel
        with self.precision():
            logits = (forward or self.model)(self.normalised(inputs)).float()
        self.check_logits(logits, count * self.views)
        given, plain, strong = logits.split((count, count * task.ratio, count * task.ratio))
        outputs = torch.cat((given[:, None], strong.view(count, task.ratio, -1)), 1).flatten(0, 1)
        rows = outputs.view(count, 1 + task.ratio, -1)
        known = self.losses_of(rows[:, 0], labels, task.label_smoothing)[:, None]
        told = divergence(plain, rows[:, 1:].flatten(0, 1), task.sharpen, multilabel)
        mask = taught(plain, task.confidence, multilabel).to(told.dtype)
        each = (1 + task.ratio) * task.weight / task.ratio  # of a strong view, since the loss is the mean of all rows
        told = (told * mask).view(count, task.ratio, -1).mean(2) * each
        bent = (mask * each).view(count, task.ratio, -1).expand(-1, -1, logits.shape[1])
        curvature = torch.cat((torch.full_like(rows[:, :1], 1 + task.ratio), bent), 1).flatten(0, 1)
        return outputs, torch.cat((known * (1 + task.ratio), told), 1).flatten(), curvature

    def _eager_step(self, inputs: Any, labels: Tensor, scalars: Tensor) -> None:
        self.weights.grads.zero_()
        with self.precision():
            logits = self.forward(self.normalised(inputs))
        self.check_logits(logits, len(labels) * self.views)
        self.loss(logits.float(), labels, scalars[-1]).backward()
        with torch.no_grad():
            self.optimizer.update(self.weights, scalars)

    def loss(self, logits: Tensor, labels: Tensor, threshold: Tensor) -> Tensor:
        """The loss of a step, from the logits of labelled samples, plain views and strong views."""
        task, views = self.task, len(labels) * self.task.ratio
        given, plain, strong = logits.split((len(labels), views, views))
        told = consistency(
            plain, strong, sharpen=task.sharpen, confidence=task.confidence, multilabel=self.data.multilabel
        )
        return self.supervised(given, labels, threshold) + task.weight * told

    def supervised(self, logits: Tensor, labels: Tensor, threshold: Tensor) -> Tensor:
        """The loss on the labels that are not known too well; multi-label, each of a sample's labels by itself."""
        smoothing = self.task.label_smoothing
        if not self.data.multilabel:
            chances = (-F.cross_entropy(logits.detach(), labels, reduction="none")).exp()
            return annealed(self.losses_of(logits, labels, smoothing), chances, threshold)
        truth = labels.to(logits.dtype)
        entropy = partial(F.binary_cross_entropy_with_logits, reduction="none")
        chances = (-entropy(logits.detach(), truth)).exp()
        return annealed(entropy(logits, truth * (1 - smoothing) + smoothing / 2), chances, threshold)


@dataclass(frozen=True)
class Orders:
    """The order of the labelled samples, and that of the unlabelled ones beside them."""

    labelled: Order
    unlabelled: Order

    def __call__(self, start: int, count: int) -> tuple[Rows, Rows]:
        """Labelled samples."""
        return self.labelled(start, count)


def beside(order: Order, ratio: int, data: Dataset, pool: Rows, seed: int) -> Order:
    """For each labelled sample so many of its group, drawn from the pool by their place alone."""
    groups = data.groups[pool]
    pool, sizes = pool[np.argsort(groups, kind="stable")], np.bincount(groups, minlength=len(data.group_names))
    starts = np.cumsum(sizes) - sizes

    def unlabelled(start: int, count: int) -> tuple[Rows, Rows]:
        group = np.repeat(data.groups[order(start // ratio, count // ratio)[0]], ratio)
        empty = group[sizes[group] == 0]
        if len(empty):
            name = data.group_names[empty[0]]
            raise DataError(f"{data.name}: every group needs unlabelled samples, got none in {name}")
        places = np.arange(start, start + count)
        chance = Key.of(seed, places, role="unlabelled").uniform()
        which = pool[starts[group] + np.minimum((chance * sizes[group]).astype(np.int64), sizes[group] - 1)]
        return which, which + (places << 32)

    return unlabelled


class WithThreshold:
    """An optimizer whose scalars end with what a step's training signal is cut by."""

    def __init__(self, inner: Optimizer, threshold: Callable[[int], float]) -> None:
        self.inner, self.threshold, self.moments = inner, threshold, inner.moments

    def scalars(self, rates: Sequence[float], first: int) -> Tensor:
        """A row for each step."""
        steps = range(first, first + len(rates))
        last = torch.tensor([[self.threshold(step)] for step in steps], dtype=torch.float32)
        return torch.cat((self.inner.scalars(rates, first), last), 1)

    def update(self, weights: Weights, scalars: Tensor) -> None:
        """One step."""
        self.inner.update(weights, scalars)
