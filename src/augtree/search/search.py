"""`search_tree`: from data, a task and a space to a tree; in a folder, resumable."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from augtree import data as data_sets
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError, AugtreeError, DataError, RunError, nearest, number, whole_number
from augtree.policies import Tree
from augtree.policies.codec import Reader, to_json
from augtree.runs import faults
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search import exhaustive
from augtree.search.branches import check_sendable
from augtree.search.grow import BudgetSpentError, Growth, grow
from augtree.search.result import FreePolicy, TreeResult, cost, history, importances
from augtree.search.rounds import search_by_cooldown, searched_space
from augtree.search.scorers import SCORERS, Bench, ScorerOptions
from augtree.search.scorers.base import Score, mean, se
from augtree.search.scorers.cooldown import Cooldown
from augtree.search.scorers.retrain import Retrain, Trainings
from augtree.tasks import TASKS, Classification, Contrastive, Task
from augtree.training.trainer import Trainer, seed_of
from augtree.transforms import Space, Transform, spaces
from augtree.transforms.base import Policy

H = tuple(round(0.1 * i, 1) for i in range(1, 11))
"""The paper's list of probabilities."""
CHECK = 1.0
"""How long the trainings are that hold the tree against the free policies, as a share of a whole one."""
MANY = 200
FEWEST = 8
"""Validation samples that a search needs: half of them choose, half of them confirm."""
Watch = Callable[..., None]


def search_tree(
    data: Dataset,
    task: Task | None = None,
    space: Space | Sequence[Transform] | None = None,
    *,
    depth: int = 3,
    scorer: str | ScorerOptions = "cooldown",
    probabilities: Sequence[float] = H,
    seed: int = 0,
    out: str | Path | None = None,
    budget: str | float | None = None,
    check: float = CHECK,
    method: str = "greedy",
    workers: int = 1,
    watch: Watch = lambda *_, **__: None,
) -> TreeResult:
    """Find out what a data set can bear, and end with a policy and a finished model.

    The same seed gives the same result. With `out`, everything is kept in that folder: the same call again, or
    `resume(out)`, goes on where it was stopped. `budget` is what is spent: "10m" and "2h" are times, a number is in
    training equivalents (scorer cooldown: 2 where nothing is said). `workers` cool-downs are done side by side, with
    the same result.

    With the scorers density and retrain, which score one candidate at a time, a budget ends the search early with the
    best tree so far, `check` is the length of the trainings that hold the tree against the free policies at the end
    (0: none), and `method` "exhaustive" scores all trees of two levels (retrain).
    """
    task = task or Classification()
    space = space_for(data, task, space)
    wanted = checked_options(depth, scorer, probabilities, seed, budget, check, method)
    options, probabilities, depth, check, seed, most_passes, most_seconds = wanted
    check_data(data, space)
    options.check(task)
    workers = whole_number("workers", workers, 1, 1024)
    if isinstance(options, Cooldown):
        space, task = searched_space(space, data, task)
        check = 0.0
    spec = {
        "version": VERSION,
        "kind": "search",
        "data": {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint},
        "task": task.spec(),
        "space": space_spec(space),
        "depth": depth,
        "scorer": options.spec(),
        "probabilities": list(probabilities),
        "seed": seed,
        "check": check,
        "method": method,
    }
    if workers > 1 and isinstance(options, Cooldown):
        check_sendable(task, space, workers)
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(seed)}
    budget = budget if budget is None or isinstance(budget, str) else float(budget)
    if isinstance(options, Cooldown):
        spec |= {"budget": budget}  # the trunk is as long as it allows; the other scorers only end by it
    with Run.begin(out, spec) as run:
        run.tell("budget", budget)
        if isinstance(options, Cooldown):
            run.tell("status", "begun")
            bench = Bench(trainer, list(space), probabilities, seed, run, told=watch)
            notes = list(surroundings(run, trainer))
            limits = (most_passes, most_seconds)
            result = search_by_cooldown(bench, space, options, depth, limits, workers, watch, notes)
            run.tell("status", "done")
            return result
        bench = Bench(trainer, list(space), probabilities, seed, run, told=watch, most_seconds=most_seconds)
        held = 1 + len(task.free[data.domain])
        check = min(check, most_passes / (2 * held))  # at most half of the budget
        bench.most_passes = (most_passes - check * held) * passes_of_one(trainer)
        return searched(bench, options, depth, check, method, watch)


class Options(NamedTuple):
    """What is asked of a search, and does not depend on the data."""

    scorer: ScorerOptions
    probabilities: tuple[float, ...]
    depth: int
    check: float
    seed: int
    most_passes: float
    """In training equivalents."""
    most_seconds: float


