"""Algorithm 2 from its fourth line on: one model on all groups, and the weight of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import TaskError
from augtree.forests.hypergradient import Hypergradient, rows_of_groups
from augtree.forests.mirror import allotment, update
from augtree.forests.options import Weighting
from augtree.keys import Key
from augtree.policies import Forest
from augtree.training.trainer import Order, Rows, State, Trainer, seed_of, stream

Floats = NDArray[np.float64]
MEMORY = 0.5
"""How much of the groups' outer losses, by which the worst is known, comes from former looks."""


@dataclass(frozen=True)
class Progress:
    """Where a weighted training stands."""

    theta: State
    w: Floats
    drawn: tuple[int, ...]
    """How far each group is in its endless row of samples."""
    product: str
    """What H is taken to be."""
    outer: tuple[float, ...] = ()
    """The outer loss of each group, averaged over looks."""
    history: Sequence[dict[str, Any]] = field(default=(), repr=False)


@dataclass
class WeightedTraining:
    """Algorithm 2, lines 4 to 9."""

    trainer: Trainer
    forest: Forest
    options: Weighting
    seed: int
    start: State | None = None
    """Where it begins, if not with fresh parameters: at the end of a trunk, say."""
    rates: Sequence[float] = ()
    """The learning rate of each step, where it is not the task's own course of a whole training."""

    def __post_init__(self) -> None:
        self.rows = rows_of_groups(self.trainer)
        self.counts = np.array([len(rows) for rows in self.rows], np.int64)
        self.q: Floats = self.counts / self.counts.sum()
        self.rates = self.rates or self.trainer.task.rates(self.trainer.total_steps)
        self.before = 0 if self.start is None else self.start.step
        self.rounds = -(-len(self.rates) // self.options.alpha)
        self.hypergradient = Hypergradient(self.trainer, self.forest, self.options, self.seed)

    def run(
        self, rounds: range, at: Progress | None = None, tick: Callable[[int], None] = lambda _: None
    ) -> Progress:
        """Some rounds of the training."""
        at = self.begin() if at is None else at
        for t in rounds:
            at = self.sgd_steps(t, at, tick)
            if self.options.eta > 0 and t < self.rounds - 1:
                at = self.weight_step(t, at)
        return at

    def begin(self) -> Progress:
        """Fresh model parameters, or those it starts from; uniform weights, or the groups' proportions."""
        m = len(self.rows)
        w = np.full(m, 1 / m) if self.options.start == "uniform" else self.q.copy()
        product = "hessian" if self.options.product == "auto" else self.options.product
        theta = self.trainer.fresh(self.seed) if self.start is None else self.start
        return Progress(theta, w, (0,) * m, product)

    def sgd_steps(self, t: int, at: Progress, tick: Callable[[int], None] = lambda _: None) -> Progress:
        """Alpha steps on sum_g w_g L_g(theta; Q_g): the samples are drawn by w, so that each counts the same."""
        rates = self.rates[t * self.options.alpha : (t + 1) * self.options.alpha]
        size, done = self.trainer.batch_size, at.theta.step
        each = allotment(at.w, len(rates) * size)
        batches = len(rates) if self.trainer.each_once else None
        drawn = np.array(at.drawn) if batches is None else begun(np.array(at.drawn), each, self.counts, batches)
        first = self.before + t * self.options.alpha
        order = mixed(self.rows, drawn, each, first * size, t, self.seed, batches)
        theta = self.trainer.train(
            at.theta, self.forest, rates, self.seed, order=order, tick=lambda steps: tick(done + steps)
        )
        return replace(at, theta=theta, drawn=tuple(int(n) for n in drawn + each))

    def weight_step(self, t: int, at: Progress) -> Progress:
        """The implicit gradient, then the multiplicative update; a solve that fails is told, and nothing moves."""
        look = self.hypergradient.at(at.theta, at.w, self.outer_weights(at.outer), t, at.product)
        if not np.isfinite(look.outer).all():
            rule = "the losses must be finite, but the training diverged with"
            raise TaskError(f"{rule} lr={self.trainer.task.rate:g} after {at.theta.step} steps")
        seen = look.outer if not at.outer else MEMORY * np.array(at.outer) + (1 - MEMORY) * look.outer
        failed = look.solved.failed or ("" if np.isfinite(look.d).all() else "d is not finite")
        w = at.w if failed else update(at.w, look.d, self.options.eta)
        names = self.trainer.data.group_names
        row = {
            "step": at.theta.step,
            "w": dict(zip(names, w.tolist(), strict=True)),
            "d": None if failed else dict(zip(names, look.d.tolist(), strict=True)),
            "outer": dict(zip(names, look.outer.tolist(), strict=True)),
            "residual": look.solved.residual if np.isfinite(look.solved.residual) else None,
            "iterations": look.solved.iterations,
            "product": look.product,
            "skipped": failed,
        }
        outer = tuple(float(loss) for loss in seen)
        return replace(at, w=w, product=look.product, outer=outer, history=(*at.history, row))

    def outer_weights(self, seen: tuple[float, ...]) -> Floats:
        """What each group counts in the outer loss: its proportion, or all for the group that is worst so far."""
        if self.options.target == "average" or not seen:
            return self.q
        return np.asarray(np.eye(len(seen))[int(np.argmax(seen))])


def begun(drawn: Rows, each: Rows, counts: Rows, batches: int) -> Rows:
    """Where groups go on, so that none of their samples comes more often than there are batches, if that can be.

    A group whose epoch would end too soon for that leaves out the rest of it: other samples each time.
    """
    epochs = -(-(drawn % counts + each) // counts)
    return np.where(epochs > batches, -(-drawn // counts) * counts, drawn)


def mixed(
    rows: Sequence[Rows],
    drawn: Sequence[int] | Rows,
    each: Rows,
    first: int,
    t: int,
    seed: int,
    batches: int | None = None,
) -> Order:
    """So many samples of each group, mixed; each group goes on in its own endless row.

    Where it is said in how many `batches`, none of them holds a sample twice. It cannot be helped where a group is
    smaller than its share of a batch: then its samples, and no others, are in some batches more than once.
    """
    parts = [
        stream(group, start, int(count), seed) if count else (group[:0], group[:0])
        for group, start, count in zip(rows, drawn, each, strict=True)
    ]
    which, where = (np.concatenate(column) for column in zip(*parts, strict=True))
    mix = np.argsort(
        Key.of(seed_of(seed, "mixed"), np.arange(len(which)), role="order", step=t).uniform(), kind="stable"
    )
    if batches is not None:
        mix = mix[apart(which[mix], batches, t, seed)]
    which, where = which[mix], where[mix]

    def order(start: int, count: int) -> tuple[Rows, Rows]:
        return which[start - first : start - first + count], where[start - first : start - first + count]

    return order


def apart(which: Rows, batches: int, t: int, seed: int) -> Rows:
    """An order in which no batch holds a sample twice, if none comes more often than there are batches.

    Samples are dealt out like cards, the same ones one after another, a card to each batch before any has the next;
    the turns of the batches are shuffled anew each time.
    """
    _, begins, number = np.unique(which, return_index=True, return_inverse=True)
    cards = np.argsort(begins[number], kind="stable")
    names = which[cards].reshape(-1, batches)
    luck = Key.of(seed_of(seed, "apart"), np.arange(len(which)), role="order", step=t).uniform()
    turns = np.argsort(luck.reshape(-1, batches), axis=1, kind="stable")
    for i in range(1, len(turns)):  # whoever had the sample that is dealt on comes last
        had = np.isin(turns[i], turns[i - 1][names[i - 1] == names[i, 0]])
        turns[i] = turns[i][np.argsort(had, kind="stable")]
    return cards[np.argsort(turns, axis=None, kind="stable")]
