"""`resume`: go on with a run of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from augtree.baselines.methods import restore_method
from augtree.comparison.compare import compare
from augtree.comparison.result import Comparison
from augtree.data import Dataset
from augtree.errors import RunError
from augtree.evaluation.evaluate import resume as resume_evaluation
from augtree.evaluation.result import Evaluation
from augtree.forests import ForestResult
from augtree.forests.search import resume as resume_forest
from augtree.runs.events import Watch, silent
from augtree.runs.spec import Transforms, restore
from augtree.runs.store import read_spec
from augtree.search import TreeResult
from augtree.search import resume as resume_search
from augtree.tasks import Task

Result = TreeResult | ForestResult | Comparison | Evaluation


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Transforms = (),
    budget: str | float | None = None,
    workers: int = 1,
    watch: Watch = silent,
) -> Result:
    """Go on with a search, forest, comparison or evaluation; the result is the same as without the interruption.

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
        Cool-downs, searches of groups or classifiers side by side; the result is the same.
    watch
        Called with every event (`augtree.runs.events`).

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
    kind = read_spec(Path(folder)).get("kind")
    if kind not in RESUMES:
        rule = "must be the run of a search, a forest, a comparison or an evaluation"
        raise RunError(f"{folder} {rule}, got {kind!r}")
    return RESUMES[kind](
        folder, data=data, task=task, transforms=transforms, budget=budget, workers=workers, watch=watch
    )


def resume_comparison(
    folder: str | Path, *, data: Dataset | None, task: Task | None, transforms: Transforms, watch: Watch, **_: Any
) -> Comparison:
    """Go on with a comparison."""
    run = restore(folder, data, task, transforms)
    methods = {name: restore_method(run.spec["policies"][name], run.reader) for name in run.spec["order"]}
    how = {name: run.spec[name] for name in ("seeds", "train_on")}
    return compare(run.data, run.task, methods, **how, out=folder, watch=watch)


def resume_without_budget(folder: str | Path, **how: Any) -> Evaluation:
    """Go on with an evaluation, which has no budget."""
    del how["budget"]
    return resume_evaluation(folder, **how)


RESUMES: dict[str, Callable[..., Result]] = {
    "search": resume_search,
    "forest": resume_forest,
    "fit": resume_forest,
    "compare": resume_comparison,
    "evaluate": resume_without_budget,
}
"""By kind of run."""
