"""`search_forest`: a policy for each group, their weights and one model, as a run that can be resumed.

out/forest.json       the trees and their weights; beside it the model, tables and pictures
With method "paper" also:
out/groups/00-NAME/   the search of a group's tree, a run of its own
out/fit/              the weighted training
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from augtree.data import Dataset
from augtree.data.groups import check_groups
from augtree.errors import ArgumentError, one_of, printable
from augtree.forests.fit import fit_forest, forest_result, group_metrics, skipped_updates, write_forest
from augtree.forests.group_trees import group_alone, trees_of_groups
from augtree.forests.options import Weighting
from augtree.forests.plain import compare_with_plain
from augtree.forests.result import ForestResult, finished
from augtree.forests.shared_trunk import SharedTrunk
from augtree.policies import Tree
from augtree.policies.codec import to_json
from augtree.progress import shown
from augtree.runs.events import Note, Watchers
from augtree.runs.executors import Executor
from augtree.runs.spec import begin_run, run_spec, space_spec
from augtree.runs.store import Run, read_spec
from augtree.search.cooldown_search import without_preprocess
from augtree.search.options import H, SearchOptions
from augtree.search.result import TreeResult, cost_of
from augtree.search.scorers import ScorerOptions
from augtree.search.scorers.base import ScoringContext
from augtree.search.search import check_data, space_for
from augtree.tasks import Task
from augtree.tasks.arguments import DataLike, TaskLike, dataset_of, task_of
from augtree.training.state import Passes
from augtree.transforms import Space, Transform

FOREST_METHODS = ("shared", "paper")
DEFAULT_SCORERS = {"shared": "cooldown", "paper": "density"}
"""The default scorer of each method."""
PLAIN_UNITS = ("plain", "features", "pair/")
"""The units of the models that a forest is compared with: they are no part of its cost."""


def search_forest(
    data: DataLike,
    task: TaskLike | None = None,
    space: Space | Sequence[Transform] | None = None,
    *,
    depth: int = 3,
    scorer: str | ScorerOptions | None = None,
    probabilities: Sequence[float] = H,
    seed: int = 0,
    out: str | Path | None = None,
    budget: str | float | None = None,
    check: float = 0.0,
    workers: int = 1,
    executor: Executor | str | None = None,
    method: str = "shared",
    plain: bool = False,
    pairs: bool = False,
    watch: Watchers = None,
    **weighting: Any,
) -> ForestResult:
    """One policy for each group of a data set, and one model on all of them with learned weights.

    With method "shared" all groups share one trunk, as in `search_tree` with the scorer cooldown: every look is
    judged group by group, what clearly harms a group is taken out of play for that group, and the weights are learned
    in the last part of the training. Method "paper" is the paper's: a tree for each group from its samples alone,
    then Algorithm 2 from uniform weights with raw directions.

    Parameters
    ----------
    data
        The data set, or its name or path, in groups; each needs validation samples.
    task
        Model, length of a training, metric, or the name of a task; by default `Classification()`.
    space, depth
        As in `search_tree`.
    scorer
        cooldown with method "shared"; density or retrain with method "paper".
    probabilities, seed, out
        As in `search_tree`.
    budget, check
        As in `search_tree`; with method "paper", for each group's search.
    workers
        Cool-downs (with method "paper": searches) side by side; the result is the same.
    executor
        As in `search_tree`.
    method
        shared or paper.
    plain
        Whether to train a model without augmentation and weights too, to compare the groups with.
    pairs
        Whether to train a plain model on each pair of groups too, for the similarity of their features.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.
    weighting
        Options of `augtree.Weighting`: alpha, eta, target="worst", ...

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> data = at.data.group(data, lambda picture: "dark" if picture.float().mean() < 78 else "bright")
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> result = at.search_forest(data, task, budget=1, alpha=2)
    >>> sorted(result.forest.groups)
    ['bright', 'dark']

    """
    data, task = dataset_of(data), task_of(task)
    space = space_for(data, task, space)
    if one_of("method", method, FOREST_METHODS) == "paper":
        weighting = {"start": "uniform", "d": "raw", **weighting}
    weights = Weighting.of(weighting)
    options = SearchOptions(
        depth=depth,
        scorer=scorer or DEFAULT_SCORERS[method],
        probabilities=probabilities,
        seed=seed,
        budget=budget,
        check=check,
        workers=workers,
        executor=executor,
    )
    if options.by_cooldown != (method == "shared"):
        rule = "must be cooldown with method shared, and another with method paper"
        raise ArgumentError("scorer", rule, options.scorer_options.spec()["name"])
    check_data(data, space)
    check_groups(data)
    options.scorer_options.check(task)
    options.used_executor.check_sendable("the task or a transform", task, list(space))
    plain_options = {"plain": plain, "pairs": pairs}
    more = {**options.spec(), "check": options.check, "method": method, "weighting": weights.spec(), **plain_options}
    if method == "paper":
        spec = run_spec("forest", data, task, space=space_spec(space), **more)
        return search_by_paper(data, task, space, options, spec, out, watch, {**plain_options, **weighting})
    task = without_preprocess(task, space, data)
    trainer = task.prepare(data)
    spec = run_spec("forest", data, task, space=space_spec(space), **more)
    with shown(watch) as show, begin_run(out, spec, trainer, options.seed) as run:
        run.record_fact("budget", options.budget)
        context = ScoringContext(trainer, list(space), tuple(options.probabilities), options.seed, run, watch=show)
        result = search_on_shared_trunk(SharedTrunk(context, options, weights), space, plain=plain, pairs=pairs)
        write_forest(run, result, data, task)
        run.record_fact("status", "done")
        show(finished(result))
        return result


def search_on_shared_trunk(search: SharedTrunk, space: Space, *, plain: bool, pairs: bool) -> ForestResult:
    """Method "shared": every group's policy and the weights from one trunk."""
    trainer, run = search.trainer, search.run
    outcome = search.search(space)
    measures = group_metrics(run, trainer, outcome.state)
    cost = cost_of(run, trainer, *PLAIN_UNITS)
    before, similarity = compare_with_plain(
        trainer, run, outcome.state, search.seed, search.context.watch, plain=plain, pairs=pairs
    )
    return forest_result(
        run,
        trainer,
        {group: member.tree for group, member in outcome.forest.groups.items()},
        outcome.weighted,
        outcome.state,
        measures=measures,
        plain=before,
        similarity=similarity,
        cost={"search_equivalents": cost.training_equivalents, "search_seconds": cost.seconds},
        notes=[*outcome.notes, *skipped_updates(outcome.weighted)],
        out_of_play={group: sorted(play.out) for group, play in outcome.plays.items()},
        findings=[finding.row() for finding in outcome.findings],
        cooled=outcome.cooled,
        members=outcome.members,
        state=outcome.state,
        passes=Passes(cost.forward, cost.backward),
    )