def checked_options(
    depth: int,
    scorer: str | ScorerOptions,
    probabilities: Sequence[float],
    seed: int,
    budget: str | float | None,
    check: float,
    method: str,
) -> Options:
    """Options that can be used, or an ArgumentError."""
    options = scorer_options(scorer)
    if method not in ("greedy", "exhaustive"):
        raise ArgumentError("method", "must be greedy or exhaustive", method)
    if method == "exhaustive" and not isinstance(options, Retrain):
        raise ArgumentError("method", "exhaustive needs the scorer retrain", options.spec()["name"])
    return Options(
        options,
        checked_probabilities(probabilities),
        whole_number("depth", depth, 1, 10),
        number("check", check, 0, 10),
        whole_number("seed", seed, 0, 2**63 - 1),
        *parsed_budget(budget),
    )


def searched(bench: Bench, options: ScorerOptions, depth: int, check: float, method: str, watch: Watch) -> TreeResult:
    """The search itself, at a bench."""
    run, trainer = bench.run, bench.trainer
    run.tell("status", "begun")
    notes = list(surroundings(run, trainer))
    most = options.scorings(depth, bench.candidates, len(bench.probabilities))
    if method == "exhaustive":
        most = exhaustive.count(len(bench.candidates)) + 1
    notes += few_samples(bench)
    model = trainer.task.model_for(trainer.data)
    about = f"{model if isinstance(model, str) else 'your model'} on {trainer.device.type}"
    about += f", a training is {trainer.total_steps} steps of {trainer.batch_size}"
    watch("plan", scorings=most, nodes=2**depth - 1, candidates=len(bench.candidates), about=about, notes=[*notes])
    scorer = options.at(bench)
    if method == "exhaustive":
        growth = exhaustively(scorer, notes)
    else:

        def built(growth: Growth, node: int) -> None:
            found = growth.built[-1][1]
            faults.point("node.built")
            watch("node", node=node, found=found, growth=growth, spent=cost(run, passes_of_one(trainer)))

        growth = grow(scorer, depth, bench.seed, built)
    if growth.open and method == "greedy":
        notes.append(f"The budget was spent with {len(growth.open)} nodes still open: this is the tree so far.")
    notes += [f"Node {node} is empty: {found.why}." for node, found in growth.built if found.why]
    failed = {unit.value["candidate"]: unit.value["failed"] for unit in run.units("node/") if "failed" in unit.value}
    notes += [f"{name} failed and was never chosen: {reason}" for name, reason in failed.items()]
    run.write("tree.json", to_json(growth.tree).encode())  # before the check, which takes a while
    result = TreeResult(
        tree=growth.tree,
        importances=importances(growth, run, bench.seed),
        history=history(run),
        free=against_free(bench, growth.tree, check, watch, notes) if check else {},
        cost=cost(run, passes_of_one(trainer)),
        notes=notes,
        metric=trainer.task.metric,
        deterministic=trainer.device.type == "cpu" or trainer.task.deterministic,
        out=run.folder,
    )
    run.write("history.csv", result.history_csv().encode())
    run.write("tree.svg", result.tree.to_svg().encode())
    run.write("result.json", result.to_json().encode())
    run.tell("status", "spent" if growth.open else "done")
    return result


def few_samples(bench: Bench) -> Iterable[str]:
    """A word of caution where differences drown in noise."""
    choosing, confirming = len(bench.rank_rows), len(bench.confirm_rows)
    if choosing + confirming < MANY:
        yield f"Only {choosing} validation samples to choose by and {confirming} to confirm by: expect noise."


def exhaustively(scorer: Trainings, notes: list[str]) -> Growth:
    """The best of all trees of two levels, confirmed as a whole; where the budget ends it, the best so far."""
    scorer.nodes += 1
    found: list[tuple[Tree, Score]] = []
    try:
        for scored in exhaustive.score_all(scorer):
            found.append(scored)  # noqa: PERF402 - one by one: they stay when the budget ends the loop
        if not found:
            return Growth(2, scorer.bench.seed, open=())
        tree, score = lowest(found)
        built = scorer.confirmed(1, Tree(), score.entry)
    except BudgetSpentError:
        return Growth(2, scorer.bench.seed, best_so_far(scorer, found, notes))
    return Growth(2, scorer.bench.seed, tree if built.improves else Tree(), (), ((1, built),))


