"""Trained states that a run keeps, in memory and in files; a state whose file is lost is trained again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from augtree.runs.store import Run
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


class Model:
    """A trained state that is read when it is needed."""

    def __init__(self, load: Callable[[], State], state: State | None = None) -> None:
        self.load, self.state = load, state

    def __call__(self) -> State:
        self.state = self.state or self.load()
        return self.state

    def forget(self) -> None:
        """Free the memory."""
        self.state = None


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run, by the keys of its units."""

    run: Run
    trainer: Trainer

    def save(self, key: str, state: State) -> dict[str, Any]:
        """Write a state; the result belongs into the unit's value, from which `model` reads the state."""
        sha256 = self.run.save_checkpoint(key.replace("/", "-"), state.tensors, state.step)
        return {"sha256": sha256, "step": state.step}

    def drop(self, key: str) -> None:
        """Remove a checkpoint that nothing needs any more."""
        self.run.drop_checkpoint(key.replace("/", "-"))

    def model(
        self, key: str, value: Mapping[str, Any], train: Callable[[], State], state: State | None = None
    ) -> Model:
        """The state of a unit, given its value; `train` makes it again where its file is lost."""

        def load() -> State:
            tensors = self.run.load_checkpoint(key.replace("/", "-"), value["sha256"])
            if tensors is None:
                return self.uncounted(train)
            moved = {name: tensor.to(self.trainer.device) for name, tensor in tensors.items()}
            return State(moved, value["step"])

        return Model(load, state)

    def training(self, key: str, train: Callable[[], State]) -> Model:
        """A training as a unit of the run."""
        trained: list[State] = []

        def work() -> tuple[dict[str, Any], None]:
            trained.append(train())
            return self.save(key, trained[0]), None

        unit = self.run.unit(key, work)
        return self.model(key, unit.value, train, *trained)

    def uncounted(self, train: Callable[[], State]) -> State:
        """Train once more what has been counted already."""
        passes = replace(self.trainer.passes)
        state = train()
        self.trainer.passes.forward, self.trainer.passes.backward = passes.forward, passes.backward
        return state
