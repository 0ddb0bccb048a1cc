"""`fit_forest`: one model and the weights of the groups for given trees, and what a forest's run writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from augtree.data import Dataset
from augtree.data.groups import check_groups
from augtree.errors import ArgumentError, DataError, whole_number
from augtree.forests.algorithm2 import WeightedState, WeightedTraining
from augtree.forests.checkpointed import CheckpointedTraining
from augtree.forests.mirror import effective_size
from augtree.forests.options import Weighting
from augtree.forests.plain import compare_with_plain
from augtree.forests.result import ForestResult, finished, measures_by_group
from augtree.forests.weighted import check_groups_match
from augtree.policies import Forest, Tree, load
from augtree.policies.codec import to_json
from augtree.progress import shown
from augtree.runs.events import Planned, Watchers
from augtree.runs.spec import begin_run, run_spec
from augtree.runs.store import Run
from augtree.tables import counted
from augtree.tasks import Task
from augtree.tasks.arguments import DataLike, TaskLike, dataset_of, task_of
from augtree.tasks.trainer import Trainer
from augtree.training.model_files import model_files
from augtree.training.state import State


def fit_forest(
    data: DataLike,
    task: TaskLike | None = None,
    trees: Mapping[str, Tree | str | Path] | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    plain: bool = False,
    pairs: bool = False,
    watch: Watchers = None,
    **weighting: Any,
) -> ForestResult:
    """Learn one model and the weights of the groups, for given trees: Algorithm 2 from its fourth line on.

    Parameters
    ----------
    data
        The data set, or its name or path, in groups.
    task
        Model, length of a training, metric, or the name of a task; by default `Classification()`.
    trees
        A tree, or the file of one, for each group of the data; by default all are empty.
    seed
        The same seed gives the same result.
    out
        The folder of the run; without one, nothing is saved.
    plain, pairs, watch, weighting
        As in `search_forest`.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> data = at.data.group(data, lambda picture: "dark" if picture.float().mean() < 78 else "bright")
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=4, batch_size=16)
    >>> rotate = at.Tree().with_node(1, at.transforms.Rotate(0.4), p=0.5)
    >>> result = at.fit_forest(data, task, {"dark": rotate, "bright": at.Tree()}, alpha=2)
    >>> result.forest["dark"].tree == rotate
    True

    """
    data, task, options = dataset_of(data), task_of(task), Weighting.of(weighting)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    checked = check_trees(data, trees)
    check_groups(data, options.fewest_val)
    if not len(data.indices("val")) and not len(data.indices("test")):
        raise DataError(f"{data.name} must have validation or test samples to judge by, got {data.counts}")
    trainer = task.prepare(data)
    texts = {group: to_json(tree) for group, tree in checked.items()}
    more = {"trees": texts, "weighting": options.spec(), "seed": seed, "plain": plain, "pairs": pairs}
    with shown(watch) as show, begin_run(out, run_spec("fit", data, task, **more), trainer, seed) as run:
        notes = list(run.notes)
        line = f"The weighted training: {counted(trainer.total_steps, 'step')}."
        show(Planned(notes=list(notes), lines=[line], steps=trainer.total_steps))
        uniform = Forest({group: (tree, 1 / len(checked)) for group, tree in checked.items()})
        training = WeightedTraining(trainer, uniform, options, seed)
        weighted = CheckpointedTraining(training, run, show).finish()
        measures = group_metrics(run, trainer, weighted.theta)
        before, similarity = compare_with_plain(trainer, run, weighted.theta, seed, show, plain=plain, pairs=pairs)
        if options.eta > 0 and training.rounds < 2:
            notes.append(f"The weights were never updated: {trainer.total_steps} steps are not more than alpha.")
        result = forest_result(
            run,
            trainer,
            checked,
            weighted,
            weighted.theta,
            measures=measures,
            plain=before,
            similarity=similarity,
            cost=cost_of_fit(run, trainer),
            notes=[*notes, *skipped_updates(weighted)],
        )
        write_forest(run, result, data, task)
        run.record_fact("status", "done")
        show(finished(result))
        return result


def forest_result(
    run: Run, trainer: Trainer, trees: Mapping[str, Tree], weighted: WeightedState, theta: State, **more: Any
) -> ForestResult:
    """A result from the end of a weighted training."""
    data, task = trainer.data, trainer.task
    weights = {group: float(w) for group, w in zip(data.group_names, weighted.w, strict=True)}
    counts = np.array([len(data.indices("train", group)) for group in weights], np.int64)
    mean, std = trainer.mean_and_std()
    return ForestResult(
        forest=Forest({group: (trees[group], weights[group]) for group in trees}),
        model=trainer.module(theta),
        weights=weights,
        history=weighted.history,
        effective_size=effective_size(weighted.w, counts),
        trees={},
        metric=task.metric,
        deterministic=trainer.device.type == "cpu" or task.deterministic,
        mean=mean,
        std=std,
        out=run.folder,
        **more,
    )


def group_metrics(run: Run, trainer: Trainer, state: State) -> dict[str, Any]:
    """The metrics of a model in every group, as a unit of the run."""
    return run.unit("measures", lambda: (measures_by_group(trainer, state), None)).value


def cost_of_fit(run: Run, trainer: Trainer) -> dict[str, float]:
    """The cost of the weighted training."""
    units = list(run.units("leg/"))
    passes, seconds = sum(u.forward + u.backward for u in units), sum(u.seconds for u in units)
    training_passes = trainer.total_steps * trainer.passes_per_step
    return {"fit_equivalents": round(passes / training_passes, 3), "fit_seconds": round(seconds, 2)}


def skipped_updates(weighted: WeightedState) -> list[str]:
    """A note where updates of the weights were skipped."""
    skipped = [row["skipped"] for row in weighted.history if row["skipped"]]
    if not skipped:
        return []
    return [f"{len(skipped)} of {len(weighted.history)} updates of the weights were skipped: {skipped[0]}"]


def check_trees(data: Dataset, trees: Mapping[str, Tree | str | Path] | None) -> dict[str, Tree]:
    """A tree for each group, or an ArgumentError."""
    if trees is None:
        return {group: Tree() for group in data.group_names}
    if not isinstance(trees, Mapping):
        raise ArgumentError("trees", "must map each group to its tree", trees)
    check_groups_match("trees", "one", trees, data)
    checked = {}
    for group in data.group_names:
        value: Any = trees[group]
        tree = load(value) if isinstance(value, str | Path) else value
        if not isinstance(tree, Tree):
            raise ArgumentError(f"trees/{group}", "must be a tree or the file of one", value)
        if tree.domain not in (data.domain, "any"):
            raise ArgumentError(f"trees/{group}", f"must work on {data.domain}s as the data does", str(tree))
        checked[group] = tree
    return checked


def write_forest(run: Run, result: ForestResult, data: Dataset, task: Task) -> None:
    """Write the result files."""
    if run.folder is None:
        return
    files = {
        "forest.json": to_json(result.forest).encode(),
        "forest.svg": result.forest.to_svg().encode(),
        "weights.csv": result.weights_csv().encode(),
        "groups.csv": result.groups_csv().encode(),
        **model_files(result.model, task.for_data(data), data, result.mean, result.std),
        "result.json": result.to_json().encode(),
    }
    run.write_all(files)
