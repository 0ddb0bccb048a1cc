"""`augtree search`, `resume`, `runs`, `compare` and `train`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Seed, app, finish, say
from augtree.cli.options import on_data_and_task
from augtree.cli.progress import Progress
from augtree.errors import ArgumentError, RunError, one_of

Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]
STOPPED = 130
SPACES = ("auto", "images", "images+composites", "simclr", "simclr+composites", "graphs", "graphs+composites")
SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def check_search(
    depth: int,
    scorer: str,
    scorer_option: list[str] | None,
    space: str,
    probabilities: str,
    budget: str | None,
    check: float,
    method: str,
    out: Path | None,
    seed: int,
) -> None:
    """Raise for options that no search can have."""
    from augtree.runs.store import check_place
    from augtree.search.search import checked_options

    one_of("--space", space, SPACES)
    options = scorer_of(scorer, scorer_option or [])
    checked_options(depth, options, numbers_of("--probabilities", probabilities), seed, budget, check, method)
    if out is not None:
        check_place(out, "search")


@app.command()
@on_data_and_task(check_search)
def search(
    data: Any,
    task: Any,
    depth: Annotated[int, typer.Option(min=1, max=10, help="Levels of the tree.")] = 3,
    scorer: Annotated[str, typer.Option(help="cooldown, density or retrain.")] = "cooldown",
    scorer_option: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the scorer, such as looks=0.3,0.6 (repeatable).")
    ] = None,
    space: Annotated[
        str, typer.Option(help="auto, images, simclr or graphs; the last three also with +composites.")
    ] = "auto",
    probabilities: Annotated[str, typer.Option(help="The list H.")] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0",
    budget: Annotated[
        str | None, typer.Option(help="What to spend: 90s, 10m, 2h, or a number of trainings (default: 2).")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Cool-downs side by side; the result is the same.")] = 1,
    check: Annotated[
        float,
        typer.Option(help="density, retrain: length of the trainings against the free policies; 0: none."),
    ] = 1.0,
    method: Annotated[
        str, typer.Option(help="retrain: greedy (Algorithm 1), or exhaustive (all trees of two levels).")
    ] = "greedy",
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find out what your data can bear, and end with a policy and a finished model."""
    from augtree.search import search_tree

    folder = out or new_folder("search")
    with stoppable(folder), Progress() as watch:
        result = search_tree(
            data,
            task,
            space_of(space, data),
            depth=depth,
            scorer=scorer_of(scorer, scorer_option or []),
            probabilities=numbers_of("--probabilities", probabilities),
            seed=seed,
            out=folder,
            budget=budget,
            check=check,
            method=method,
            workers=workers,
            watch=watch,
        )
    tell_tree(result)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def tell_tree(result: Any) -> None:
    """Everything about what a search found, and what to do next."""
    for note in result.notes:
        say(note)
    empty = "The tree is empty: nothing improved on leaving the data alone."
    say("\n" + (result.tree.to_text() if len(result.tree) else empty))
    if result.importances:
        say("\nWhat mattered (fall of the validation loss where it was confirmed):")
        for name, importance in result.importances.items():
            say(f"  {name}: {importance}")
    if result.free:
        say("\nHeld against the free policies (on the validation half that confirmed the nodes):")
        for name, policy in result.free.items():
            say(f"  {name}: loss {policy.loss:.4f} ± {policy.loss_se:.4f}, {result.metric} {policy.metric:.4f}")
    say(f"\n{result.verdict()}")
    say(f"Cost: {result.cost}.")
    if not result.deterministic:
        say("deterministic: false (the same search again may give another tree; --deterministic).")
    say(f"\nThe policy for your own loop: {result.out}/tree.json (tree.svg is a picture).")
    if result.model is not None:
        say(f"The finished model: {result.out}/model.safetensors; how it was made: {result.out}/training.json")
        say(f"Also there: mixture.json and single.json; {result.out}/history.csv has every cool-down.")
    else:
        say(f"Every scored candidate: {result.out}/history.csv")
    say(f"Whether it helps on the test data, with several trainings each: augtree compare {result.out}")


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="The folder of a search, a forest, a comparison or an evaluation.")],
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads (default: as when it began).")] = None,
    budget: Annotated[str | None, typer.Option(help="Another budget, for a search that ended early.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Cool-downs or groups side by side; cores for an evaluation.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped; the result is the one that it would have given."""
    import torch

    from augtree.cli.evaluate import tell_evaluation
    from augtree.cli.forest import tell_forest
    from augtree.comparison import Comparison
    from augtree.comparison import resume as go_on
    from augtree.evaluation import Evaluation
    from augtree.search import TreeResult
    from augtree.search.search import parsed_budget

    parsed_budget(budget)
    torch.set_num_threads(threads or threads_of(run))
    with stoppable(run), Progress() as watch:
        result = go_on(run, budget=budget, workers=workers, watch=watch)
    if isinstance(result, Comparison):
        tell_comparison(result, run, as_json)
    elif isinstance(result, Evaluation):
        tell_evaluation(result, run, as_json)
    else:
        if isinstance(result, TreeResult):
            tell_tree(result)
        else:
            tell_forest(result)
        finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def threads_of(folder: Path) -> int:
    """The threads with which a run began."""
    from augtree.runs.store import Run

    with Run.open(folder, write=False) as run:
        return int(run.fact("surroundings", {}).get("threads", 1))


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = Path("runs"),
    as_json: Json = False,
) -> None:
    """List the runs in a folder: what they are, whether they are done, what they have cost."""
    found = [about_run(spec.parent) for spec in sorted(folder.rglob("spec.json"))]
    if not found:
        say(f"No runs in {folder}.")
    for run in found:
        about = f"{run['kind']} on {run['data']}, {run['status']}"
        say(f"{run['run']}: {about}, {run['units']} units, {run['seconds']:.0f} s")
    finish({"runs": found}, as_json)


def about_run(folder: Path) -> dict[str, Any]:
    """A run in a few words."""
    from augtree.runs.store import Run

    try:
        with Run.open(folder, write=False) as run:
            forward, backward, seconds, units = run.cost()
            status = {"done": "done", "begun": "not done", "spent": "ended by its budget"}.get(
                run.fact("status", "begun"), "?"
            )
            name = run.spec["data"]["name"]
            costs = {"forward": forward, "backward": backward, "seconds": seconds, "units": units}
            return {"run": str(folder), "kind": run.spec["kind"], "data": name, "status": status, **costs}
    except RunError as error:
        return {"run": str(folder), "kind": "?", "data": "?", "status": str(error), "units": 0, "seconds": 0.0}


def check_compare(policies: list[str] | None, train_on: str, out: Path | None) -> None:
    """Raise for options that no comparison can have."""
    from augtree.comparison.compare import TRAIN_ON
    from augtree.policies.presets import find
    from augtree.runs.store import check_place

    one_of("--train-on", train_on, TRAIN_ON)
    for policy in named(policies or []).values():
        find(policy)
    if out is not None:
        check_place(out, "compare")


@app.command()
@on_data_and_task(check_compare)
def compare(
    data: Any,
    task: Any,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policy files and names (default: none, randaugment, trivialaugment; for a run also what it found,"
            " and controls that cost as much)."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="For the run of a forest: also with other weights, such as alpha=10,200 (repeatable)."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 3,
    train_on: Annotated[str, typer.Option(help="train, or train+val.")] = "train",
    out: Out = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train with each policy and say which is best; for a run, also at its own cost."""
    from augtree.comparison import compare as run_comparison
    from augtree.comparison import free_policies, ways_of_run

    folder = out or new_folder("compare")
    chosen = named(policies) if policies else None
    own = {} if run is None else {**ways_of_run(run, data), **varied(run, vary or [])}
    if own:
        chosen = {**(chosen or free_policies(data, task)), **own}
    elif vary:
        raise ArgumentError("--vary", "must be for the run of a forest, in the place of the data", vary[0])
    with stoppable(folder), Progress() as watch:
        result = run_comparison(data, task, chosen, seeds=seeds, train_on=train_on, out=folder, watch=watch)
    tell_comparison(result, folder, as_json)


def varied(run: Path, vary: list[str]) -> dict[str, Any]:
    """A forest's run with other options of its weights."""
    from dataclasses import fields, replace

    from augtree.forests.weighted import weighted_of_run

    if not vary:
        return {}
    forest = weighted_of_run(run)
    if forest is None:
        raise ArgumentError("--vary", f"must be for the run of a forest, and {run} is none", vary[0])
    forest = replace(forest, groups=None, merge=None)  # the data is the run's, in its groups
    found: dict[str, Any] = {}
    for text in vary:
        name, _, values = text.partition("=")
        if name not in {field.name for field in fields(forest.weighting)} or not values:
            raise ArgumentError("--vary", "must be NAME=VALUE,VALUE... with an option of the weights", text)
        for value in values.split(","):
            like = getattr(forest.weighting, name)
            changed = {name: parsed(name, value, 1 if like is None else like, "--vary")}
            found[f"forest, {name}={value}"] = replace(forest, weighting=replace(forest.weighting, **changed))
    return found


def named(policies: list[str]) -> dict[str, Any]:
    """Policies by short names: those they have, or their folder's where several files are called alike."""
    from augtree.policies.presets import NAMED

    found: dict[str, Any] = {}
    for policy in policies:
        path = Path(policy)
        name = policy if policy.lower() in NAMED else path.stem
        if name in found or name in ("tree", "policy", "forest"):
            name = f"{path.parent.name}/{path.stem}" if path.parent.name else name
        if name in found:
            raise ArgumentError("policies", "must not have two of one name", name)
        found[name] = policy.lower() if policy.lower() in NAMED else policy
    return found


def tell_comparison(result: Any, folder: Path, as_json: bool) -> None:
    """The table and what it says."""
    for note in result.notes:
        say(note)
    say("\n" + result.to_text())
    say(f"\n{result.verdict()}")
    say(f"Every training: {folder}/comparison.csv and comparison.json")
    finish({"out": str(folder), **json.loads(result.to_json())}, as_json)


def check_train(policy: str, out: Path | None) -> None:
    """Raise for options that no training can have."""
    from augtree.files import check_folder
    from augtree.policies.presets import find

    find(policy)
    if out is not None:
        check_folder(out)


@app.command()
@on_data_and_task(check_train)
def train(
    data: Any,
    task: Any,
    policy: Annotated[str, typer.Option(help="A policy file or name.")] = "none",
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train one model with a policy and keep it."""
    from augtree.comparison import train as run_training

    folder = out or new_folder("train")
    with Progress() as watch:
        result = run_training(data, task, policy, seed=seed, out=folder, watch=watch)
    for split, found in result.metrics.items():
        say(f"{split}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
    say(f"The model: {folder}/model.safetensors; how it was made: {folder}/training.json")
    finish({"out": str(folder), "metrics": result.metrics}, as_json)


@contextmanager
def stoppable(folder: Path, command: str = "") -> Iterator[None]:
    """Ctrl-C says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped; nothing is lost. Go on with: {command or f'augtree resume {folder}'}")
        raise typer.Exit(STOPPED) from None


def new_folder(what: str) -> Path:
    """A folder that is not there yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    place = Path("runs") / f"{what}-{stamp}"
    count = 1
    while place.exists():
        count += 1
        place = Path("runs") / f"{what}-{stamp}-{count}"
    return place


def space_of(name: str, data: Any) -> Any:
    """A space by name, for the data; None where it is left to the search."""
    from augtree.transforms import spaces

    known: dict[str, Callable[[], Any]] = {
        "auto": lambda: None,
        "images": lambda: spaces.images(fill=data.fill),
        "images+composites": lambda: spaces.images(composites=True, fill=data.fill),
        "simclr": spaces.simclr,
        "simclr+composites": lambda: spaces.simclr(composites=True, fill=data.fill),
        "graphs": spaces.graphs,
        "graphs+composites": lambda: spaces.graphs(composites=True),
    }
    return known[one_of("--space", name, SPACES)]()


def scorer_of(name: str, given: list[str]) -> Any:
    """A scorer with its options."""
    import dataclasses

    from augtree.search.scorers import SCORERS
    from augtree.search.search import scorer_options

    plain = scorer_options(name)
    fields = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
    chosen: dict[str, Any] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in fields or not value:
            raise ArgumentError("--set", f"must be NAME=VALUE with one of {', '.join(fields)}", text)
        chosen[key] = parsed(key, value, fields[key])
    return SCORERS[name](**chosen)


def parsed(key: str, text: str, like: Any, option: str = "--set") -> Any:
    """A value of the same kind as the default."""
    if isinstance(like, tuple):
        return tuple(parsed(key, part, like[0], option) for part in text.split(","))
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        if text.lower() not in SAID:
            raise ArgumentError(f"{option} {key}", f"must be one of {', '.join(SAID)}", text)
        return SAID[text.lower()]
    value = float_of(f"{option} {key}", text)
    if isinstance(like, int):
        if not math.isfinite(value) or value != int(value):
            raise ArgumentError(f"{option} {key}", "must be a whole number", text)
        return int(value)
    return value


def numbers_of(field: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    return [float_of(field, part) for part in text.split(",")]


def float_of(field: str, text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(field, "must be a number", text) from None
