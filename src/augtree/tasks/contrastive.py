"""Contrastive learning: an encoder that is trained without labels to know two views of a sample from all others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from augtree import models
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError, TaskError, number, one_of, whole_number
from augtree.tasks.base import Task
from augtree.tasks.probe import Probe
from augtree.tasks.ridge import Ridge
from augtree.training.metrics import METRICS
from augtree.training.trainer import Order, Rows, State, Trainer, seed_of, seeded, some, stream
from augtree.transforms.base import Policy
from augtree.transforms.graph_parts import parts_of

JUDGES = ("knn", "ridge", "alignment-uniformity", "contrastive")
LABEL_FREE = JUDGES[2:]
SAMPLES = ("train", "all")
VIEWS = ("both", "one")
SMOOTHING = 0.02
"""The share of its votes that a sample's neighbours give to all classes alike, so that no loss is infinite."""
SHARPNESS = 4.0
"""What a regression on 0 and 1 is multiplied by to be logits, before a temperature is fitted to them."""
PLAUSIBLE = (-1.0, 2.0)
"""What it is kept within: a picture that lies far out does not count for a hundred."""
UNIFORMITY = 2.0
"""The t of Wang and Isola's exp(-t |x - y|^2)."""
COMPARED_AT_ONCE = 1 << 24
Found = TypeVar("Found")


@dataclass(frozen=True)
class Contrastive(Task):
    """Train an encoder on two views of every sample by NT-Xent (SimCLR, GraphCL); labels only judge it.

    The encoder is the model without its classifier, in whose place stands a projection of two layers to `dim`
    numbers, which the loss sees and nobody else. `views` "both" are two draws of the policy, "one" is the sample as
    it is and one draw, as GraphCL's own code has it. The preprocessing comes before both and is drawn for each.
    `samples` says what the encoder is trained on: the training and the unlabelled samples, or "all", whose labels
    are not looked at (the usual protocol for graphs).

    `judge` is what a search lowers on validation samples:
    - knn: the negative log-likelihood of their labels by the votes of the nearest training samples (Wu et al. 2018).
    - ridge: the same by ridge regression on the training samples' features: with an RBF kernel for graphs, as the SVM
      of their protocols sees them (with their lengths, which tell a graph's size), linear for pictures.
    - alignment-uniformity: without labels, how near two views are to each other, and how evenly samples are spread
      (Wang and Isola 2020). It rewards whatever makes views alike without collapse; it cannot tell an invariance
      that keeps the classes apart from one that mixes them, such as turning a 6 into a 9.
    - contrastive: the loss itself, as in the paper. With a trained encoder it is lowest where the two views are the
      same. `density` judges a candidate by the views that it makes, so that Identity does best, beside what always
      does the same to both (Invert with p=1).
    The last two need views: those of the policy that is judged (`density`), or, where a trained model is judged by
    itself (`cooldown`, `retrain`), always those of the same policy, SimCLR's chain for pictures and GraphCL's four
    for graphs.
    """

    kind: ClassVar[str] = "contrastive"
    free: ClassVar[Mapping[str, tuple[str, ...]]] = {"image": ("none", "simclr"), "graph": ("none", "graphcl")}
    batch_size: int = 256
    temperature: float = 0.5
    dim: int = 128
    views: str = "both"
    samples: str = "train"
    judge: str = "knn"
    neighbours: int = 20
    vote_temperature: float = 0.1
    """The weight of a neighbour is exp(its cosine similarity / this)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("batch_size", self.batch_size, 2, 10**6)
        number("temperature", self.temperature, 0.001, 1000)
        whole_number("dim", self.dim, 1, 2**16)
        one_of("views", self.views, VIEWS)
        one_of("samples", self.samples, SAMPLES)
        one_of("judge", self.judge, JUDGES)
        whole_number("neighbours", self.neighbours, 1, 10**6)
        number("vote_temperature", self.vote_temperature, 0.001, 1000)

    @property
    def label_free(self) -> bool:
        """Whether judging a candidate needs no labels."""
        return self.judge in LABEL_FREE

    def prepare(self, data: Dataset) -> ContrastiveTrainer:
        """Everything that trainings and judgements on this data need."""
        return ContrastiveTrainer(self, data)


class Projection(nn.Sequential):
    """Two layers in the place of a classifier."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, dim))

    @property
    def weight(self) -> Tensor:
        """The first layer's weights, by which a model knows its type."""
        return cast(nn.Linear, self[0]).weight


