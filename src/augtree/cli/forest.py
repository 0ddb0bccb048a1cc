"""`augtree forest`: a tree for each group, the weights, and one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Seed, app, finish, say
from augtree.cli.options import on_data_and_task
from augtree.cli.progress import Progress
from augtree.cli.search import SPACES, new_folder, numbers_of, parsed, scorer_of, space_of, stoppable
from augtree.errors import ArgumentError, one_of

Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]


def check_forest(
    depth: int,
    scorer: str | None,
    scorer_option: list[str] | None,
    space: str,
    probabilities: str,
    budget: str | None,
    check: float,
    alpha: int,
    eta: float,
    target: str,
    outer: str,
    weighting_option: list[str] | None,
    trees: Path | None,
    method: str,
    workers: int,
    out: Path | None,
    seed: int,
) -> None:
    """Raise for options that no forest can have."""
    from augtree.forests.search import METHODS
    from augtree.runs.store import check_place
    from augtree.search.search import checked_options

    one_of("--space", space, SPACES)
    one_of("--method", method, METHODS)
    options = scorer_of(scorer_for(scorer, method), scorer_option or [])
    checked_options(depth, options, numbers_of("--probabilities", probabilities), seed, budget, check, "greedy")
    weighting_of(alpha, eta, target, outer, weighting_option)
    if trees is not None:
        trees_of(trees)
        asked = {"--method": method != "shared", "--workers": workers > 1, "--budget": budget is not None}
        for name in (name for name, given in asked.items() if given):
            raise ArgumentError(name, "must be left out with --trees: nothing is searched", True)
    if out is not None:
        check_place(out, "forest" if trees is None else "fit")


@app.command()
@on_data_and_task(check_forest)
def forest(
    data: Any,
    task: Any,
    depth: Annotated[int, typer.Option(min=1, max=10, help="Levels of each tree.")] = 3,
    scorer: Annotated[
        str | None, typer.Option(help="cooldown, density or retrain (default: cooldown; paper: density).")
    ] = None,
    scorer_option: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the scorer, such as looks=0.3,0.6 (repeatable).")
    ] = None,
    space: Annotated[
        str, typer.Option(help="auto, images, simclr or graphs; the last three also with +composites.")
    ] = "auto",
    probabilities: Annotated[str, typer.Option(help="The list H.")] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0",
    budget: Annotated[
        str | None,
        typer.Option(help="What to spend: 90s, 10m, 2h, or a number of trainings (default: 2; paper: each group's)."),
    ] = None,
    check: Annotated[
        float, typer.Option(help="paper: length of the trainings against the free policies; 0: none.")
    ] = 0.0,
    workers: Annotated[
        int, typer.Option(min=1, help="Cool-downs side by side (paper: searches); the result is the same.")
    ] = 1,
    method: Annotated[
        str, typer.Option(help="shared (one trunk for all groups), or paper (a density tree for each group alone).")
    ] = "shared",
    alpha: Annotated[int, typer.Option(min=1, help="SGD steps between two updates of the weights.")] = 50,
    eta: Annotated[float, typer.Option(help="How far an update goes; 0 leaves the weights as they begin.")] = 0.1,
    target: Annotated[str, typer.Option(help="What the weights serve: average, or worst (group).")] = "average",
    outer: Annotated[
        str, typer.Option(help="The loss they lower: val (clean data), or train (the paper's).")
    ] = "val",
    weighting_option: Annotated[
        list[str] | None,
        typer.Option("--weigh", help="A further option of the weights, such as solver=series (repeatable)."),
    ] = None,
    trees: Annotated[
        Path | None, typer.Option(help="Learn the weights alone, for the trees of this forest.json or run.")
    ] = None,
    plain: Annotated[
        bool, typer.Option(help="Also train without augmentation and weights, to compare with.")
    ] = False,
    pairs: Annotated[
        bool, typer.Option(help="Also train on each pair of groups, for the similarity of their features.")
    ] = False,
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find out what each group of your data can bear, and train one model on all of them with learned weights."""
    from augtree.forests import fit_forest, search_forest

    weighting = asked_of(weighting_of(alpha, eta, target, outer, weighting_option))
    folder = out or new_folder("forest")
    with stoppable(folder), Progress() as watch:
        if trees is not None:
            result = fit_forest(
                data, task, trees_of(trees), seed=seed, out=folder, plain=plain, pairs=pairs, watch=watch, **weighting
            )
        else:
            result = search_forest(
                data,
                task,
                space_of(space, data),
                depth=depth,
                scorer=scorer_of(scorer_for(scorer, method), scorer_option or []),
                probabilities=numbers_of("--probabilities", probabilities),
                seed=seed,
                out=folder,
                budget=budget,
                check=check,
                workers=workers,
                method=method,
                plain=plain,
                pairs=pairs,
                watch=watch,
                **weighting,
            )
    tell_forest(result)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def scorer_for(name: str | None, method: str) -> str:
    """The scorer that is asked for, or the one that goes with the method."""
    return name or ("density" if method == "paper" else "cooldown")


