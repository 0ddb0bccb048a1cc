"""Contrastive learning: an encoder that learns, without labels, to tell two views of a sample from all others."""

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
from augtree.tasks.contrastive_losses import (
    alignment,
    blocks,
    neighbour_votes,
    nt_xent,
    similarities,
    uniformity,
    view_losses,
)
from augtree.tasks.probe import Probe
from augtree.tasks.ridge import Ridge
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
from augtree.training.sampling import Order, Rows, require_rows, stream_of_batches
from augtree.training.state import State, seed_of, seeded
from augtree.transforms.base import Policy
from augtree.transforms.graph_parts import parts_of

JUDGES = ("knn", "ridge", "alignment-uniformity", "contrastive")
LABEL_FREE = JUDGES[2:]
SAMPLES = ("train", "all")
VIEWS = ("both", "one")
SMOOTHING = 0.02
"""The share of its neighbours' votes that goes to all classes alike, so that no loss is infinite."""
SHARPNESS = 4.0
"""Turns a regression on 0 and 1 into logits, before a temperature is fitted to them."""
PLAUSIBLE = (-1.0, 2.0)
"""Bounds of that regression, so that one outlier does not count for a hundred samples."""
Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Contrastive(Task):
    """Train an encoder on two views of every sample with the NT-Xent loss (SimCLR, GraphCL); labels only judge it.

    The encoder is the model without its classifier, which a projection of two layers replaces; only the loss sees
    the projection. Preprocessing comes before both views and is drawn for each.

    The judge is what a search lowers on validation samples:

    - knn: the negative log-likelihood of their labels by the votes of the nearest training samples (Wu et al. 2018).
    - ridge: the same by ridge regression on the training samples' features: for graphs with an RBF kernel, like the
      SVM of their protocols (feature lengths matter, which tell a graph's size), for pictures linear.
    - alignment-uniformity: without labels, how close two views are, and how evenly samples are spread (Wang and
      Isola 2020). It rewards whatever makes views alike without collapse; it cannot tell an invariance that keeps
      the classes apart from one that mixes them, such as turning a 6 into a 9.
    - contrastive: the loss itself, as in the paper. With a trained encoder it is lowest where both views are the
      same: `density` judges a candidate by the views it makes, so that Identity does best, along with whatever
      always does the same to both (Invert with p=1).

    The last two need views: those of the policy that is judged (`density`), or, where a trained model is judged
    (`cooldown`, `retrain`), always those of the same policy, SimCLR's chain for pictures and GraphCL's four for
    graphs.

    Examples
    --------
    >>> Contrastive(model="gin", temperature=0.2, judge="ridge").label_free
    False

    """

    kind: ClassVar[str] = "contrastive"
    free: ClassVar[Mapping[str, tuple[str, ...]]] = {"image": ("none", "simclr"), "graph": ("none", "graphcl")}
    batch_size: int = 256
    """How many samples a step takes, at most; each has two views."""
    temperature: float = 0.5
    """The temperature of the NT-Xent loss."""
    dim: int = 128
    """The number of outputs of the projection, which the loss compares."""
    views: str = "both"
    """Which views the policy makes: both, or one, beside the unaugmented sample (as GraphCL's own code does)."""
    samples: str = "train"
    """What the encoder is trained on: the training and unlabelled samples (train), or all, without their labels."""
    judge: str = "knn"
    """What a search lowers on validation samples: knn or ridge (by labels), alignment-uniformity or contrastive."""
    neighbours: int = 20
    """How many neighbours vote in the judge knn."""
    vote_temperature: float = 0.1
    """The temperature of the votes: a neighbour's weight is exp(cosine similarity / temperature)."""

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
        return self.judge in LABEL_FREE

    def prepare(self, data: Dataset) -> ContrastiveTrainer:
        return ContrastiveTrainer(self, data)


