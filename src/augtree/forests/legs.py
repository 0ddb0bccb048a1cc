"""A weighted training in parts, each kept when it is done, so that a stopped one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from augtree.errors import RunError
from augtree.forests.algorithm2 import Progress, WeightedTraining
from augtree.runs.store import Run
from augtree.search.search import Watch
from augtree.training.trainer import State

LEGS = 10


class Legs:
    """The parts of one training."""

    def __init__(
        self,
        training: WeightedTraining,
        run: Run,
        watch: Watch,
        legs: Sequence[range] | None = None,
        held: int | None = None,
    ) -> None:
        """`held` is a part after which the progress stays in memory."""
        self.training, self.run, self.watch = training, run, watch
        rounds = training.rounds
        size = -(-rounds // LEGS)
        self.legs = legs or [range(start, min(start + size, rounds)) for start in range(0, rounds, size)]
        self.held, self.in_memory = held, dict[int, Progress]()

    def finished(self) -> Progress:
        """The training at its end."""
        at: Progress | None = None
        history: list[dict[str, Any]] = []
        for k in range(len(self.legs)):
            known = self.run.find(f"leg/{k}")
            if known is None:
                at = self.progress_after(k - 1) if at is None and k else at
                at = self.done(k, at)
                known = self.run.find(f"leg/{k}")
            else:
                at = None  # read when it is needed
            history += [] if known is None else known.value["history"]
        at = self.progress_after(len(self.legs) - 1) if at is None else at
        return replace(at, history=history)

    def done(self, k: int, at: Progress | None) -> Progress:
        """One more part."""
        found: list[Progress] = []

        def work() -> tuple[dict[str, Any], None]:
            start = None if at is None else replace(at, history=())
            new = self.training.run(self.legs[k], start, lambda steps: self.watch("step", done=steps))
            found.append(new)
            if k == self.held:
                self.in_memory[k] = replace(new, history=())
            kept = self.run.keep(f"leg-{k}", new.theta.tensors, new.theta.step)
            about = {"w": new.w.tolist(), "drawn": list(new.drawn), "product": new.product, "outer": list(new.outer)}
            return {"sha256": kept, "step": new.theta.step, **about, "history": list(new.history)}, None

        self.run.unit(f"leg/{k}", work)
        self.run.drop(f"leg-{k - 2}")
        return found[0]

    def progress_after(self, k: int) -> Progress:
        """Where the training stood after a part: as it was kept, or made again where its file is lost."""
        if k in self.in_memory:
            return self.in_memory[k]
        unit = self.run.find(f"leg/{k}")
        if unit is None:
            raise RunError(f"{self.run.folder} must hold part {k} of its weighted training")
        value, trainer = unit.value, self.training.trainer
        tensors = self.run.kept(f"leg-{k}", value["sha256"])
        if tensors is None:
            before = self.progress_after(k - 1) if k else None
            return self.training.run(self.legs[k], before)
        moved = {name: tensor.to(trainer.device) for name, tensor in tensors.items()}
        return Progress(
            State(moved, value["step"]),
            np.array(value["w"]),
            tuple(value["drawn"]),
            value["product"],
            tuple(value["outer"]),
        )
