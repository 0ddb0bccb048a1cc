"""`search_forest` and `fit_forest`: Algorithm 2 as a whole, in a folder, resumable.

out/groups/00-NAME/   the search of a group's tree, a run of its own
out/one-tree/         that of the tree for all groups
out/fit/              the weighted training
out/forest.json       the trees and their weights; beside it the model, tables and pictures
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from augtree.data import Dataset
from augtree.data.groups import check_groups
from augtree.errors import ArgumentError, DataError, RunError, need, whole_number
from augtree.policies import Forest, Tree, load
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search.result import TreeResult
from augtree.search.scorers import SCORERS, ScorerOptions
from augtree.search.scorers.base import Bench
from augtree.search.search import (
    CHECK,
    H,
    Watch,
    check_data,
    checked_options,
    data_again,
    default_space,
    passes_of_one,
    surroundings,
    task_again,
    told_budget,
)
from augtree.tasks import Classification, Task
from augtree.tasks.trainer import State, Trainer
from augtree.transforms import Identity, Space, Transform
from augtree.weighting.common import Common, Held, branches_of
from augtree.weighting.fit import WeightedTraining
from augtree.weighting.legs import Legs
from augtree.weighting.mirror import effective_size
from augtree.weighting.options import Weighting
from augtree.weighting.result import ForestResult, measured
from augtree.weighting.similarity import average, between, disparity, features_by_group, similarity
from augtree.weighting.trees import TOGETHER, check_sendable, group_alone, silent, trees_of_groups


def search_forest(
    data: Dataset,
    task: Task | None = None,
    space: Space | Sequence[Transform] | None = None,
    *,
    depth: int = 3,
    scorer: str | ScorerOptions = "anneal",
    probabilities: Sequence[float] = H,
    seed: int = 0,
    out: str | Path | None = None,
    budget: str | float | None = None,
    check: float = CHECK,
    workers: int = 1,
    one_tree: bool = True,
    plain: bool = True,
    pairs: bool = False,
    watch: Watch = silent,
    **weighting: Any,
) -> ForestResult:
    """One tree for each group of a data set, then one model on all of them with learned weights.

    Each tree is what `search_tree` gives on that group's samples alone; `budget` and `check` are of each search.
    With `one_tree`, one for all groups is grown too, and a group has its own only where that lowers its loss in a
    model of all groups; without it, as in the paper, every group has its own.
    `workers` searches run side by side, and the result is the same. `weighting` are options of
    `augtree.weighting.Weighting`: alpha, eta, target="worst", ... `plain` also trains a model without any of this,
    to hold the groups' results and features against; `pairs`
    also trains a plain model on each pair of groups, for the similarity of their features there.
    """
    task, options = task or Classification(), weighting_of(weighting)
    space = default_space(data, task) if space is None else Space(list(space))
    wanted = checked_options(depth, scorer, probabilities, seed, budget, check, "greedy")
    if whole_number("workers", workers, 1, 1024) > 1:
        check_sendable(task, space, workers)
    check_data(data, space)
    check_groups(data)
    wanted.scorer.check(task)
    for group in data.group_names:
        task.check(group_alone(data, group))
    how: dict[str, Any] = {
        "depth": wanted.depth,
        "scorer": wanted.scorer,
        "probabilities": wanted.probabilities,
        "seed": wanted.seed,
        "budget": budget,
        "check": wanted.check,
    }
    spec = {
        "version": VERSION,
        "kind": "forest",
        "data": data_spec(data),
        "task": task.spec(),
        "space": [to_json(candidate) for candidate in space],
        **{name: how[name] for name in ("depth", "seed", "check")},
        "probabilities": list(wanted.probabilities),
        "scorer": wanted.scorer.spec(),
        "weighting": options.spec(),
        "one_tree": one_tree,
        "plain": plain,
        "pairs": pairs,
    }
    with Run.begin(out, spec) as run:
        run.tell("budget", budget if budget is None or isinstance(budget, str) else float(budget))
        run.tell("status", "begun")
        for line in surroundings(run, task.prepare(data)):
            watch("note", text=line)
        grown, whole = trees_of_groups(data, task, space, run, how, workers, watch, one_tree)
        cost = cost_of(grown)
        held: dict[str, Held] = {}
        if whole is not None:
            trainer = task.prepare(data)
            bench = Bench(trainer, space, wanted.probabilities, wanted.seed, run)
            own = {group: result.tree for group, result in grown.items()}
            held = Common(bench, branches_of(wanted.scorer), whole.tree).held(own, watch)
            cost |= cost_of_one_tree(whole, run, passes_of_one(trainer))
            del bench, trainer  # what they have on a GPU, the weighted training may need
        trees = {group: found if whole is None or held[group].own else whole for group, found in grown.items()}
        folder = None if run.folder is None else run.folder / "fit"
        found = {group: result.tree for group, result in trees.items()}
        make_room(folder, found)
        result = fit_forest(
            data, task, found, seed=wanted.seed, out=folder, plain=plain, pairs=pairs, watch=watch, **weighting
        )
        result = replace(
            result,
            trees=trees,
            one_tree=whole,
            held=held,
            cost={**cost, **result.cost},
            notes=[*notes_of(grown, whole, held), *result.notes],
            out=run.folder,
        )
        write_forest(run, result, data, task)
        ended = [status_of(found.out) for found in (*grown.values(), *([whole] if whole else []))]
        run.tell("status", "spent" if "spent" in ended else "done")
        return result


def cost_of(grown: Mapping[str, TreeResult]) -> dict[str, float]:
    """What the groups' trees cost."""
    return {
        "search_equivalents": sum(result.cost.training_equivalents for result in grown.values()),
        "search_seconds": sum(result.cost.seconds for result in grown.values()),
    }


