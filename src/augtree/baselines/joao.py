"""JOAO: contrastive learning that moves towards the pairs of transforms it finds hardest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from augtree.baselines.base import Baseline
from augtree.baselines.loop import Learner, train_by
from augtree.errors import number, true_or_false
from augtree.keys import Key
from augtree.models import Model
from augtree.policies.presets import GRAPHCL
from augtree.tasks.contrastive import ContrastiveTrainer, Projection
from augtree.tasks.contrastive_losses import nt_xent
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import Floats
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of, seeded
from augtree.transforms.base import Identity, Policy, Stage, Transform, check_magnitude
from augtree.transforms.graphs import FOUR, MaskNodes

Ops = NDArray[np.int64]
"""For each sample the number of its transform."""


@dataclass(frozen=True)
class Joao(Baseline):
    """JOint Augmentation Optimization (You et al. 2021): a min-max game over the pairs of transforms.

    The encoder lowers the contrastive loss under a distribution P over pairs of Identity and GraphCL's four. After
    each epoch, P moves to raise that loss, less gamma / 2 times its squared distance from the uniform distribution:
    one step of gradient ascent, then the projection onto the simplex. The loss of each pair is measured on one batch,
    by the encoder in eval mode; the authors' code takes a fifth of the batches, in training mode.

    The defaults of `gamma` and `rate` are those of that code (github.com/Shen-Lab/GraphCL_Automated: gamma 0.1, beta
    1), whose scripts leave gamma to be chosen for each data set.

    Where the task leaves one view as it is (`views="one"`, as in the protocol graphcl), P is over the transforms of
    the other. With `heads` it is JOAOv2: each transform has a projection of its own, and all samples of a step have
    the same pair, so that only outputs of the same two projections are compared.
    """

    name: ClassVar[str] = "joao"
    about: ClassVar[str] = "learns which pairs of graph transforms are hardest, and trains on these"
    source: ClassVar[str] = "You et al. 2021, ICML"
    costs: ClassVar[str] = "1, and each epoch the views of one batch by every transform"
    settings: ClassVar[tuple[str, ...]] = ("contrastive",)
    domains: ClassVar[tuple[str, ...]] = ("graph",)
    uses_labels: ClassVar[bool] = False

    gamma: float = 0.1
    """How strongly the distribution is drawn to the uniform one."""
    rate: float = 1.0
    """The step of gradient ascent."""
    magnitude: float = GRAPHCL
    """The share of a graph that each transform changes."""
    heads: bool = False
    """Whether each transform has its own projection (JOAOv2)."""

    def __post_init__(self) -> None:
        number("gamma", self.gamma, 0, 1e6)
        number("rate", self.rate, 0, 1e6)
        check_magnitude(self.magnitude)
        true_or_false("heads", self.heads)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The encoder, and the probability of each transform (the mean of both views) at the end."""
        game = Game.of(cast(ContrastiveTrainer, trainer), self, seed)
        state, p = game.play(seed)
        both = p.sum(0) if len(p) == 1 else (p.sum(0) + p.sum(1)) / 2
        return state, {f"p {op.name}": float(share) for op, share in zip(game.operations, both, strict=True)}


