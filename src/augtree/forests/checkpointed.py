"""Checkpointed weighted training: in parts, each a unit of the run, so that a stopped training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from augtree.errors import RunError
from augtree.forests.algorithm2 import WeightedState, WeightedTraining
from augtree.runs.checkpoints import Checkpoints
from augtree.runs.events import Watch
from augtree.runs.store import Run

PARTS = 10


class CheckpointedTraining:
    """A weighted training in parts of some rounds each; the state after the part `kept` stays in memory."""

    def __init__(
        self,
        training: WeightedTraining,
        run: Run,
        watch: Watch,
        parts: Sequence[range] | None = None,
        kept: int | None = None,
    ) -> None:
        self.training, self.run, self.watch = training, run, watch
        self.checkpoints = Checkpoints(run, training.trainer)
        rounds = training.rounds
        size = -(-rounds // PARTS)
        self.parts = parts or [range(start, min(start + size, rounds)) for start in range(0, rounds, size)]
        self.kept, self.in_memory = kept, dict[int, WeightedState]()

    def finish(self) -> WeightedState:
        """Train what is not done yet; the state at the end."""
        state: WeightedState | None = None
        history: list[dict[str, Any]] = []
        for k in range(len(self.parts)):
            if self.run.find(f"leg/{k}") is None:
                state = self.state_after(k - 1) if state is None and k else state
                state = self.train(k, state)
            else:
                state = None  # read when it is needed
            history += self.unit_value(k)["history"]
        state = self.state_after(len(self.parts) - 1) if state is None else state
        return replace(state, history=history)

    def train(self, k: int, state: WeightedState | None) -> WeightedState:
        """Train one more part."""
        ends: list[WeightedState] = []

        def work() -> tuple[dict[str, Any], None]:
            start = None if state is None else replace(state, history=(), theta=replace(state.theta, curve=()))
            end = self.training.run(self.parts[k], start, self.watch)
            ends.append(end)
            if k == self.kept:
                self.in_memory[k] = replace(end, history=())
            saved = self.checkpoints.save(f"leg/{k}", end.theta)
            about = {
                "w": end.w.tolist(),
                "drawn": list(end.drawn),
                "product": end.product,
                "outer": list(end.outer_losses),
            }
            return {**saved, **about, "history": list(end.history)}, None

        self.run.unit(f"leg/{k}", work)
        self.checkpoints.drop(f"leg/{k - 2}")
        return ends[0]

    def state_after(self, k: int) -> WeightedState:
        """The state after a part: as it was saved, or trained again where its file is lost."""
        if k in self.in_memory:
            return self.in_memory[k]
        value = self.unit_value(k)
        theta = self.checkpoints.model(f"leg/{k}", value, lambda: self.train_again(k).theta)()
        w, drawn, product, outer_losses = (value[name] for name in ("w", "drawn", "product", "outer"))
        return WeightedState(theta, np.array(w), tuple(drawn), product, tuple(outer_losses))

    def train_again(self, k: int) -> WeightedState:
        return self.training.run(self.parts[k], self.state_after(k - 1) if k else None)

    def unit_value(self, k: int) -> dict[str, Any]:
        unit = self.run.find(f"leg/{k}")
        if unit is None:
            raise RunError(f"{self.run.folder} must hold part {k} of its weighted training")
        return unit.value