def asked_of(weighting: Any) -> dict[str, Any]:
    """The options of the weights that are not as they are anyway: the paper's method has others."""
    from augtree.forests import Weighting

    usual = Weighting().spec()
    return {name: value for name, value in weighting.spec().items() if value != usual[name]}


def weighting_of(alpha: int, eta: float, target: str, outer: str, given: list[str] | None) -> Any:
    """The options of the weights."""
    import dataclasses

    from augtree.forests import Weighting

    plain = Weighting(alpha=alpha, eta=eta, target=target, outer=outer)
    known = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)} | {"batch": 1}
    chosen: dict[str, Any] = {}
    for text in given or []:
        key, _, value = text.partition("=")
        if key not in known or not value:
            raise ArgumentError("--weigh", f"must be NAME=VALUE with one of {', '.join(known)}", text)
        chosen[key] = parsed(key, value, known[key], "--weigh")
    return dataclasses.replace(plain, **chosen)


def trees_of(place: Path) -> Any:
    """The trees of a forest's file or run."""
    from augtree.policies import Forest
    from augtree.policies.presets import find

    found = find(str(place))
    if not isinstance(found, Forest):
        raise ArgumentError("--trees", "must be a forest", str(place))
    return {group: member.tree for group, member in found.groups.items()}


def tell_forest(result: Any) -> None:
    """Everything about a forest, and what to do next."""
    say("\n" + result.forest.to_text())
    for group, found in result.trees.items():
        if found.importances:
            most = ", ".join(f"{name} {value}" for name, value in list(found.importances.items())[:3])
            say(f"What mattered in {group}: {most}")
    for note in result.notes:
        say(note)
    say("\n" + result.to_text())
    say(f"\n{result.verdict()}")
    say(f"The weights make {result.effective_size:.0f} samples of the training data (N_w).")
    if result.similarity.get("average_with") is not None:
        before, after = (result.similarity[f"average_{how}"] for how in ("without", "with"))
        say(f"The groups' features are alike by {after:.3f} on average; without the forest by {before:.3f}.")
    for pair in result.similarity.get("pairs", ()):
        apart = f", apart by {pair['size']:.1f} nodes and {pair['degree']:.2f} in degree" if "size" in pair else ""
        say(f"  trained on {' and '.join(pair['groups'])} alone: alike by {pair['similarity']:.3f}{apart}")
    costs = ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in result.cost.items())
    say(f"Cost: {costs}.")
    if not result.deterministic:
        say("deterministic: false (the same run again may differ; --deterministic).")
    say(
        f"\nThe forest: {result.out}/forest.json (forest.svg is a picture), the model: model.safetensors, the way of"
        " the weights: weights.csv, every group: groups.csv."
    )
    say(f"Whether it helps, with several trainings each: augtree compare {result.out}")