@dataclass(frozen=True)
class Game:
    """Both players: the encoder with its projections, and the distribution over pairs."""

    trainer: ContrastiveTrainer
    method: Joao
    operations: tuple[Transform, ...]
    """Identity and the four, MaskNodes only where there are features."""
    heads: Learner | None
    """The projections of JOAOv2."""

    @staticmethod
    def of(trainer: ContrastiveTrainer, method: Joao, seed: int) -> Game:
        """A new game."""
        featured = any(getattr(graph, "x", None) is not None for graph in trainer.data.samples)
        four = [kind(method.magnitude) for kind in FOUR if featured or kind is not MaskNodes]
        operations = (Identity(), *four)
        if not method.heads:
            return Game(trainer, method, operations, None)
        features = cast(nn.Linear, trainer.model.get_submodule("fc.0")).in_features
        with seeded(seed_of(seed, "joao heads")):
            heads = nn.ModuleList([Projection(features, trainer.task.dim) for _ in operations])
        return Game(trainer, method, operations, Learner(heads, trainer))

    @property
    def shape(self) -> tuple[int, int]:
        """The transforms of the first and of the second view."""
        count = len(self.operations)
        return (count if self.trainer.task.views == "both" else 1, count)

    def play(self, seed: int) -> tuple[State, Floats]:
        """A whole training, the distribution moving after each epoch."""
        trainer = self.trainer
        rates = trainer.task.rates(trainer.total_steps)
        epoch = max(1, len(trainer.rows) // trainer.batch_size)
        state, p = trainer.fresh(seed), np.full(self.shape, 1 / np.prod(self.shape))
        while state.step < len(rates):
            state = self.train(state, p, rates[state.step : state.step + epoch], seed)
            p = moved(p, self.losses(state, seed), self.method.gamma, self.method.rate)
        return state, p

    def train(self, state: State, p: Floats, rates: Sequence[float], seed: int) -> State:
        """Train the encoder on pairs from a distribution."""
        batches = self.batches(p, state.step, len(rates), seed)
        return train_by(self.trainer, state, rates, seed, batches, self.loss, self.heads)

    def batches(self, p: Floats, first: int, steps: int, seed: int) -> Iterator[tuple[Any, int]]:
        """Both views of the samples of each step, each with the first sample's transform."""
        size, order = self.trainer.batch_size, self.trainer.order_of(self.trainer.rows, seed)
        for step in range(first, first + steps):
            rows, draw_ids = order(step * size, size)
            drawn_by = np.full(size, step) if self.method.heads else draw_ids
            pairs = drawn_pairs(p, Key.of(seed, drawn_by, role="joao"))
            views = [self.view(i, op, rows, draw_ids, seed) for i, op in enumerate(pairs, 1)]
            yield [(view, int(op[0])) for view, op in zip(views, pairs, strict=True)], 2 * size

    def view(self, index: int, op: Ops, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """The first or the second view, each sample by its own transform."""
        return self.trainer.view(Assigned(self.operations, op), index, rows, draw_ids, seed)

    def loss(self, views: Sequence[tuple[Any, int]]) -> Tensor:
        """NT-Xent of both views."""
        one, two = (self.project(view, op) for view, op in views)
        return nt_xent(one, two, self.trainer.task.temperature).mean()

    def project(self, view: Any, op: int) -> Tensor:
        """The outputs of the projection, in JOAOv2 that of the transform."""
        encoder = cast(Model, self.trainer.model)
        head = encoder.fc if self.heads is None else cast(nn.ModuleList, self.heads.network)[op]
        with self.trainer.precision():
            out = head(encoder.features(view))
        return cast(Tensor, out.float())

    def losses(self, state: State, seed: int) -> Floats:
        """The loss of each pair of transforms on one batch."""
        trainer, size = self.trainer, self.trainer.batch_size
        order = np.argsort(Key.of(seed, trainer.rows, role="joao losses", step=state.step).uniform(), kind="stable")
        rows = trainer.rows[order[:size]]
        draw_ids = rows + (state.step << 32)
        out = np.zeros(self.shape)
        with trainer.deterministically(), seeded(seed_of("judge"), trainer.device), torch.no_grad():
            trainer.load(state)
            trainer.model.eval()
            projected = [
                [
                    self.project(self.view(i, np.full(size, op), rows, draw_ids, seed_of(seed, "losses")), op)
                    for op in range(count)
                ]
                for i, count in enumerate(self.shape, 1)
            ]
            for i, j in product(*map(range, self.shape)):
                out[i, j] = float(nt_xent(projected[0][i], projected[1][j], trainer.task.temperature).mean())
        trainer.passes.forward += sum(self.shape) * size
        return out


@dataclass(frozen=True, eq=False)
class Assigned(Policy):
    """Transforms, and which of them each sample of a batch gets."""

    operations: tuple[Transform, ...]
    which: Ops

    def stages(self, key: Key) -> Iterator[Stage]:
        """All side by side."""
        yield [(op, key.take(self.which == i)) for i, op in enumerate(self.operations)]


def drawn_pairs(p: Floats, key: Key) -> tuple[Ops, Ops]:
    """The transforms of the first and second view of each sample, from a distribution over pairs."""
    edges = np.cumsum(p)[:-1]
    which = np.searchsorted(edges, key.uniform(), side="right")
    last = int(np.flatnonzero(p)[-1])  # rounding of the sum must not draw what has probability 0
    first, second = np.unravel_index(np.minimum(which, last), p.shape)
    return first.astype(np.int64), second.astype(np.int64)


def moved(p: Floats, losses: Floats, gamma: float, rate: float) -> Floats:
    """A step of gradient ascent on sum(p * losses) - gamma / 2 * sum((p - uniform)^2), back on the simplex."""
    return projected_on_simplex(p + rate * (losses - gamma * (p - 1 / p.size)))


def projected_on_simplex(values: Floats) -> Floats:
    """The nearest distribution: max(values - mu, 0) with the mu for which the sum is 1."""
    falling = np.sort(values, axis=None)[::-1]
    mu = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    out: Floats = np.maximum(values - mu[np.flatnonzero(falling > mu)[-1]], 0.0)
    return out