def search_by_paper(
    data: Dataset,
    task: Task,
    space: Space,
    options: SearchOptions,
    spec: Mapping[str, Any],
    out: str | Path | None,
    watch: Watchers,
    fit: Mapping[str, Any],
) -> ForestResult:
    """Method "paper": each group's tree from its own samples, then one weighted training."""
    with shown(watch) as show, begin_run(out, spec, task.prepare(data)) as run:
        run.record_fact("budget", options.budget)
        for group in data.group_names:
            task.check(group_alone(data, group))
        for note in run.notes:
            show(Note(note))
        arguments = options.arguments("method", "workers", "executor")
        results = trees_of_groups(data, task, space, run, arguments, options.used_executor, show)
        folder = None if run.folder is None else run.folder / "fit"
        trees = {group: result.tree for group, result in results.items()}
        remove_other_fit(folder, trees)
        result = fit_forest(data, task, trees, seed=options.seed, out=folder, watch=show, **fit)
        notes = [f"{printable(group)}: {note}" for group, search in results.items() for note in search.notes]
        cost = {**cost_of_searches(results), **result.cost}
        result = replace(result, trees=results, cost=cost, notes=[*notes, *result.notes], out=run.folder)
        write_forest(run, result, data, task)
        budget_spent = any(status_of(search.out) == "spent" for search in results.values())
        run.record_fact("status", "spent" if budget_spent else "done")
        show(finished(result))
        return result


def cost_of_searches(results: Mapping[str, TreeResult]) -> dict[str, float]:
    """What the groups' searches have cost together."""
    return {
        "search_equivalents": sum(result.cost.training_equivalents for result in results.values()),
        "search_seconds": sum(result.cost.seconds for result in results.values()),
    }


def remove_other_fit(folder: Path | None, trees: Mapping[str, Tree]) -> None:
    """Remove the weighted training of other trees, which a smaller budget had given."""
    texts = {group: to_json(tree) for group, tree in trees.items()}
    if folder is not None and (folder / "spec.json").is_file() and read_spec(folder).get("trees") != texts:
        shutil.rmtree(folder)


def status_of(folder: Path | None) -> str:
    """How a run ended."""
    if folder is None:
        return "done"
    with Run.open(folder, write=False) as run:
        return str(run.fact("status"))
