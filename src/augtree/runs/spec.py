"""What a run is about, as spec.json has it: data, task, space and what it began with; and back from there."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from augtree import data as data_sets
from augtree.data import Dataset
from augtree.errors import DataError, RunError, shown
from augtree.policies.codec import Reader, to_json
from augtree.runs.events import WATCH, Began, tell
from augtree.runs.store import VERSION, Run, read_spec
from augtree.runs.warnings import run_warnings
from augtree.tasks import TASKS, Task
from augtree.tasks.trainer import Trainer
from augtree.transforms import Space
from augtree.transforms.base import Transform

Transforms = Iterable[Transform | type[Transform]]


def run_spec(kind: str, data: Dataset, task: Task, **more: Any) -> dict[str, Any]:
    """The specification of a run."""
    about = {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint}
    return {"version": VERSION, "kind": kind, "data": about, "task": task.for_data(data).spec(), **more}


def begin_run(out: str | Path | None, spec: Mapping[str, Any], trainer: Trainer, seed: int | None = None) -> Run:
    """Begin or continue a run: meter its cost, note changed surroundings and what is doubtful in data and task.

    With a seed, the specification also records a hash of that seed's initial weights.
    """
    begins = {} if seed is None else {"begins": trainer.identity(seed)}
    run = Run.begin(out, {**spec, **begins})
    try:
        run.meter = lambda: (trainer.passes.forward, trainer.passes.backward)
        trainer.halved = run.fact("halved", default=False)
        run.new_facts = lambda: new_facts(run, trainer)
        run.notes = [*run.notes, *changed_surroundings(run, trainer), *run_warnings(trainer, spec["kind"])]
        run.record_fact("status", "begun")
        WATCH.get()(Began(run.spec, trainer.data))
        if trainer.halved:
            tell(HALVED.format(trainer.device))
    except BaseException:
        run.close()
        raise
    return run


HALVED = "Judging ran out of memory on {}: it goes on with half as many samples at once (last digits may change)."
"""What the user is told, and again when the run is resumed."""


def new_facts(run: Run, trainer: Trainer) -> dict[str, Any]:
    """What the trainer has found out, to be recorded with the unit in which it did."""
    if trainer.halved and not run.fact("halved", default=False):
        tell(HALVED.format(trainer.device))
    return {"halved": True} if trainer.halved else {}


def changed_surroundings(run: Run, trainer: Trainer) -> Iterator[str]:
    """A note for everything that a result to the byte rests on and that has changed since the run began."""
    now = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": trainer.device.type,
        "machine": platform.machine(),
    }
    before = run.fact("surroundings")
    if before is None:
        run.record_fact("surroundings", now)
        return
    for name, value in now.items():
        if before.get(name) != value:
            yield f"The run began with {name} {before.get(name)} and goes on with {value}: the tree may differ."


# ---- back from a folder


@dataclass(frozen=True)
class Restored:
    """A run's specification, with its data and task as values again."""

    folder: Path
    spec: Mapping[str, Any]
    data: Dataset
    task: Task
    reader: Reader
    """Reads the policies in the specification."""

    @property
    def budget(self) -> str | float | None:
        """The budget that the run was given."""
        if "budget" in self.spec:
            return cast("str | float | None", self.spec["budget"])
        with Run.open(self.folder, write=False) as run:
            return cast("str | float | None", run.fact("budget"))


def restore(
    folder: str | Path, data: Dataset | None = None, task: Task | None = None, transforms: Transforms = ()
) -> Restored:
    """What a run is about; data in arrays, models and transforms of the user's own must be given again."""
    path = Path(folder)
    spec, reader = read_spec(path), Reader(path / "spec.json", transforms)
    check_parts(spec, path)
    data = restore_data(spec["data"], path, data)
    return Restored(path, spec, data, task or restore_task(spec["task"], reader), reader)


PARTS = {"data": ("name", "source", "fingerprint"), "task": ("task", "model", "preprocess")}
"""What every specification has, and what is in it."""


def check_parts(spec: Mapping[str, Any], folder: Path) -> None:
    """Raise where the specification is not that of a run."""
    for name, keys in PARTS.items():
        part = spec.get(name)
        if not isinstance(part, Mapping) or any(key not in part for key in keys):
            raise RunError(f"{folder / 'spec.json'}: /{name} must have {', '.join(keys)}, got {shown(part)}")


def restore_data(spec: Mapping[str, Any], folder: Path, data: Dataset | None = None) -> Dataset:
    """The data set of a run: given again, or read again."""
    if data is None and spec["source"] is None:
        raise RunError(f"{folder} was made on arrays: give them again, augtree.resume({str(folder)!r}, data=...)")
    data = data_sets.load(**source_arguments(spec["source"], folder)) if data is None else data
    if data.fingerprint != spec["fingerprint"]:
        raise DataError(f"{folder}: the data must be what the run began with, but {data.name} has changed")
    return data


def source_arguments(source: Any, folder: Path) -> dict[str, Any]:
    """Where the data of a run came from, as arguments of `augtree.data.load`."""
    try:
        inspect.signature(data_sets.load).bind(**source)
    except (TypeError, ValueError) as error:
        rule = "/data/source must be arguments of augtree.data.load"
        raise RunError(f"{folder / 'spec.json'}: {rule} ({error})") from error
    return dict(source)


def restore_task(spec: Mapping[str, Any], reader: Reader) -> Task:
    """The task of a run."""
    kind = spec["task"]
    if not isinstance(kind, str) or kind not in TASKS:
        raise RunError(f"a run's task must be one of {', '.join(TASKS)}, got {shown(kind)}")
    arguments = {key: value for key, value in spec.items() if key != "task"}
    model = arguments["model"]
    if not isinstance(model, str):
        function = model.get("function") if isinstance(model, Mapping) else model
        raise RunError(f"the run's model is a function ({shown(function)[1:-1]}): give the task again, task=...")
    if arguments["preprocess"] not in (None, "default"):
        arguments["preprocess"] = reader.policy(arguments["preprocess"])
    try:
        return TASKS[kind](**arguments)
    except TypeError as error:
        raise RunError(f"{reader.path}: /task must be arguments of {kind} ({error})") from error


def space_spec(space: Space) -> dict[str, Any]:
    """A space as a value for a file, in the parts that it is made of."""
    parts = {"candidates": space, "basics": space.basics, "own": space.own}
    return {name: [to_json(each) for each in part] for name, part in parts.items()} | {"combines": space.combines}


def restore_space(spec: Any, reader: Reader) -> Space:
    """The space of a run; a plain list of candidates is that of an older version."""
    if not isinstance(spec, Mapping):
        raise RunError(f"{reader.path} is of a run that another version of augtree began: begin it again")
    parts: dict[str, list[Transform]] = {
        name: [cast(Transform, reader.policy(text)) for text in spec[name]]
        for name in ("candidates", "basics", "own")
    }
    own = parts["own"] if spec["combines"] else None
    return Space(parts["candidates"], basics=parts["basics"], own=own)
