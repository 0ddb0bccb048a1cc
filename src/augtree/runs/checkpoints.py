"""Trained states that a run keeps, in memory and in files; a state whose file is lost is trained again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from augtree.errors import need
from augtree.runs import faults
from augtree.runs.database import write_file, writing
from augtree.runs.store import Run
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


class LazyState:
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
        path, sha256 = self.path(key), ""
        if not state.is_finite:
            raise self.trainer.diverged(state, f" ({key}); nothing of this part was kept")
        if path is not None:
            plain = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors.items()}
            content = need("safetensors.torch", "train").save(plain, {"step": str(state.step)})
            write_file(path, content)
            faults.point("checkpoint.written")
            sha256 = hashlib.sha256(content).hexdigest()
        curve = {"curve": [list(point) for point in state.curve]} if state.curve else {}
        return {"sha256": sha256, "step": state.step, **curve}

    def drop(self, key: str) -> None:
        """Remove a checkpoint that nothing needs any more."""
        path = self.path(key)
        if path is not None and not self.run.read_only:
            with writing(path):
                path.unlink(missing_ok=True)

    def path(self, key: str) -> Path | None:
        """The file of a unit's checkpoint; None for a run in memory."""
        folder = self.run.folder
        return None if folder is None else folder / "checkpoints" / f"{key.replace('/', '-')}.safetensors"

    def model(
        self, key: str, value: Mapping[str, Any], train: Callable[[], State], state: State | None = None
    ) -> LazyState:
        """The state of a unit, given its value; `train` makes it again where its file is lost."""
        sha256, step = value["sha256"], value["step"]  # all that is kept of the value: there may be many

        def load() -> State:
            path = self.path(key)
            content = b"" if path is None else read_file(path)
            if hashlib.sha256(content).hexdigest() != sha256:  # missing or damaged
                return self.uncounted(train)
            tensors = need("safetensors.torch", "train").load(content)
            moved = {name: tensor.to(self.trainer.device) for name, tensor in tensors.items()}
            return State(moved, step)

        return LazyState(load, state)

    def training(self, key: str, train: Callable[[], State]) -> LazyState:
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


def read_file(path: Path) -> bytes:
    """The content of a checkpoint; nothing where there is no such file."""
    with writing(path):
        return path.read_bytes() if path.is_file() else b""