def best_so_far(scorer: Trainings, found: Sequence[tuple[Tree, Score]], notes: list[str]) -> Tree:
    """The best tree of those that were scored, if it improves on none; nothing has confirmed it, and that is told."""
    tree, score = lowest(found) if found else (Tree(), None)
    scored = f"{len(found)} of {exhaustive.count(len(scorer.bench.candidates))} trees scored"
    if score is None or score.gain <= 0:
        notes.append(f"The budget was spent with {scored}: none of them improved on leaving the data alone.")
        return Tree()
    notes.append(
        f"The budget was spent with {scored}: this is the best of them, not confirmed on fresh data (its gain was"
        f" {score.gain:.4f} ± {score.gain_se:.4f} on the data that chose it)."
    )
    return tree


def lowest(found: Sequence[tuple[Tree, Score]]) -> tuple[Tree, Score]:
    """The tree with the lowest loss; the earlier where two are equal."""
    return min(found, key=lambda pair: pair[1].loss)


def against_free(bench: Bench, tree: Tree, check: float, watch: Watch, notes: list[str]) -> dict[str, FreePolicy]:
    """The tree and the free policies, each by a training from the start, on the half that confirmed the nodes."""
    trainer, rows = bench.trainer, bench.confirm_rows
    policies: dict[str, Policy] = {"tree": tree} | {
        name: find_for(trainer.data, name) for name in trainer.task.free[trainer.data.domain]
    }
    steps = max(1, round(check * trainer.total_steps))
    found, losses = {}, {}
    for name, policy in policies.items():
        watch("free", name=name)

        def work(policy: Policy = policy) -> tuple[dict[str, Any], Any]:
            try:
                state = trainer.fit(policy, seed_of(bench.seed, "free"), steps)
                values = trainer.calibrated_losses(state, rows)
                metric = trainer.measures(state, rows)[trainer.task.metric]
            except AugtreeError as error:
                return {"failed": f"{type(error).__name__}: {error}"}, None
            if not np.isfinite(values).all():
                return {"failed": "its losses are not finite"}, None
            return {"loss": mean(values), "metric": metric}, values

        unit = bench.run.unit(f"free/{steps}/{name}/{tree!r}" if name == "tree" else f"free/{steps}/{name}", work)
        if unit.losses is None:
            notes.append(f"{name} could not be held against the tree: {unit.value['failed']}")
            if name == "tree":
                return {}
            continue
        losses[name] = np.asarray(unit.losses)
        behind = losses[name] - losses["tree"]
        found[name] = FreePolicy(unit.value["loss"], se(losses[name]), unit.value["metric"], mean(behind), se(behind))
    return found


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Iterable[Transform | type[Transform]] = (),
    budget: str | float | None = None,
    workers: int = 1,
    watch: Watch = lambda *_, **__: None,
) -> TreeResult:
    """Go on with a search that was stopped; the tree is the one that it would have given.

    A run on arrays needs its `data` again, a run with a model of your own its `task`, a space with transforms of your
    own these `transforms`. A search that ended early goes on with a larger `budget` (not with the scorer cooldown,
    which plans by it).
    """
    spec = read_spec(Path(folder))
    if spec["kind"] != "search":
        raise RunError(f"{folder} must be the run of a search, got {spec['kind']}")
    scorer = scorer_again(spec["scorer"], Path(folder))
    data = data_again(spec["data"], Path(folder), data)
    reader = Reader(Path(folder) / "spec.json", transforms)
    task = task or task_again(spec["task"], reader)
    return search_tree(
        data,
        task,
        space_again(spec["space"], reader),
        depth=spec["depth"],
        scorer=scorer,
        probabilities=spec["probabilities"],
        seed=spec["seed"],
        out=folder,
        budget=spec.get("budget", told_budget(Path(folder))) if budget is None else budget,
        check=spec["check"],
        method=spec["method"],
        workers=workers,
        watch=watch,
    )


def space_spec(space: Space) -> dict[str, Any]:
    """A space as a value for a file; what it is made of stands there in parts."""
    parts = {"candidates": space, "basics": space.basics, "own": space.own}
    return {name: [to_json(part) for part in found] for name, found in parts.items()} | {"combines": space.combines}


def space_again(spec: Any, reader: Reader) -> Space:
    """A space from such a value; a plain list of candidates is that of an older version."""
    if not isinstance(spec, Mapping):
        raise RunError(f"{reader.path} is of a run that another version of augtree began: begin it again")
    parts: dict[str, list[Transform]] = {
        name: [cast(Transform, reader.policy(text)) for text in spec[name]]
        for name in ("candidates", "basics", "own")
    }
    own = parts["own"] if spec["combines"] else None
    return Space(parts["candidates"], basics=parts["basics"], own=own)


def scorer_again(spec: Mapping[str, Any], folder: Path) -> ScorerOptions:
    """A run's scorer; that of an older version is gone, and the run with it."""
    options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}
    name = options.pop("name")
    known = {field.name for field in fields(SCORERS[name])} if name in SCORERS else None
    if known is None or not options.keys() <= known:
        raise RunError(f"{folder} was begun by another version of augtree, with the scorer {name!r}: begin it again")
    return SCORERS[name](**options)


