"""`search_forest` and `fit_forest`: Algorithm 2 as a whole, in a folder, resumable.

out/forest.json       the trees and their weights; beside it the model, tables and pictures
With the paper's method:
out/groups/00-NAME/   the search of a group's tree, a run of its own
out/fit/              the weighted training
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np

from augtree.data import Dataset
from augtree.data.groups import check_groups
from augtree.errors import ArgumentError, DataError, RunError, one_of, whole_number
from augtree.forests.algorithm2 import Progress, WeightedTraining
from augtree.forests.analysis import average, between, disparity, features_by_group, similarity
from augtree.forests.group_trees import group_alone, silent, trees_of_groups
from augtree.forests.legs import Legs
from augtree.forests.mirror import effective_size
from augtree.forests.options import Weighting
from augtree.forests.result import ForestResult, measured
from augtree.forests.shared_trunk import Ended, SharedTrunk
from augtree.policies import Forest, Tree, load
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search.branches import check_sendable
from augtree.search.result import TreeResult, cost
from augtree.search.rounds import searched_space
from augtree.search.scorers import Cooldown, ScorerOptions
from augtree.search.scorers.base import Bench
from augtree.search.search import (
    H,
    Watch,
    check_data,
    checked_options,
    data_again,
    passes_of_one,
    scorer_again,
    space_again,
    space_for,
    space_spec,
    surroundings,
    task_again,
    told_budget,
)
from augtree.tasks import Classification, Task
from augtree.training.model_files import model_files
from augtree.training.trainer import Passes, State, Trainer
from augtree.transforms import Identity, Space, Transform

BESIDE = ("plain", "features", "pair/")
"""What is trained beside a forest to compare it with: no part of what it cost."""


def search_forest(
    data: Dataset,
    task: Task | None = None,
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
    method: str = "shared",
    plain: bool = False,
    pairs: bool = False,
    watch: Watch = silent,
    **weighting: Any,
) -> ForestResult:
    """One policy for each group of a data set, and one model on all of them with learned weights.

    With method "shared" all groups share one trunk, as in `search_tree` with the scorer cooldown: every look is
    judged group by group, what clearly harms a group leaves that group's play, and the weights are learned in the
    last part of the training. `budget` is that of `search_tree`, and `workers` cool-downs are done side by side.

    Method "paper" is the paper's own way: a tree for each group from its samples alone (scorer density, unless
    another is asked for; `depth`, `probabilities`, `budget` and `check` are of each search, `workers` searches run
    side by side), then Algorithm 2 from uniform weights with raw directions.

    `weighting` are options of `augtree.forests.Weighting`: alpha, eta, target="worst", ... `plain` also trains a
    model without any of this, to hold the groups' results and features against; `pairs` also trains a plain model on
    each pair of groups, for the similarity of their features there.
    """
    task = task or Classification()
    space = space_for(data, task, space)
    if one_of("method", method, METHODS) == "paper":
        weighting = {"start": "uniform", "d": "raw", **weighting}
    scorer = ("density" if method == "paper" else "cooldown") if scorer is None else scorer
    options = weighting_of(weighting)
    wanted = checked_options(depth, scorer, probabilities, seed, budget, check, "greedy")
    if isinstance(wanted.scorer, Cooldown) != (method == "shared"):
        rule = "must be cooldown with method shared, and another with method paper"
        raise ArgumentError("scorer", rule, wanted.scorer.spec()["name"])
    whole_number("workers", workers, 1, 1024)
    check_data(data, space)
    check_groups(data)
    wanted.scorer.check(task)
    if workers > 1:
        check_sendable(task, space, workers)
    if method == "shared":
        space, task = searched_space(space, data, task)
    spec = {
        "version": VERSION,
        "kind": "forest",
        "data": data_spec(data),
        "task": task.spec(),
        "space": space_spec(space),
        "depth": wanted.depth,
        "seed": wanted.seed,
        "check": wanted.check,
        "probabilities": list(wanted.probabilities),
        "scorer": wanted.scorer.spec(),
        "method": method,
        "weighting": options.spec(),
        "plain": plain,
        "pairs": pairs,
    }
    budget = budget if budget is None or isinstance(budget, str) else float(budget)
    trainer = task.prepare(data)
    if method == "shared":
        spec |= {
            "budget": budget,
            "begins": trainer.identity(wanted.seed),
        }  # the trunk is as long as the budget allows
    with Run.begin(out, spec) as run:
        run.tell("budget", budget)
        run.tell("status", "begun")
        if method == "paper":
            how = {"scorer": wanted.scorer, "probabilities": wanted.probabilities, "check": wanted.check}
            how |= {"depth": wanted.depth, "seed": wanted.seed, "budget": budget}
            extras = {"plain": plain, "pairs": pairs, **weighting}
            result = by_the_paper(data, task, space, run, how, workers, watch, extras)
            ended = [status_of(found.out) for found in result.trees.values()]
        else:
            limits = (wanted.most_passes, wanted.most_seconds)
            bench = Bench(trainer, list(space), wanted.probabilities, wanted.seed, run, told=watch)
            notes = list(surroundings(run, bench.trainer))
            search = SharedTrunk(bench, cast(Cooldown, wanted.scorer), options, workers, watch, notes)
            result = finished(search, search.search(space, limits), plain, pairs)
            ended = []
        write_forest(run, result, data, task)
        run.tell("status", "spent" if "spent" in ended else "done")
        return result


METHODS = ("shared", "paper")


def by_the_paper(
    data: Dataset,
    task: Task,
    space: Space,
    run: Run,
    how: dict[str, Any],
    workers: int,
    watch: Watch,
    extras: dict[str, Any],
) -> ForestResult:
    """Algorithm 2 as the paper writes it: each group's tree from its own samples, then one weighted training."""
    for group in data.group_names:
        task.check(group_alone(data, group))
    for line in surroundings(run, task.prepare(data)):
        watch("note", text=line)
    grown = trees_of_groups(data, task, space, run, how, workers, watch)
    folder = None if run.folder is None else run.folder / "fit"
    found = {group: result.tree for group, result in grown.items()}
    make_room(folder, found)
    result = fit_forest(data, task, found, seed=how["seed"], out=folder, watch=watch, **extras)
    notes = [f"{group}: {note}" for group, search in grown.items() for note in search.notes]
    return replace(
        result, trees=grown, cost={**cost_of(grown), **result.cost}, notes=[*notes, *result.notes], out=run.folder
    )


