"""`search_tree`: from data, a task and a space to a tree and a finished model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError
from augtree.progress import shown
from augtree.runs.events import Watchers
from augtree.runs.executors import Executor
from augtree.runs.spec import begin_run, run_spec, space_spec
from augtree.search.candidate_search import search_by_candidates
from augtree.search.cooldown_search import search_by_cooldowns, without_preprocess
from augtree.search.options import H, SearchOptions
from augtree.search.result import TreeResult
from augtree.search.scorers import ScorerOptions
from augtree.search.scorers.base import ScoringContext
from augtree.tasks import Contrastive, Task
from augtree.tasks.arguments import DataLike, TaskLike, dataset_of, task_of
from augtree.transforms import Identity, Space, Transform, spaces

MIN_VAL_SAMPLES = 8
"""The fewest validation samples of a search: half of them choose, half of them confirm."""


def search_tree(
    data: DataLike,
    task: TaskLike | None = None,
    space: Space | Sequence[Transform] | None = None,
    *,
    depth: int = 3,
    scorer: str | ScorerOptions = "cooldown",
    probabilities: Sequence[float] = H,
    seed: int = 0,
    out: str | Path | None = None,
    budget: str | float | None = None,
    check: float = 1.0,
    method: str = "greedy",
    workers: int = 1,
    executor: Executor | str | None = None,
    watch: Watchers = None,
) -> TreeResult:
    """Search for the augmentation that suits a data set: the result is a tree and a finished model.

    The same seed gives the same result. With the scorers density and retrain, which score one candidate at a time,
    a budget ends the search early with the best tree so far, and there is no finished model.

    Parameters
    ----------
    data
        The data set, or its name or path; it must have at least 8 validation samples.
    task
        The model, the length of a training, the metric, or the name of a task; by default `Classification()`.
    space
        The transforms to choose from; by default `spaces.auto(data)`.
    depth
        The number of levels of the tree.
    scorer
        How candidates are scored: cooldown, density or retrain, or one of these with options (`Cooldown(last=6)`).
    probabilities
        The probabilities that a node may have (density, retrain).
    seed
        The seed of everything random.
    out
        The run's folder: the same call again, or `augtree.resume(out)`, continues a search that was stopped.
    budget
        What to spend: a time ("10m", "2h") or a number of trainings; cooldown spends 2 trainings by default.
    check
        The length of the trainings that compare the tree with the free policies; 0: none (density, retrain).
    method
        Algorithm 1 (greedy), or all trees of two levels (exhaustive, needs retrain).
    workers
        The number of processes that run cool-downs (cooldown); the result is the same.
    executor
        Where cool-downs run, instead of `workers`: `augtree.executors.Ray(address="auto")`, or a name (serial,
        processes, ray); the result is the same.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.

    Returns
    -------
    TreeResult
        The tree, what it rests on and what it cost; with the scorer cooldown, the finished model as well.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> result = at.search_tree(data, task, at.spaces.auto(data), budget=1)
    >>> result.tree.domain, sorted(result.measures)
    ('image', ['accuracy', 'auroc', 'error', 'f1', 'loss'])

    """
    options = SearchOptions(
        depth=depth,
        scorer=scorer,
        probabilities=probabilities,
        seed=seed,
        budget=budget,
        check=check,
        method=method,
        workers=workers,
        executor=executor,
    )
    options.check_executor()
    data, task = dataset_of(data), task_of(task)
    space = space_for(data, task, space)
    check_data(data, space)
    options.scorer_options.check(task)
    if options.by_cooldown:
        task = without_preprocess(task, space, data)
        options.used_executor.check_sendable("the task or a transform", task, list(space))
    trainer = task.prepare(data)
    spec = run_spec("search", data, task, space=space_spec(space), **options.spec())
    with shown(watch) as show, begin_run(out, spec, trainer, options.seed) as run:
        run.record_fact("budget", options.budget)
        context = ScoringContext(trainer, list(space), tuple(options.probabilities), options.seed, run, watch=show)
        if options.by_cooldown:
            return search_by_cooldowns(context, space, options)
        return search_by_candidates(context, options)


def space_for(data: Dataset, task: Task, space: Space | Sequence[Transform] | None) -> Space:
    """The given space, or the default: `spaces.auto`, and SimCLR's for a contrastive task on pictures."""
    if space is not None:
        return space if isinstance(space, Space) else Space(list(space))
    if data.domain == "image" and isinstance(task, Contrastive):
        return spaces.simclr(composites=True, fill=data.fill)
    return spaces.auto(data)


def check_data(data: Dataset, space: Space) -> None:
    """Raise for data that no search can use, before anything runs."""
    validation = len(data.indices("val"))
    if validation < MIN_VAL_SAMPLES:
        raise DataError(
            f"{data.name}: a search needs at least {MIN_VAL_SAMPLES} validation samples, got {validation}:"
            " val=N (--val N) makes them of training samples"
        )
    if all(isinstance(candidate, Identity) for candidate in (*space, *space.basics)):
        raise ArgumentError("space", "must have a transform beside Identity, such as those of spaces.auto(data)", [])
    domains = {candidate.domain for candidate in space} - {"any"}
    if domains - {data.domain}:
        raise ArgumentError("space", f"must work on {data.domain}s as the data does", sorted(domains))
