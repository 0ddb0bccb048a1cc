"""`resume`: go on with a run of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from augtree.baselines.methods import restore_method
from augtree.comparison.compare import compare
from augtree.comparison.result import Comparison
from augtree.comparison.train import Trained, train
from augtree.data import Dataset
from augtree.errors import ArgumentError, RunError
from augtree.evaluation.evaluate import check_policy, evaluate_methods, task_for
from augtree.evaluation.leakage import KnownLabels
from augtree.evaluation.protocols import find_protocol
from augtree.evaluation.result import Evaluation
from augtree.forests import ForestResult, fit_forest, search_forest
from augtree.policies import Tree
from augtree.runs.events import Watchers
from augtree.runs.executors import Executor, executor_of
from augtree.runs.spec import Restored, Transforms, restore, restore_space
from augtree.runs.store import checked_spec
from augtree.search import SearchOptions, TreeResult, search_tree
from augtree.search.options import restore_scorer
from augtree.tasks import Task

PARALLEL = ("search", "forest", "compare")
"""The kinds of runs whose parts can run elsewhere."""
Result = TreeResult | ForestResult | Comparison | Evaluation | Trained


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Transforms = (),
    budget: str | float | None = None,
    workers: int = 1,
    executor: Executor | str | None = None,
    watch: Watchers = None,
) -> Result:
    """Go on with a run of any kind; the result is the same as without the interruption.

    Parameters
    ----------
    folder
        The run's folder.
    data
        The data again, for a run on arrays.
    task
        The task again, for a run with a model of your own.
    transforms
        Transforms of your own in the run's policies.
    budget
        A larger budget, for a search by density or retrain that its budget ended.
    workers
        Cool-downs, searches of groups, trainings of a comparison or classifiers side by side; the result is the same.
    executor
        As in `search_tree` and `compare`, for their runs and those of forests; it need not be that of before.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.

    Examples
    --------
    >>> import tempfile
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = at.compare(data, task, {"none": None, "ta": "trivialaugment"}, seeds=1, out=folder)
    ...     at.resume(folder).rows == table.rows
    True

    """
    spec = checked_spec(Path(folder))
    kind = spec.get("kind")
    if kind not in RESUMES:
        rule = "must be the run of a search, a forest, a training, a comparison or an evaluation"
        raise RunError(f"{folder} {rule}, got {kind!r}")
    if "scorer" in spec:
        restore_scorer(spec["scorer"], Path(folder))  # refused before the data, which may take long to read
    for name, value, default, kinds in (
        ("budget", budget, None, ("search", "forest")),
        ("executor", executor, None, PARALLEL),
        ("workers", workers, 1, (*PARALLEL, "evaluate")),
    ):
        if value != default and kind not in kinds:
            raise ArgumentError(name, f"must be left out for a run of the kind {kind}", value)
    executor_of(executor, workers)
    run = restore(folder, data, task, transforms)
    return RESUMES[kind](run, budget=budget, workers=workers, executor=executor, watch=watch)


def resume_search(run: Restored, *, watch: Watchers, **more: Any) -> TreeResult:
    """Go on with the search for a tree."""
    options = options_of(run, **more)
    space = restore_space(run.spec["space"], run.reader)
    return search_tree(run.data, run.task, space, **options.arguments(), out=run.folder, watch=watch)


def resume_forest(run: Restored, *, watch: Watchers, **more: Any) -> ForestResult:
    """Go on with the search for a forest."""
    arguments = options_of(run, **more, method="greedy").arguments("method") | weighting_of(run)
    space = restore_space(run.spec["space"], run.reader)
    method = run.spec["method"]
    return search_forest(run.data, run.task, space, **arguments, method=method, out=run.folder, watch=watch)


def options_of(run: Restored, *, budget: str | float | None, **more: Any) -> SearchOptions:
    """The options of a search, with another budget where one is given and does not decide what is done."""
    options = SearchOptions.from_spec(run.spec, run.folder, budget=run.budget if budget is None else budget, **more)
    if options.budget != run.spec.get("budget", options.budget):
        rule = "must be left out or be that of the run: a search by cool-downs keeps the budget that it began with"
        raise ArgumentError("budget", rule, budget)
    return options


def resume_fit(run: Restored, *, watch: Watchers, **_: Any) -> ForestResult:
    """Go on with a weighted training for given trees."""
    trees = {group: restored_tree(run.reader.policy(text)) for group, text in run.spec["trees"].items()}
    arguments = {**weighting_of(run), "seed": run.spec["seed"]}
    return fit_forest(run.data, run.task, trees, **arguments, out=run.folder, watch=watch)


def weighting_of(run: Restored) -> dict[str, Any]:
    """The options of a weighted training, and what it is compared with."""
    return {"plain": run.spec["plain"], "pairs": run.spec["pairs"], **run.spec["weighting"]}


def restored_tree(policy: object) -> Tree:
    """A policy that is a tree."""
    if not isinstance(policy, Tree):
        raise RunError(f"a run of a forest must hold trees, got {policy}")
    return policy


def resume_training(run: Restored, *, watch: Watchers, **_: Any) -> Trained:
    """Go on with a training."""
    policy = run.reader.policy(run.spec["policy"])
    return train(run.data, run.task, policy, seed=run.spec["seed"], out=run.folder, watch=watch)


def resume_comparison(
    run: Restored, *, workers: int, executor: Executor | str | None, watch: Watchers, **_: Any
) -> Comparison:
    """Go on with a comparison."""
    methods = {name: restore_method(run.spec["policies"][name], run.reader) for name in run.spec["order"]}
    arguments = {name: run.spec[name] for name in ("seeds", "train_on")}
    arguments |= {"workers": workers, "executor": executor}
    return compare(run.data, run.task, methods, **arguments, out=run.folder, watch=watch)


def resume_evaluation(run: Restored, *, workers: int, watch: Watchers, **_: Any) -> Evaluation:
    """Go on with an evaluation."""
    spec, protocol = run.spec, find_protocol(run.spec["protocol"])
    given = {name: restore_method(spec["policies"][name], run.reader) for name in spec["order"]}
    methods = {name: check_policy(name, method, run.data, run.task) for name, method in given.items()}
    known = KnownLabels(np.array(spec["seen"], np.int64), spec.get("notes", ()))
    task = task_for(protocol, run.task, run.data)
    return evaluate_methods(run.data, task, methods, protocol, spec["seeds"], known, workers, run.folder, watch)


RESUMES: dict[str, Callable[..., Result]] = {
    "search": resume_search,
    "forest": resume_forest,
    "fit": resume_fit,
    "train": resume_training,
    "compare": resume_comparison,
    "evaluate": resume_evaluation,
}
"""By kind of run."""