def told_budget(folder: Path) -> str | float | None:
    """The budget that a run was given."""
    with Run.open(folder, write=False) as run:
        budget: str | float | None = run.fact("budget")
        return budget


def data_again(spec: dict[str, Any], folder: Path, data: Dataset | None = None) -> Dataset:
    """The data set that a run was made on: given again, or read again."""
    if data is None and spec["source"] is None:
        raise RunError(f"{folder} was made on arrays: give them again, augtree.resume({str(folder)!r}, data=...)")
    data = data_sets.load(**spec["source"]) if data is None else data
    if data.fingerprint != spec["fingerprint"]:
        raise DataError(f"{folder}: the data must be what the run began with, but {data.name} has changed")
    return data


def task_again(spec: dict[str, Any], reader: Reader) -> Task:
    """The task of a run."""
    if spec.get("task") not in TASKS:
        raise RunError(f"a run's task must be one of {', '.join(TASKS)}, got {spec.get('task')!r}")
    arguments = {key: value for key, value in spec.items() if key != "task"}
    if not isinstance(arguments["model"], str):
        raise RunError(
            f"the run's model is a function ({arguments['model']['function']}): give the task again, task=..."
        )
    if arguments["preprocess"] not in (None, "default"):
        arguments["preprocess"] = reader.policy(arguments["preprocess"])
    return TASKS[spec["task"]](**arguments)


def space_for(data: Dataset, task: Task, space: Space | Sequence[Transform] | None) -> Space:
    """The space that is given; else `spaces.auto`, or for a contrastive task on pictures SimCLR's seven and chain."""
    if space is not None:
        return space if isinstance(space, Space) else Space(list(space))
    if data.domain == "image" and isinstance(task, Contrastive):
        return spaces.simclr(composites=True, fill=data.fill)
    return spaces.auto(data)


def scorer_options(scorer: str | ScorerOptions) -> ScorerOptions:
    """A scorer by name, or as it is."""
    if isinstance(scorer, ScorerOptions):
        return scorer
    if scorer not in SCORERS:
        rule = f"must be one of {', '.join(SCORERS)}{nearest(str(scorer), SCORERS)}"
        raise ArgumentError("scorer", rule, scorer)
    return SCORERS[scorer]()


def checked_probabilities(given: Sequence[float]) -> tuple[float, ...]:
    """H: probabilities above 0, rising."""
    found = tuple(sorted({number("probabilities", p, 0, 1, open_low=True) for p in given}))
    if not found:
        raise ArgumentError("probabilities", "must not be empty", given)
    return found


def check_data(data: Dataset, space: Space) -> None:
    """Raise for data that no search can use, before anything runs."""
    validation = len(data.indices("val"))
    if validation < FEWEST:
        raise DataError(f"{data.name}: a search needs at least {FEWEST} validation samples, got {validation}")
    domains = {candidate.domain for candidate in space} - {"any"}
    if domains - {data.domain}:
        raise ArgumentError("space", f"must work on {data.domain}s as the data does", sorted(domains))


def parsed_budget(budget: str | float | None) -> tuple[float, float]:
    """Training equivalents and seconds.

    >>> parsed_budget("90m"), parsed_budget(8), parsed_budget(None)
    ((inf, 5400.0), (8.0, inf), (inf, inf))
    """
    if budget is None:
        return float("inf"), float("inf")
    if isinstance(budget, str):
        unit = {"s": 1, "m": 60, "h": 3600}.get(budget[-1:], 0)
        text = budget[:-1] if unit else budget
        try:
            amount = number("budget", float(text), 0, 1e9, open_low=True)
        except ValueError:
            raise ArgumentError(
                "budget", "must be a time (90s, 10m, 2h) or training equivalents (8)", budget
            ) from None
        return (float("inf"), amount * unit) if unit else (amount, float("inf"))
    return number("budget", budget, 0, 1e9, open_low=True), float("inf")


def passes_of_one(trainer: Trainer) -> int:
    """The sample passes of one whole training, forward and backward."""
    return trainer.total_steps * trainer.passes_a_step


def surroundings(run: Run, trainer: Trainer) -> Iterable[str]:
    """What a result to the byte rests on; told where it has changed since the run began."""
    now = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": trainer.device.type,
        "machine": platform.machine(),
    }
    before = run.fact("surroundings")
    if before is None:
        run.tell("surroundings", now)
        run.tell("status", "begun")
        return
    for name, value in now.items():
        if before.get(name) != value:
            yield f"The run began with {name} {before.get(name)} and goes on with {value}: the tree may differ."