class Projection(nn.Sequential):
    """Two layers in the place of a classifier."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, dim))

    @property
    def weight(self) -> Tensor:
        """The weights of the first layer, from which a model reads its dtype."""
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
            raise ArgumentError("data", "must have at least 2 training samples, to contrast", data.name)
        self.batch_size = min(task.batch_size, len(self.rows))
        self.total_steps = task.total_steps(len(self.rows))
        self.reference = find_for(data, "simclr" if data.domain == "image" else "graphcl")
        self._cache: dict[str, tuple[weakref.ref[State], Any]] = {}

    def build_model(self, seed: int) -> nn.Module:
        model = super().build_model(seed)
        if not isinstance(getattr(model, "fc", None), nn.Linear) or not callable(getattr(model, "features", None)):
            raise TaskError(
                "the model must have `features` (from a batch to [samples, features]) and a linear layer `fc` behind"
                f" them, which the projection replaces; {type(model).__name__} has not"
            )
        with seeded(seed_of(seed, "projection")):
            model.fc = Projection(cast(nn.Linear, model.fc).in_features, self.task.dim)
        return model

    # ---- batches

    def order_of(self, rows: Rows, seed: int, size: int | None = None) -> Order:
        """Each epoch in whole batches: no sample is in one of them twice, unless there are too few for one."""
        return partial(stream_of_batches, rows, min(size or self.task.batch_size, len(rows)), seed=seed)

    def augmented(self, policy: Policy, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """Two views of each sample: pictures [samples, 2, ...], graphs as two batches."""
        one, two = (self.view(policy, index, rows, draw_ids, seed) for index in (1, 2))
        return torch.stack([one, two], 1) if self.pictures else (one, two)

    def split(self, inputs: Any, size: int) -> Sequence[Any]:
        if self.pictures:
            return super().split(inputs, size)
        return list(zip(*(parts_of(view, size) for view in inputs), strict=True))

    @property
    def augmented_views(self) -> tuple[int, ...]:
        """The views that a policy changes."""
        return (1, 2) if self.task.views == "both" else (2,)

    def view(self, policy: Policy, index: int, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """The first or the second view, with draws of its own."""
        seed = seed_of(seed, "view", index)
        if index in self.augmented_views:
            return super().augmented(policy, rows, draw_ids, seed)
        return self.apply_policy(
            self.preprocess, self.samples_on_device(rows), rows, draw_ids, seed_of(seed, "preprocess")
        )

    # ---- the objective

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
        return view_losses(outputs)

    def outer_inputs(self, policy: Policy, rows: Rows, seed: int) -> Any:
        """Views of validation samples."""
        return self.augmented(policy, rows, rows, seed)

    @property
    def independent_outputs(self) -> bool:
        return False

    # ---- judging

    def features(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """The encoder's features of samples, unchanged or after a policy; not normalised."""
        encoder = cast(models.Model, self.model)
        return self.predict(state, rows, lambda batch, _: encoder.features(batch), policy, seed)

    def finite_features(self, state: State, rows: Rows) -> Tensor:
        """The features of samples, or a TaskError where they are not finite."""
        features = self.features(state, rows)
        if not bool(torch.isfinite(features).all()):
            raise self.diverged(state)
        return features

    def logits(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """Predictions from the training samples: log-probabilities (multi-label: log-odds)."""
        if policy is None:
            # Counted whether cached or not, since the cost of a search must not depend on where it was stopped.
            self.passes.forward += len(self.labelled)
        features = self.features(state, rows, policy, seed)
        if self.task.judge != "ridge":
            return self.votes(features, state)
        predicted = self.cached("ridge", state, lambda: self.ridge(state))(features).clamp(*PLAUSIBLE)
        predicted = SHARPNESS * (2 * predicted - 1)
        return (predicted if self.data.multilabel else F.log_softmax(predicted, 1)).float()

    def votes(self, features: Tensor, state: State) -> Tensor:
        """The smoothed votes of the nearest training samples, as log-probabilities (multi-label: log-odds)."""
        memory = self.cached("memory", state, lambda: self.memory(state))
        k = min(self.task.neighbours, len(memory))
        queries = F.normalize(features, dim=1)
        votes = neighbour_votes(queries, memory, self.memory_labels(), k, self.task.vote_temperature)
        if self.data.multilabel:
            share = (1 - SMOOTHING) * votes + SMOOTHING / 2
            return share.log() - (1 - share).log()
        return ((1 - SMOOTHING) * votes + SMOOTHING / self.data.num_classes).log()

    def memory(self, state: State) -> Tensor:
        """The features of the training samples, of length 1."""
        return F.normalize(self.uncounted(lambda: self.features(state, self.labelled)), dim=1)

    def ridge(self, state: State) -> Ridge:
        """A ridge regression from the features of the training samples to their labels."""
        features = self.uncounted(lambda: self.finite_features(state, self.labelled))
        return Ridge.fitted(features, self.memory_labels(), kernel=not self.pictures)

    def probe(self, state: State) -> Probe:
        """A linear classifier on the features of the training samples."""
        features = self.finite_features(state, self.labelled).double().cpu().numpy()
        return Probe.fitted(features, self.data.labels.numpy()[self.labelled], self.data.num_classes)

    def memory_labels(self) -> Tensor:
        """The training samples' labels, a column each."""
        labels = self.labels_of(self.labelled)
        return (labels if self.data.multilabel else F.one_hot(labels, self.data.num_classes)).float()

    def uncounted(self, features: Callable[[], Tensor]) -> Tensor:
        """Features whose passes are counted elsewhere."""
        before = self.passes.forward
        out = features()
        self.passes.forward = before
        return out

    def losses(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> NDArray[np.float64]:
        """The judge's loss of each sample."""
        if not self.task.label_free:
            return super().losses(state, rows, policy, seed)
        one, two = self.projected(state, rows, policy, seed)
        if self.task.judge == "alignment-uniformity":
            losses = alignment(one, two).add(uniformity(one, two))
        else:
            parts = blocks(len(rows), self.batch_size)
            losses = torch.cat([nt_xent(one[part], two[part], self.task.temperature) for part in parts])
        return losses.double().cpu().numpy()

    def projected(self, state: State, rows: Rows, policy: Policy | None, seed: int) -> tuple[Tensor, Tensor]:
        """Two views of samples as the loss sees them, of length 1."""
        policy = self.reference if policy is None else policy
        project = lambda batch, _: self.forward(batch)  # noqa: E731
        first = policy if self.task.views == "both" else None
        one = self.predict(state, require_rows(rows), project, first, seed_of(seed, "view", 1))
        two = self.predict(state, rows, project, policy, seed_of(seed, "view", 2))
        return F.normalize(one, dim=1), F.normalize(two, dim=1)

    def calibrated_losses(self, state: State, rows: Rows, policy: Policy | None = None) -> NDArray[np.float64]:
        """The judge's loss of each sample; for judges that predict labels, at the best temperature."""
        if self.task.label_free:
            return self.losses(state, rows, policy)
        return super().calibrated_losses(state, rows, policy)

    def measures(self, state: State, rows: Rows) -> dict[str, float]:
        """Every metric by a linear probe on the training samples' features, and the neighbours' accuracy."""
        probe = self.cached("probe", state, lambda: self.probe(state))
        features, labels = self.finite_features(state, rows), self.data.labels.numpy()[rows]
        self.passes.forward += len(self.labelled)  # the memory, as in `logits`
        knn = METRICS["accuracy"].compute(self.votes(features, state).double().cpu().numpy(), labels)
        return {**probe.measures(features.double().cpu().numpy(), labels, self.task.metric), "knn": knn}

    def cached(self, name: str, state: State, fit: Callable[[], Fitted]) -> Fitted:
        """What `fit` gives for a state; the last result of a name is reused while its state is alive."""
        known = self._cache.get(name)
        if known is None or known[0]() is not state:
            known = self._cache[name] = (weakref.ref(state), fit())
        return cast(Fitted, known[1])