class ContrastiveTrainer(Trainer):
    """Batches are pairs of views, the loss is NT-Xent, and judgements are of the encoder's features."""

    views = 2
    each_once = True
    task: Contrastive

    def __init__(self, task: Contrastive, data: Dataset) -> None:
        super().__init__(task, data)
        splits = ("train", "unlabelled") if task.samples == "train" else (None,)
        self.labelled = self.rows
        self.rows = np.sort(np.concatenate([data.indices(split) for split in splits]))
        if len(self.rows) < 2:
            raise ArgumentError("data", "must have at least 2 training samples, to tell one from another", data.name)
        self.batch_size = min(task.batch_size, len(self.rows))
        self.total_steps = task.total_steps(len(self.rows))
        self.reference = reference(data)
        self._kept: dict[str, tuple[weakref.ref[State], Any]] = {}

    def _made(self, seed: int) -> nn.Module:
        made = super()._made(seed)
        if not isinstance(getattr(made, "fc", None), nn.Linear) or not callable(getattr(made, "features", None)):
            raise TaskError(
                "the model must have `features` (from a batch to [samples, features]) and a linear layer `fc` behind"
                f" them, whose place the projection takes; {type(made).__name__} has not"
            )
        with seeded(seed_of(seed, "projection")):
            made.fc = Projection(cast(nn.Linear, made.fc).in_features, self.task.dim)
        return made

    # ---- training

    def order_of(self, rows: Rows, seed: int, size: int | None = None) -> Order:
        """Each epoch in whole batches: a sample is never in one of them twice, unless there are too few for one."""
        return partial(whole_batches, rows, min(size or self.task.batch_size, len(rows)), seed=seed)

    def augmented(self, policy: Policy, which: Rows, where: Rows, seed: int) -> Any:
        """Two views of each sample: pictures [samples, 2, ...], graphs as two batches."""
        one, two = (self.view(policy, number, which, where, seed) for number in (1, 2))
        return torch.stack([one, two], 1) if self.pictures else (one, two)

    def parts(self, inputs: Any, size: int) -> Sequence[Any]:
        """Both views of so many samples each."""
        if self.pictures:
            return super().parts(inputs, size)
        return list(zip(*(parts_of(view, size) for view in inputs), strict=True))

    def view(self, policy: Policy, number: int, which: Rows, where: Rows, seed: int) -> Any:
        """The first or the second view; every draw is its own."""
        seed = seed_of(seed, "view", number)
        if number == 2 or self.task.views == "both":
            return super().augmented(policy, which, where, seed)
        return self._applied(self.preprocess, self.batch(which), which, where, seed_of(seed, "preprocess"))

    def outputs(self, inputs: Any, count: int, forward: Callable[[Any], Any]) -> Tensor:
        """The similarity of each view to all others, over the temperature: rows 2i and 2i + 1 are of sample i."""
        if self.pictures:
            z = forward(self.normalised(inputs.flatten(0, 1)))
        else:
            one, two = (forward(batch) for batch in inputs)
            z = torch.stack([one, two], 1).flatten(0, 1)
        if tuple(z.shape) != (2 * count, self.task.dim):
            raise TaskError(f"the model must give [views, dim], here {[2 * count, self.task.dim]}, got {[*z.shape]}")
        with torch.autocast(self.device.type, enabled=False):
            return similarities(z.float(), self.task.temperature)

    def output_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:  # noqa: ARG002
        """NT-Xent of each view; labels play no part."""
        return F.cross_entropy(outputs, partners(outputs), reduction="none")

    def outer_inputs(self, policy: Policy, which: Rows, seed: int) -> Any:
        """Views of validation samples."""
        return self.augmented(policy, which, which, seed)

    @property
    def independent_outputs(self) -> bool:
        """One of the others is the partner."""
        return False

    # ---- judging

    def logits(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """What the training samples say of some samples: log-probabilities (multi-label: log-odds)."""
        if policy is None:  # else the model was judged before, and the memory is known: what a search costs must not
            self.passes.forward += len(self.labelled)  # depend on where it was stopped
        features = self.features(state, rows, policy, seed)
        if self.task.judge != "ridge":
            return self.said_of(features, state)
        found = self.kept("ridge", state, lambda: self.ridge(state))(features).clamp(*PLAUSIBLE)
        found = SHARPNESS * (2 * found - 1)
        return (found if self.data.multilabel else F.log_softmax(found, 1)).float()

    def ridge(self, state: State) -> Ridge:
        """A ridge regression from the features of the training samples to their labels."""
        before = self.passes.forward
        features = self.finite_features(state, self.labelled)
        self.passes.forward = before
        return Ridge.fitted(features, self.memory_labels(), kernel=not self.pictures)

    def said_of(self, features: Tensor, state: State) -> Tensor:
        """What the nearest training samples say of some features."""
        memory = self.kept("memory", state, lambda: self.memory(state))
        k = min(self.task.neighbours, len(memory))
        near = F.normalize(features, dim=1)
        votes = neighbour_votes(near, memory, self.memory_labels(), k, self.task.vote_temperature)
        if self.data.multilabel:
            share = (1 - SMOOTHING) * votes + SMOOTHING / 2
            return share.log() - (1 - share).log()
        return ((1 - SMOOTHING) * votes + SMOOTHING / self.data.num_classes).log()

    def memory(self, state: State) -> Tensor:
        """The features of the training samples, of length 1."""
        before = self.passes.forward
        found = F.normalize(self.features(state, self.labelled), dim=1)
        self.passes.forward = before
        return found

    def memory_labels(self) -> Tensor:
        """The training samples' labels, a column each."""
        labels = self.labels[torch.from_numpy(self.labelled).to(self.device)]
        return (labels if self.data.multilabel else F.one_hot(labels, self.data.num_classes)).float()

    def features(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """What the encoder makes of some samples, as they are or as a policy makes them; not normalised."""
        encoder = cast(models.Model, self.model)
        return self.judged(state, rows, lambda batch, _: encoder.features(batch), policy, seed)

    def losses(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> NDArray[np.float64]:
        """How badly the judge finds each of some samples placed."""
        if not self.task.label_free:
            return super().losses(state, rows, policy, seed)
        one, two = self.projected(state, rows, policy, seed)
        if self.task.judge == "alignment-uniformity":
            return alignment(one, two).add(uniformity(one, two)).double().cpu().numpy()
        out = []
        for part in blocks(len(rows), self.batch_size):
            z = torch.stack([one[part], two[part]], 1).flatten(0, 1)
            found = similarities(z, self.task.temperature)
            out.append(F.cross_entropy(found, partners(found), reduction="none").view(-1, 2).mean(1))
        return torch.cat(out).double().cpu().numpy()

    def projected(self, state: State, rows: Rows, policy: Policy | None, seed: int) -> tuple[Tensor, Tensor]:
        """Two views of some samples as the loss sees them, of length 1."""
        policy = self.reference if policy is None else policy
        says = lambda batch, _: self.forward(batch)  # noqa: E731
        first = policy if self.task.views == "both" else None
        one = self.judged(state, some(rows), says, first, seed_of(seed, "view", 1))
        two = self.judged(state, rows, says, policy, seed_of(seed, "view", 2))
        return F.normalize(one, dim=1), F.normalize(two, dim=1)

    def calibrated_losses(self, state: State, rows: Rows) -> NDArray[np.float64]:
        """The losses; what labelled samples say at the temperature that is best for them."""
        return self.losses(state, rows) if self.task.label_free else super().calibrated_losses(state, rows)

    def measures(self, state: State, rows: Rows) -> dict[str, float]:
        """Every metric by a linear classifier on the training samples' features, and the neighbours' accuracy."""
        probe = self.kept("probe", state, lambda: self.probe(state))
        features, labels = self.finite_features(state, rows), self.data.labels.numpy()[rows]
        self.passes.forward += len(self.labelled)  # the memory, as in `logits`
        near = METRICS["accuracy"].compute(self.said_of(features, state).double().cpu().numpy(), labels)
        return {**probe.measures(features.double().cpu().numpy(), labels, self.task.metric), "knn": near}

    def probe(self, state: State) -> Probe:
        """A linear classifier on the features of the training samples."""
        features = self.finite_features(state, self.labelled).double().cpu().numpy()
        return Probe.fitted(features, self.data.labels.numpy()[self.labelled], self.data.num_classes)

    def finite_features(self, state: State, rows: Rows) -> Tensor:
        """The features of some samples, or a TaskError where they are not finite."""
        features = self.features(state, rows)
        if not bool(torch.isfinite(features).all()):
            rule = "the model must give finite numbers, but the training diverged with"
            raise TaskError(f"{rule} lr={self.task.rate:g}")
        return features

    def kept(self, name: str, state: State, make: Callable[[], Found]) -> Found:
        """What was made of the same state before, as long as somebody holds it; else made now."""
        known = self._kept.get(name)
        if known is None or known[0]() is not state:
            known = self._kept[name] = (weakref.ref(state), make())
        return cast(Found, known[1])


def whole_batches(rows: Rows, size: int, start: int, count: int, seed: int) -> tuple[Rows, Rows]:
    """As `stream`, but each epoch leaves out what does not fill a batch of this size: other samples each time."""
    epoch = len(rows) // size * size
    ends = [*range((start // epoch + 1) * epoch, start + count, epoch), start + count]
    parts = []
    for low, high in zip([start, *ends[:-1]], ends, strict=True):
        left_out = low // epoch * (len(rows) - epoch)
        parts.append(stream(rows, low + left_out, high - low, seed))
    which, where = (np.concatenate(column) for column in zip(*parts, strict=True))
    return which, where


def reference(data: Dataset) -> Policy:
    """What makes views where no policy is given."""
    return find_for(data, "simclr" if data.domain == "image" else "graphcl")


def similarities(z: Tensor, temperature: float) -> Tensor:
    """The cosine of each row to each other, over the temperature; to itself it is -inf, so that nobody is his own."""
    z = F.normalize(z, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    return (z @ z.T / temperature).masked_fill(itself, float("-inf"))


def partners(rows: Tensor) -> Tensor:
    """The other view of each: 2i and 2i + 1 belong together."""
    return torch.arange(len(rows), device=rows.device) ^ 1


def nt_xent(one: Tensor, two: Tensor, temperature: float) -> Tensor:
    """The normalised temperature-scaled cross-entropy of each sample, the mean of both views (Chen et al. 2020)."""
    found = similarities(torch.stack([one, two], 1).flatten(0, 1), temperature)
    return F.cross_entropy(found, partners(found), reduction="none").view(-1, 2).mean(1)


def neighbour_votes(queries: Tensor, memory: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    """The share of each label among the k nearest, weighted by exp(cosine / temperature); rows have length 1."""
    out = []
    for part in blocks(len(queries), max(1, COMPARED_AT_ONCE // len(memory))):
        near, which = (queries[part] @ memory.T).topk(k, dim=1)
        weight = torch.softmax(near / temperature, dim=1)
        out.append((weight[:, :, None] * labels[which]).sum(1).clamp(0, 1))
    return torch.cat(out)


def alignment(one: Tensor, two: Tensor) -> Tensor:
    """How far apart the two views of each sample are, squared."""
    return (one - two).square().sum(1)


def uniformity(one: Tensor, two: Tensor) -> Tensor:
    """For each sample, the logarithm of how crowded it stands among the others; the mean of its two views."""
    if len(one) == 1:
        return torch.zeros_like(one[:, 0])  # nobody else is there
    found = []
    for views in (one, two):
        out = []
        for part in blocks(len(views), max(1, COMPARED_AT_ONCE // len(views))):
            apart = 2 - 2 * views[part] @ views.T
            mine = torch.arange(part.start, min(part.stop, len(views)), device=views.device)
            near = (-UNIFORMITY * apart).scatter(1, mine[:, None], float("-inf"))
            out.append(torch.logsumexp(near, 1) - float(np.log(max(1, len(views) - 1))))
        found.append(torch.cat(out))
    return (found[0] + found[1]) / 2


def blocks(count: int, size: int) -> list[slice]:
    """Parts of so many rows; the last one is no single row, which would have nobody to be compared with."""
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] == 1 and size > 1:
        starts.pop()
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True)]
