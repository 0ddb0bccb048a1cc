"""`train`: one model with a policy, to keep."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from augtree.baselines.methods import PolicyLike, check_domain, policy_of
from augtree.errors import ArgumentError, OtherRunError, RunError, TaskError, whole_number
from augtree.files import check_folder
from augtree.policies.codec import to_json
from augtree.progress import shown
from augtree.runs.checkpoints import Checkpoints, LazyState
from augtree.runs.events import Finished, Planned, Stepped, Watch, Watchers
from augtree.runs.spec import begin_run, run_spec
from augtree.runs.store import BEGINNINGS, Run, acquire_lock, check_run_folder, read_spec
from augtree.tasks import Task
from augtree.tasks.arguments import DataLike, TaskLike, dataset_of, task_of
from augtree.tasks.trainer import Trainer
from augtree.training.model_files import model_files
from augtree.training.state import State
from augtree.transforms.base import Policy

PARTS = 10
"""A training is kept in so many parts: one that is stopped loses at most one."""
RESULTS = ("model.safetensors", "training.json", "policy.json")
"""The files that a training ends with."""
TORN = tuple(f".{name}.{'[0-9a-f]' * 12}" for name in RESULTS)
"""What a process that was killed while it wrote these leaves."""
FILES = (*RESULTS, *(f".{name}.*" for name in RESULTS), "report.html", "run.sqlite*", "checkpoints/*.safetensors*")
FILES += ("spec.json",)
"""The files of a training, and what a process that was killed leaves of them; the last makes the folder a run's."""
HINT = "--overwrite replaces another training"


@dataclass(frozen=True)
class Trained:
    """A trained model and its metrics."""

    model: nn.Module
    """The model, in eval mode; it takes pictures of 0..1, normalised by `mean` and `std`."""
    metrics: Mapping[str, Mapping[str, float]]
    """Every metric on each split."""
    mean: tuple[float, ...]
    """Of the training pictures, by channel."""
    std: tuple[float, ...]
    """Of the training pictures, by channel."""


def train(
    data: DataLike,
    task: TaskLike | None = None,
    policy: PolicyLike = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    watch: Watchers = None,
) -> Trained:
    """Train one model with a policy.

    Parameters
    ----------
    data
        The data set, or its name or path; its training samples are trained on.
    task
        Model, length of a training, metric, or the name of a task; by default `Classification()`.
    policy
        A value, a preset ("trivialaugment"), a file, the folder of a run, or None for no augmentation.
    seed
        The same seed gives the same model.
    out
        The folder of the run, for the weights (safetensors), the policy and the metrics. A training that was stopped
        goes on there, by `resume` or by the same call.
    overwrite
        Begin anew in a folder that holds another training, which is deleted. No other run is ever replaced.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> sorted(at.train(data, task, "randaugment").metrics)
    ['test', 'val']

    """
    data, task = dataset_of(data), task_of(task)
    found = policy_of(policy, "policy", data)
    check_domain("policy", found, data)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    folder = None if out is None else Path(out)
    check_training_folder(folder, overwrite=overwrite)
    trainer = task.prepare(data)
    if folder is not None and folder.is_dir() and overwrite:
        check_weights(folder, task)
        remove_training(folder)
    begins = folder is not None and not (folder / "spec.json").exists()
    try:
        spec = run_spec("train", data, task, policy=to_json(found), seed=seed)
        with shown(watch) as show, begin_run(folder, spec, trainer, seed) as run:
            return train_in_run(run, trainer, found, seed, show)
    except OtherRunError as error:
        raise OtherRunError(f"{error} ({HINT})") from error
    except TaskError:
        if folder is not None and folder.is_dir() and begins:  # it would fail again
            remove_training(folder)
            (folder / "lock.sqlite").unlink(missing_ok=True)
        raise