def finished(search: SharedTrunk, ended: Ended, plain: bool, pairs: bool) -> ForestResult:
    """What a search on one trunk gives."""
    trainer, run, progress = search.trainer, search.run, ended.progress
    found = run.unit("measures", lambda: (measured(trainer, ended.state), None)).value
    spent = cost(run, passes_of_one(trainer), *BESIDE)
    more = against_plain(trainer, run, ended.state, search.seed, search.watch, plain=plain, pairs=pairs)
    weights = dict(zip(trainer.data.group_names, map(float, progress.w), strict=True))
    counts = np.array([len(trainer.data.indices("train", group)) for group in weights], np.int64)
    forest = Forest({group: (member.tree, weights[group]) for group, member in ended.forest.groups.items()})
    return ForestResult(
        forest=forest,
        model=trainer.module(ended.state),
        weights=weights,
        history=progress.history,
        measures=found,
        plain=more[0],
        effective_size=effective_size(progress.w, counts),
        similarity=more[1],
        trees={},
        cost={"search_equivalents": spent.training_equivalents, "search_seconds": spent.seconds},
        notes=[*search.notes, *skipped_updates(progress)],
        metric=trainer.task.metric,
        deterministic=trainer.device.type == "cpu" or trainer.task.deterministic,
        mean=trainer.mean_and_std()[0],
        std=trainer.mean_and_std()[1],
        out_of_play={group: sorted(play.out) for group, play in ended.plays.items()},
        findings=[finding.row() for finding in ended.findings],
        cooled=ended.cooled,
        members=ended.members,
        state=ended.state,
        passes=Passes(spent.forward, spent.backward),
        out=run.folder,
    )


def skipped_updates(progress: Progress) -> list[str]:
    """A note where updates of the weights were skipped."""
    skipped = [row["skipped"] for row in progress.history if row["skipped"]]
    if not skipped:
        return []
    return [f"{len(skipped)} of {len(progress.history)} updates of the weights were skipped: {skipped[0]}"]


