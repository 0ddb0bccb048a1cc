"""`resume`: go on with a run of any kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from augtree.baselines.ways import (
    way_again,
)
from augtree.comparison.result import Comparison
from augtree.data import Dataset
from augtree.errors import RunError
from augtree.forests import ForestResult
from augtree.forests.search import resume as resume_forest
from augtree.policies.codec import Reader
from augtree.runs.store import read_spec
from augtree.search import TreeResult
from augtree.search import resume as resume_search
from augtree.search.search import Watch, data_again, task_again
from augtree.tasks import Task
from augtree.transforms import (
    Transform,
)

if TYPE_CHECKING:
    from augtree.evaluation.result import Evaluation
from augtree.comparison.compare import compare


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Iterable[Transform | type[Transform]] = (),
    budget: str | float | None = None,
    workers: int = 1,
    watch: Watch = lambda *_, **__: None,
) -> TreeResult | ForestResult | Comparison | Evaluation:
    """Go on with a search, a forest, a comparison or an evaluation that was stopped, to what it would have given.

    A run on arrays needs its `data` again, a run with a model of your own its `task`, policies with transforms of
    your own these `transforms`. A search that ended early goes on with a larger `budget`. The groups of a forest are
    searched by `workers`, and the classifiers of an evaluation fitted.
    """
    spec = read_spec(Path(folder))
    if spec.get("kind") == "search":
        return resume_search(
            folder, data=data, task=task, transforms=transforms, budget=budget, workers=workers, watch=watch
        )
    if spec.get("kind") in ("forest", "fit"):
        return resume_forest(
            folder, data=data, task=task, transforms=transforms, budget=budget, workers=workers, watch=watch
        )
    if spec.get("kind") == "evaluate":
        from augtree.evaluation.evaluate import resume_evaluation

        return resume_evaluation(
            folder, data=data, task=task, transforms=list(transforms), workers=workers, watch=watch
        )
    if spec.get("kind") != "compare":
        rule = "must be the run of a search, a forest, a comparison or an evaluation"
        raise RunError(f"{folder} {rule}, got {spec.get('kind')!r}")
    data = data_again(spec["data"], Path(folder), data)
    reader = Reader(Path(folder) / "spec.json", transforms)
    return compare(
        data,
        task or task_again(spec["task"], reader),
        {name: way_again(spec["policies"][name], reader) for name in spec["order"]},
        seeds=spec["seeds"],
        train_on=spec["train_on"],
        out=folder,
        watch=watch,
    )