def train_in_run(run: Run, trainer: Trainer, policy: Policy, seed: int, watch: Watch) -> Trained:
    """The training as a run: its parts, then its metrics, are units."""
    data, task = trainer.data, trainer.task
    watch(Planned(notes=tuple(run.notes), steps=trainer.total_steps))
    state = train_in_parts(Checkpoints(run, trainer), policy, seed, watch)()

    def measure() -> tuple[dict[str, Any], None]:
        judged = [split for split in ("val", "test") if len(data.indices(split))]
        return {split: trainer.measures(state, data.indices(split)) for split in judged}, None

    metrics = run.unit("metrics", measure).value
    result = Trained(trainer.module(state), metrics, *trainer.mean_and_std())
    files = model_files(result.model, task.for_data(data), data, result.mean, result.std, metrics=metrics)
    run.write_all({**files, "policy.json": to_json(policy).encode()})
    run.record_fact("status", "done")
    figures = {f"{split}/{name}": value for split, each in metrics.items() for name, value in each.items()}
    watch(Finished("", figures, policy))
    return result


def train_in_parts(checkpoints: Checkpoints, policy: Policy, seed: int, watch: Watch) -> LazyState:
    """The end of a training, each of whose parts is a unit with a checkpoint; the last two checkpoints are kept."""
    trainer = checkpoints.trainer
    rates = trainer.task.rates(trainer.total_steps)
    size = -(-len(rates) // PARTS)

    def train_part(before: LazyState, first: int) -> State:
        def tick(done: int, loss: float | None) -> None:
            watch(Stepped(first + done, loss))

        state = trainer.train(before(), policy, rates[first : first + size], seed, tick=tick)
        before.forget()
        return state

    model = LazyState(lambda: trainer.fresh(seed))
    for number, first in enumerate(range(0, len(rates), size), 1):
        model = checkpoints.training(f"train/{number}", partial(train_part, model, first))
        checkpoints.drop(f"train/{number - 2}")
    return model


# ---- the folder


def check_training_folder(folder: Path | None, *, overwrite: bool = False) -> None:
    """Raise for a folder that no training can begin or go on in; nothing is created or removed."""
    if folder is not None and overwrite:
        check_replaceable(folder)
        return
    try:
        check_run_folder(folder, "train")
    except RunError as error:
        if folder is not None and is_replaceable(folder):
            raise type(error)(f"{error} ({HINT})") from error
        raise


def check_replaceable(folder: Path) -> None:
    """Raise for a folder with anything but a training in it."""
    check_folder(folder)
    if not folder.exists():
        return
    kind = read_spec(folder).get("kind") if (folder / "spec.json").is_file() else "train"
    if kind != "train":
        raise OtherRunError(f"{folder} holds another run (a {kind}, not a train): choose another --out")
    own = own_files(folder)
    foreign = [path.name for path in folder.rglob("*") if path not in own]
    if foreign:
        raise RunError(f"{folder} must hold nothing but a training to be overwritten, got {min(foreign)} in it")


def own_files(folder: Path) -> set[Path]:
    """The files that are a training's: without a spec.json, those of an earlier version or of one not yet begun."""
    if (folder / "spec.json").is_file():
        names: tuple[str, ...] = FILES
    else:
        names = (*RESULTS, *TORN) if (folder / "training.json").is_file() else TORN
    beginnings = [f"{name}*" for name in BEGINNINGS]
    own = {path for name in (*names, *beginnings) for path in folder.glob(name)}
    checkpoints = folder / "checkpoints"
    return {path for path in own if not path.is_dir()} | ({checkpoints} if checkpoints.is_dir() else set())


def is_replaceable(folder: Path) -> bool:
    """Whether a folder holds a training alone."""
    try:
        check_replaceable(folder)
    except RunError:
        return False
    return True


def check_weights(folder: Path, task: Task) -> None:
    """Raise where a training begins with weights that it would remove."""
    weights = task.options.get("weights")
    if weights is not None and Path(weights).resolve().is_relative_to(folder.resolve()):
        raise ArgumentError("--out", "must not be overwritten where it has the weights to begin with", str(folder))


def remove_training(folder: Path) -> None:
    """Remove the files of a training that no process has in its hands."""
    lock = acquire_lock(folder)
    try:
        for name in FILES:
            for path in folder.glob(name):
                path.unlink()
        with suppress(FileNotFoundError):
            (folder / "checkpoints").rmdir()
    finally:
        lock.close()