def against_plain(
    trainer: Trainer, run: Run, theta: State, seed: int, watch: Watch, *, plain: bool, pairs: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Beside a plain model, and plain models of pairs of groups, where these were asked for."""
    before: dict[str, Any] = {}
    alike: dict[str, Any] = {}
    if plain:
        watch("plain")
        before, alike = held_against_plain(trainer, run, theta, seed)
    if pairs:
        alike["pairs"] = pairs_of_groups(trainer.data, trainer.task, run, seed, watch)
    return before, alike


def cost_of(grown: Mapping[str, TreeResult]) -> dict[str, float]:
    """What the groups' trees cost."""
    return {
        "search_equivalents": sum(result.cost.training_equivalents for result in grown.values()),
        "search_seconds": sum(result.cost.seconds for result in grown.values()),
    }


def make_room(folder: Path | None, trees: Mapping[str, Tree]) -> None:
    """Remove the weighted training of other trees: those of a smaller budget."""
    mine = {group: to_json(tree) for group, tree in trees.items()}
    if folder is not None and (folder / "spec.json").is_file() and read_spec(folder).get("trees") != mine:
        shutil.rmtree(folder)


def status_of(folder: Path | None) -> str:
    """How a run ended."""
    if folder is None:
        return "done"
    with Run.open(folder, write=False) as run:
        return str(run.fact("status"))


def fit_forest(
    data: Dataset,
    task: Task | None = None,
    trees: Mapping[str, Tree | str | Path] | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    plain: bool = False,
    pairs: bool = False,
    watch: Watch = silent,
    **weighting: Any,
) -> ForestResult:
    """Learn one model and the weights of the groups, for trees that are there already.

    `trees` has one for each group of the data: a tree, or its file; without any, all are empty. `weighting` are
    options of `augtree.forests.Weighting`.
    """
    task, options = task or Classification(), weighting_of(weighting)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    planted = checked_trees(data, trees)
    check_groups(data, options.fewest_val)
    if not len(data.indices("val")) and not len(data.indices("test")):
        raise DataError(f"{data.name} must have validation or test samples to judge by, got {data.counts}")
    even = 1 / len(planted)
    forest = Forest({group: (tree, even) for group, tree in planted.items()})
    spec = {
        "version": VERSION,
        "kind": "fit",
        "data": data_spec(data),
        "task": task.spec(),
        "trees": {group: to_json(tree) for group, tree in planted.items()},
        "weighting": options.spec(),
        "seed": seed,
        "plain": plain,
        "pairs": pairs,
    }
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(seed)}
    with Run.begin(out, spec) as run:
        run.meter.read = lambda: (trainer.passes.forward, trainer.passes.backward)
        notes = list(surroundings(run, trainer))
        watch("plan", steps=trainer.total_steps, training="weighted training", notes=notes)
        training = WeightedTraining(trainer, forest, options, seed)
        at = Legs(training, run, watch).finished()
        found = run.unit("measures", lambda: (measured(trainer, at.theta), None)).value
        before, alike = against_plain(trainer, run, at.theta, seed, watch, plain=plain, pairs=pairs)
        if options.eta > 0 and training.rounds < 2:
            notes.append(f"The weights were never updated: {trainer.total_steps} steps are not more than alpha.")
        notes += skipped_updates(at)
        names = data.group_names
        weights = {name: float(w) for name, w in zip(names, at.w, strict=True)}
        legs = list(run.units("leg/"))
        passes, seconds = sum(u.forward + u.backward for u in legs), sum(u.seconds for u in legs)
        result = ForestResult(
            forest=Forest({name: (planted[name], weights[name]) for name in names}),
            model=trainer.module(at.theta),
            weights=weights,
            history=at.history,
            measures=found,
            plain=before,
            effective_size=effective_size(at.w, training.counts),
            similarity=alike,
            trees={},
            cost={"fit_equivalents": round(passes / passes_of_one(trainer), 3), "fit_seconds": round(seconds, 2)},
            notes=notes,
            metric=task.metric,
            deterministic=trainer.device.type == "cpu" or task.deterministic,
            mean=trainer.mean_and_std()[0],
            std=trainer.mean_and_std()[1],
            out=run.folder,
        )
        write_forest(run, result, data, task)
        run.tell("status", "done")
        return result


