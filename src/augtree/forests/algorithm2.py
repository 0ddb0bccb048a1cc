"""Algorithm 2 from its fourth line on: one model on all groups, and the groups' weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.errors import TaskError
from augtree.forests.hypergradient import Hypergradient, rows_of_groups
from augtree.forests.mirror import largest_remainder, update
from augtree.forests.options import Weighting
from augtree.forests.sampling import mixed_order, skip_short_epochs
from augtree.policies import Forest
from augtree.runs.events import Event, Stepped, Watch, figure_name, silent
from augtree.tasks.trainer import Trainer
from augtree.training.state import State

Floats = NDArray[np.float64]
OUTER_MOMENTUM = 0.5
"""The share of earlier estimates in the running average of the outer losses, which tells the worst group."""


@dataclass(frozen=True)
class Weighed(Event):
    """The groups have new weights."""

    weights: Mapping[str, float]
    outer: Mapping[str, float]
    """The outer loss of each group before the update."""

    def describe(self) -> Sequence[str]:
        return []

    def logged(self) -> Mapping[str, float]:
        found = {"weights": self.weights, "outer-loss": self.outer}
        return {figure_name(kind, group): value for kind, values in found.items() for group, value in values.items()}


@dataclass(frozen=True)
class WeightedState:
    """The state of a weighted training."""

    theta: State
    w: Floats
    drawn: tuple[int, ...]
    """The samples of each group that were drawn so far."""
    product: str
    """What H is: hessian or gauss-newton."""
    outer_losses: tuple[float, ...] = ()
    """The outer loss of each group, as a running average."""
    history: Sequence[dict[str, Any]] = field(default=(), repr=False)


@dataclass
class WeightedTraining:
    """Algorithm 2, lines 4 to 9."""

    trainer: Trainer
    forest: Forest
    options: Weighting
    seed: int
    start: State | None = None
    """The state that it begins with, for example the end of a trunk; by default fresh parameters."""
    rates: Sequence[float] = ()
    """The learning rate of each step, by default the task's schedule of a whole training."""

    def __post_init__(self) -> None:
        self.rows = rows_of_groups(self.trainer)
        self.counts = np.array([len(rows) for rows in self.rows], np.int64)
        self.q: Floats = self.counts / self.counts.sum()
        self.rates = self.rates or self.trainer.task.rates(self.trainer.total_steps)
        self.before = 0 if self.start is None else self.start.step
        self.rounds = -(-len(self.rates) // self.options.alpha)
        self.hypergradient = Hypergradient(self.trainer, self.forest, self.options, self.seed)

    def run(self, rounds: range, state: WeightedState | None = None, watch: Watch = silent) -> WeightedState:
        """Lines 4 to 9, for some rounds."""
        state = self.begin() if state is None else state
        for t in rounds:
            state = self.sgd_steps(t, state, watch)
            if self.options.eta > 0 and t < self.rounds - 1:
                state = self.weight_step(t, state)
                watch(Weighed(state.history[-1]["w"], state.history[-1]["outer"]))
        return state

    def begin(self) -> WeightedState:
        """Fresh model parameters, or those it starts from; uniform weights, or the groups' proportions."""
        m = len(self.rows)
        w = np.full(m, 1 / m) if self.options.start == "uniform" else self.q.copy()
        product = "hessian" if self.options.product == "auto" else self.options.product
        theta = self.trainer.fresh(self.seed) if self.start is None else self.start
        return WeightedState(theta, w, (0,) * m, product)

    def sgd_steps(self, t: int, state: WeightedState, watch: Watch = silent) -> WeightedState:
        """Alpha steps on sum_g w_g L_g(theta; Q_g): the groups' samples are drawn in proportion to w."""
        rates = self.rates[t * self.options.alpha : (t + 1) * self.options.alpha]
        size, done = self.trainer.batch_size, state.theta.step
        each = largest_remainder(state.w, len(rates) * size)
        batches = len(rates) if self.trainer.each_once else None
        drawn = np.array(state.drawn)
        if batches is not None:
            drawn = skip_short_epochs(drawn, each, self.counts, batches)
        first = self.before + t * self.options.alpha
        order = mixed_order(self.rows, drawn, each, first * size, t, self.seed, batches)
        theta = self.trainer.train(
            state.theta,
            self.forest,
            rates,
            self.seed,
            order=order,
            tick=lambda steps, loss: watch(Stepped(done - self.before + steps, loss)),
        )
        theta = replace(theta, curve=(*state.theta.curve, *theta.curve[-1:]))  # one point a round
        return replace(state, theta=theta, drawn=tuple(int(n) for n in drawn + each))

    def weight_step(self, t: int, state: WeightedState) -> WeightedState:
        """The hypergradient, then the multiplicative update; a failed solve is recorded, and nothing moves."""
        estimate = self.hypergradient.estimate(
            state.theta, state.w, self.outer_weights(state.outer_losses), t, state.product
        )
        if not np.isfinite(estimate.outer_losses).all():
            rule = "the losses must be finite, but the training diverged with"
            raise TaskError(f"{rule} lr={self.trainer.task.rate:g} after {state.theta.step} steps")
        outer_losses = estimate.outer_losses
        if state.outer_losses:
            outer_losses = OUTER_MOMENTUM * np.array(state.outer_losses) + (1 - OUTER_MOMENTUM) * outer_losses
        failed = estimate.solution.failed or ("" if np.isfinite(estimate.d).all() else "d is not finite")
        w = state.w if failed else update(state.w, estimate.d, self.options.eta)
        names = self.trainer.data.group_names
        row = {
            "step": state.theta.step,
            "w": dict(zip(names, w.tolist(), strict=True)),
            "d": None if failed else dict(zip(names, estimate.d.tolist(), strict=True)),
            "outer": dict(zip(names, estimate.outer_losses.tolist(), strict=True)),
            "residual": estimate.solution.residual if np.isfinite(estimate.solution.residual) else None,
            "iterations": estimate.solution.iterations,
            "product": estimate.product,
            "skipped": failed,
        }
        averages = tuple(map(float, outer_losses))
        history = (*state.history, row)
        return replace(state, w=w, product=estimate.product, outer_losses=averages, history=history)

    def outer_weights(self, outer_losses: tuple[float, ...]) -> Floats:
        """Each group's weight in the outer loss: its proportion, or 1 for the group that is worst so far."""
        if self.options.target == "average" or not outer_losses:
            return self.q
        return np.asarray(np.eye(len(outer_losses))[int(np.argmax(outer_losses))])