def cost_of_one_tree(whole: TreeResult, run: Run, passes: int) -> dict[str, float]:
    """What the tree for all cost, and holding the others against it; a training has so many passes."""
    forward, backward, seconds, _ = run.cost()
    return {
        "one_tree_equivalents": round(whole.cost.training_equivalents + (forward + backward) / passes, 3),
        "one_tree_seconds": round(whole.cost.seconds + seconds, 2),
    }


def notes_of(grown: Mapping[str, TreeResult], whole: TreeResult | None, held: Mapping[str, Held]) -> list[str]:
    """What the searches had to say, and how each group's own tree did."""
    searches = {**grown, **({} if whole is None else {TOGETHER: whole})}
    said = [f"{group}: {note}" for group, result in searches.items() for note in result.notes]
    return [*said, *(f"{group}: {found}." for group, found in held.items())]


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
    plain: bool = True,
    pairs: bool = False,
    watch: Watch = silent,
    **weighting: Any,
) -> ForestResult:
    """Learn one model and the weights of the groups, for trees that are there already.

    `trees` has one for each group of the data: a tree, or its file; without any, all are empty. `weighting` are
    options of `augtree.weighting.Weighting`.
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
        before: dict[str, Any] = {}
        alike: dict[str, Any] = {}
        if plain:
            watch("plain")
            before, alike = held_against_plain(trainer, run, at.theta, seed)
        if pairs:
            alike["pairs"] = pairs_of_groups(data, task, run, seed, watch)
        skipped = [row["skipped"] for row in at.history if row["skipped"]]
        if options.eta > 0 and training.rounds < 2:
            notes.append(f"The weights were never updated: {trainer.total_steps} steps are not more than alpha.")
        if skipped:
            notes.append(f"{len(skipped)} of {len(at.history)} updates of the weights were skipped: {skipped[0]}")
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
    weights = {name: t.detach().cpu().contiguous().clone() for name, t in result.model.state_dict().items()}
    about = {"mean": result.mean, "std": result.std, "classes": data.classes, "task": task.spec()}
    content = {
        "forest.json": to_json(result.forest).encode(),
        "forest.svg": result.forest.to_svg().encode(),
        "weights.csv": result.weights_csv().encode(),
        "groups.csv": result.groups_csv().encode(),
        "model.safetensors": need("safetensors.torch", "cli").save(weights),
        "training.json": (json.dumps(about, indent=1, allow_nan=False) + "\n").encode(),
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
    data = data_again(spec["data"], place, data)
    reader = Reader(place / "spec.json", transforms)
    task = task or task_again(spec["task"], reader)
    common = {"seed": spec["seed"], "out": folder, "plain": spec["plain"], "pairs": spec["pairs"], "watch": watch}
    common |= spec["weighting"]
    if spec["kind"] == "fit":
        trees = {group: checked_tree(reader.policy(text)) for group, text in spec["trees"].items()}
        return fit_forest(data, task, trees, **common)
    scorer: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in spec["scorer"].items()}
    return search_forest(
        data,
        task,
        [checked_candidate(reader.policy(text)) for text in spec["space"]],
        depth=spec["depth"],
        scorer=SCORERS[scorer.pop("name")](**scorer),
        probabilities=spec["probabilities"],
        budget=told_budget(place) if budget is None else budget,
        check=spec["check"],
        workers=workers,
        one_tree=spec["one_tree"],
        **common,
    )


def checked_tree(policy: Any) -> Tree:
    """A policy that is a tree."""
    if not isinstance(policy, Tree):
        raise RunError(f"a run of a forest must hold trees, got {policy}")
    return policy


def checked_candidate(policy: Any) -> Transform:
    """A policy that is a transform."""
    if not isinstance(policy, Transform):
        raise RunError(f"a space must hold transforms, got {policy}")
    return policy