def held_against_plain(trainer: Trainer, run: Run, theta: State, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model without augmentation and weights: how its groups do, and how alike their features are in both."""
    split = "test" if len(trainer.data.indices("test")) else "val"

    def work() -> tuple[dict[str, Any], None]:
        state = trainer.fit(Identity(), seed)
        return {
            "measures": measured(trainer, state),
            "alike": between(features_by_group(trainer, state, split)),
        }, None

    before = run.unit("plain", work).value
    after = run.unit("features", lambda: ({"alike": between(features_by_group(trainer, theta, split))}, None)).value
    alike = {
        "split": split,
        "without": before["alike"],
        "with": after["alike"],
        "average_without": average(before["alike"]),
        "average_with": average(after["alike"]),
        "disparity": disparity(trainer.data),
    }
    return before["measures"], alike


def pairs_of_groups(data: Dataset, task: Task, run: Run, seed: int, watch: Watch) -> list[dict[str, Any]]:
    """A plain model on each pair of groups alone: how alike their features are in it, beside how they differ."""
    apart = {tuple(row["groups"]): row for row in disparity(data)}
    found = []
    for (i, one), (j, other) in combinations(enumerate(data.group_names), 2):
        watch("pair", groups=(one, other))

        def work(one: str = one, other: str = other) -> tuple[dict[str, Any], None]:
            both = data.take(np.sort(np.concatenate([data.indices(None, group) for group in (one, other)])))
            trainer = task.prepare(both)
            splits = [split for split in ("test", "val") if all(len(both.indices(split, g)) for g in (one, other))]
            split = [*splits, "train"][0]
            features = features_by_group(trainer, trainer.fit(Identity(), seed), split)
            return {"similarity": similarity(features[one], features[other])}, None

        value = run.unit(f"pair/{i}/{j}", work).value
        found.append({"groups": [one, other], **value, **apart.get((one, other), {})})
    return found


def weighting_of(given: Mapping[str, Any]) -> Weighting:
    """The options of the weights' learning."""
    try:
        return Weighting(**given)
    except TypeError:
        known = list(Weighting.__dataclass_fields__)
        wrong = next(name for name in given if name not in known)
        raise ArgumentError(wrong, f"must be one of {', '.join(known)}", given[wrong]) from None


def checked_trees(data: Dataset, trees: Mapping[str, Tree | str | Path] | None) -> dict[str, Tree]:
    """A tree for each group."""
    if trees is None:
        return {group: Tree() for group in data.group_names}
    if not isinstance(trees, Mapping):
        raise ArgumentError("trees", "must map each group to its tree", trees)
    for group in {*data.group_names} ^ {*trees}:
        rule = f"must have one for each group of the data ({', '.join(data.group_names)}) and no other"
        raise ArgumentError("trees", rule, f"{group} {'missing' if group in data.group_names else 'beside them'}")
    found = {}
    for group in data.group_names:
        given: Any = trees[group]
        tree = load(given) if isinstance(given, str | Path) else given
        if not isinstance(tree, Tree):
            raise ArgumentError(f"trees/{group}", "must be a tree or the file of one", given)
        if tree.domain not in (data.domain, "any"):
            raise ArgumentError(f"trees/{group}", f"must work on {data.domain}s as the data does", str(tree))
        found[group] = tree
    return found


def data_spec(data: Dataset) -> dict[str, Any]:
    """What a run remembers of its data."""
    return {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint}


def write_forest(run: Run, result: ForestResult, data: Dataset, task: Task) -> None:
    """All that a user takes away."""
    if run.folder is None:
        return
    content = {
        "forest.json": to_json(result.forest).encode(),
        "forest.svg": result.forest.to_svg().encode(),
        "weights.csv": result.weights_csv().encode(),
        "groups.csv": result.groups_csv().encode(),
        **model_files(result.model, task.spec(), data.classes, result.mean, result.std),
        "result.json": result.to_json().encode(),
    }
    for name, bytes_ in content.items():
        run.write(name, bytes_)


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Iterable[Transform | type[Transform]] = (),
    budget: str | float | None = None,
    workers: int = 1,
    watch: Watch = silent,
) -> ForestResult:
    """Go on with a forest that was stopped; the result is the one that it would have given."""
    spec, place = read_spec(Path(folder)), Path(folder)
    scorer = scorer_again(spec["scorer"], place) if spec["kind"] == "forest" else None
    data = data_again(spec["data"], place, data)
    reader = Reader(place / "spec.json", transforms)
    task = task or task_again(spec["task"], reader)
    common = {"seed": spec["seed"], "out": folder, "plain": spec["plain"], "pairs": spec["pairs"], "watch": watch}
    common |= spec["weighting"]
    if spec["kind"] == "fit":
        trees = {group: checked_tree(reader.policy(text)) for group, text in spec["trees"].items()}
        return fit_forest(data, task, trees, **common)
    return search_forest(
        data,
        task,
        space_again(spec["space"], reader),
        depth=spec["depth"],
        scorer=scorer,
        probabilities=spec["probabilities"],
        budget=spec.get("budget", told_budget(place)) if budget is None else budget,
        check=spec["check"],
        workers=workers,
        method=spec["method"],
        **common,
    )


def checked_tree(policy: Any) -> Tree:
    """A policy that is a tree."""
    if not isinstance(policy, Tree):
        raise RunError(f"a run of a forest must hold trees, got {policy}")
    return policy
