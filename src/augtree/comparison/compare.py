"""`compare`: a training with each policy and seed, the same budget for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from augtree.baselines.base import Baseline
from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.methods import (
    Method,
    PolicyLike,
    check_domain,
    check_fits,
    check_names,
    fit,
    free_policies,
    is_free,
    method_of,
    seeds_of,
)
from augtree.baselines.parts import Parts, folder_of, forget
from augtree.comparison.result import Comparison
from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, TaskError, one_of
from augtree.forests import Weighted
from augtree.policies.codec import to_json
from augtree.progress import shown
from augtree.runs.events import Finished, Planned, RowTrained, Watch, Watchers
from augtree.runs.executors import Executor, executor_of
from augtree.runs.failures import attempt
from augtree.runs.spec import begin_run, run_spec
from augtree.runs.store import Run
from augtree.runs.workers import TrainerPool
from augtree.search.search import check_data
from augtree.tables import counted
from augtree.tasks import Contrastive, Task
from augtree.tasks.arguments import DataLike, TaskLike, dataset_of, task_of
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
from augtree.training.state import State
from augtree.transforms import Identity
from augtree.transforms.base import Policy

TRAIN_ON = ("train", "train+val")


def compare(
    data: DataLike,
    task: TaskLike | None = None,
    policies: Mapping[str, PolicyLike] | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    train_on: str = "train",
    out: str | Path | None = None,
    workers: int = 1,
    executor: Executor | str | None = None,
    watch: Watchers = None,
) -> Comparison:
    """Train a model with each policy, the same budget for each, and put them side by side.

    A training that fails is marked so, with the reason, and the others go on.

    Parameters
    ----------
    data
        The data set, or its name or path; it must have test or validation samples.
    task
        Model, length of a training, metric, or the name of a task; by default `Classification()`.
    policies
        By name: a value, a name ("trivialaugment", "mixup", "search": docs/methods.md), a file, the folder of a run,
        or None for no augmentation; by default the free policies. A `Weighted` forest learns its weights in every
        training. `Longer`, `Soup` and `Searched` are controls and searches that take more than one training, as some
        methods do; each row's cost is in the table.
    seeds
        Trainings with each policy, or their seeds.
    train_on
        train, or train+val (then there are no validation samples left to choose by).
    out
        The folder of the run.
    workers
        Trainings side by side, each in a process; the result is the same.
    executor
        Where trainings run, instead of `workers`: `augtree.executors.Ray(address="auto")`, or a name (serial,
        processes, ray); the result is the same.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> table = at.compare(data, task, {"none": None, "ta": "trivialaugment"}, seeds=2)
    >>> [line.policy for line in table.lines()]
    ['none', 'ta']

    """
    where = executor_of(executor, workers)
    data, task = dataset_of(data), task_of(task)
    check_train_on(train_on, task)
    seeds = seeds_of(seeds)
    named = free_policies(data, task) if policies is None else policies
    check_names(named, "must map at least one name to a policy")
    methods = {name: check_policy(f"policies/{name}", policy, data, task) for name, policy in named.items()}
    free = [name for name, method in methods.items() if is_free(method)]
    judged_on = split_to_judge(data, train_on)
    if train_on != "train" and not all(isinstance(method, Policy) for method in methods.values()):
        raise ArgumentError(
            "train_on", "must be train where the validation data is needed to learn or choose", train_on
        )
    if not free and any(takes_best(method) for method in methods.values()):
        raise ArgumentError(
            "policies", "must have a free policy where a control takes the best of them", list(methods)
        )
    where.check_sendable("the task or a policy", task, methods)
    texts = {name: to_json(m) if isinstance(m, Policy) else m.spec() for name, m in methods.items()}
    spec = run_spec("compare", data, task, policies=texts, order=list(methods), seeds=seeds, train_on=train_on)
    trainer = task.prepare(data)
    with shown(watch) as show, begin_run(out, spec, trainer, seeds[0]) as run:
        notes = list(run.notes)
        if judged_on == "val":
            notes.append("There is no test data: validation data that a search has seen favours what it found.")
        trainings = len(methods) * len(seeds)
        show(Planned(notes=list(notes), lines=[f"{counted(trainings, 'training')}."], trainings=trainings))
        with TrainerPool(trainer, train_row, where) as pool:
            rows, best = train_all(run, pool, methods, free, seeds, train_on, judged_on, show)
        if best is not None and any(takes_best(method) for method in methods.values()):
            notes.append(f"The best free policy, by validation data, is {best}.")
        controls = [name for name, method in methods.items() if isinstance(method, Longer | Soup)]
        finished = [name for name, method in methods.items() if isinstance(method, Searched)]
        published = [name for name, method in methods.items() if isinstance(method, Baseline)]
        result = Comparison(task.metric, rows, free, judged_on, notes, controls, finished, published)
        run.write_all({"comparison.csv": result.to_csv().encode(), "comparison.json": result.to_json().encode()})
        run.record_fact("status", "done")
        if all("failed" in row for row in rows):
            raise TaskError(f"every training failed, the first with: {rows[0]['failed']}")
        show(Finished(f"{result.to_text()}\n\n{result.verdict()}"))
        return result


def train_all(
    run: Run,
    pool: TrainerPool,
    methods: Mapping[str, Method],
    free: Sequence[str],
    seeds: Sequence[int],
    train_on: str,
    judged_on: str,
    watch: Watch,
) -> tuple[list[dict[str, Any]], str | None]:
    """A row for each seed and method, and the best free policy, which the controls take: free policies come first."""
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    trainer = pool.trainer
    training_passes = trainer.total_steps * trainer.passes_per_step
    places = {f"train/{name}/{seed}": (name, seed) for seed in seeds for name in methods}

    def keep(key: str, work: Callable[[], dict[str, Any]]) -> None:
        name, seed = places[key]
        unit = run.unit(key, lambda: (work(), None))
        forget(folder_of(run, name, seed))
        cost = round((unit.forward + unit.backward) / training_passes, 3)
        rows[seed, name] = {"policy": name, "seed": seed, **unit.value, "cost": cost}
        figures = {key: value for key, value in unit.value.items() if key != "failed"}
        watch(RowTrained(name, seed, {**figures, "cost": cost}, unit.value.get("failed", "")))

    best: str | None = None
    for part in (free, [name for name in methods if name not in free]):
        if rows:
            best = Comparison(trainer.task.metric, list(rows.values()), free, judged_on).best_free
        chosen = {name: with_best_free(methods[name], methods.get(best or "")) for name in part}
        jobs = {
            f"train/{name}/{seed}": Job(chosen[name], name, seed, train_on, folder_of(run, name, seed))
            for seed in seeds
            for name in part
        }
        finished = [key for key in jobs if run.find(key) is not None]
        for key in finished:
            keep(key, dict)
        pool.each({key: job for key, job in jobs.items() if key not in finished}, keep)
    return [rows[seed, name] for seed in seeds for name in methods], best


def check_train_on(train_on: str, task: Task) -> None:
    """Raise for samples that a task cannot train on."""
    one_of("train_on", train_on, TRAIN_ON)
    if train_on != "train" and isinstance(task, Contrastive):
        rule = "must be train for a contrastive task, whose classifier and neighbours are the training samples"
        raise ArgumentError("train_on", rule, train_on)


def takes_best(method: Method) -> bool:
    """Whether a method is a control for the best free policy."""
    return isinstance(method, Longer | Soup) and method.policy is None


def with_best_free(method: Method, best: Method | None) -> Method:
    """A control for the best free policy, with that policy."""
    if isinstance(method, Longer | Soup) and method.policy is None and isinstance(best, Policy):
        return replace(method, policy=best)
    return method


def split_to_judge(data: Dataset, train_on: str) -> str:
    """The split that the table is about: test, or validation where there is none."""
    counts = data.counts
    if train_on == "train+val" and not (counts["test"] and counts["val"]):
        raise DataError(
            f"{data.name} must have validation samples to train on and test samples to judge by, got {counts}"
        )
    if not counts["test"] and not counts["val"]:
        raise DataError(f"{data.name} must have validation or test samples to judge by, got {counts}")
    return "test" if counts["test"] else "val"


def check_policy(place: str, policy: PolicyLike, data: Dataset, task: Task) -> Method:
    """A policy as a method that works on such data and fits the task, or an ArgumentError."""
    method = method_of(policy, place, data, task)
    if isinstance(method, Baseline):
        check_fits(place, method, task, data)
    elif isinstance(method, Weighted):
        check_domain(place, method.forest, method.on(data))
    elif isinstance(method, Searched):
        check_data(data, method.space)
    else:
        check_domain(place, (method if isinstance(method, Policy) else method.policy) or Identity(), data)
    return method


class Job(NamedTuple):
    """What a worker needs for a row."""

    method: Method
    name: str
    seed: int
    train_on: str
    folder: Path | None


def train_row(trainer: Trainer, common: None, job: Job) -> dict[str, Any]:  # noqa: ARG001
    """The row of a method, a seed and the samples to train on.

    It has the metric on each split and, with several groups, in each and the worst; or why the training failed.
    """
    data, metric, train_on = trainer.data, trainer.task.metric, job.train_on
    about = {"row": job.name, "seed": job.seed}
    folder = job.folder if job.folder is not None and job.folder.parent.parent.is_dir() else None  # not elsewhere

    def work() -> dict[str, Any]:
        with Parts.begun(trainer, folder, about, f"{job.name}, seed {job.seed}") as parts:
            state, row = fit(trainer, job.method, job.seed, train_on, parts)
        for split in ("val", "test"):
            judged = data.indices(split)
            if len(judged) and not (split == "val" and train_on == "train+val"):
                row |= {split: trainer.measures(state, judged)[metric]}
        if len(data.group_names) > 1:
            row |= by_group(trainer, state, "test" if "test" in row else "val")
        return row

    row, failed = attempt(work)
    return {"failed": failed} if row is None else row


def by_group(trainer: Trainer, state: State, split: str) -> dict[str, float | None]:
    """The metric in each group, and where it is worst."""
    data, metric = trainer.data, METRICS[trainer.task.metric]
    groups: dict[str, float | None] = {}
    for group in data.group_names:
        rows = data.indices(split, group)
        if len(rows):
            try:
                groups[f"group {group}"] = trainer.measures(state, rows)[metric.name]
            except ArgumentError:  # a group in which the metric does not exist
                continue
    worst = (min if metric.higher_is_better else max)((v for v in groups.values() if v is not None), default=None)
    return {"worst_group": worst, **groups}
