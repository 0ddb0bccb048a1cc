"""`augtree forest`: a policy for each group, their weights, and one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.console import Console
from augtree.cli.fields import parameter
from augtree.cli.options import SEARCH, WEIGHTING, Part, search_part, takes
from augtree.cli.search import SpaceName
from augtree.cli.values import SPACES, space_by_name
from augtree.errors import ArgumentError, one_of
from augtree.forests import ForestResult, fit_forest, search_forest
from augtree.forests.search import METHODS, SCORERS
from augtree.policies import Forest
from augtree.policies.presets import find
from augtree.policies.tree import Tree
from augtree.runs.store import check_place

TREE_SEARCH = search_part(skip=("method",), defaults={"check": 0.0, "scorer": "cooldown; paper: density"})
METHOD = parameter(
    "method",
    str | None,
    "shared (one trunk for all groups), or paper (a density tree for each group alone) (default: shared).",
    SEARCH,
)


def make_options(method: str | None = None, **given: Any) -> dict[str, Any]:
    """The method, and the options of its search."""
    method = one_of("method", method or "shared", METHODS)
    if given["scorer_option"]:
        given["scorer"] = given["scorer"] or SCORERS[method]
    return {**TREE_SEARCH.make(**given), "method": method}


OPTIONS = Part("options", (*TREE_SEARCH.parameters, METHOD), make_options)


def check_forest(
    space: str, trees: Path | None, method: str | None, workers: int | None, budget: str | None, out: Path | None
) -> None:
    """Raise for options that no forest can have."""
    one_of("space", space, SPACES)
    if trees is not None:
        trees_of(trees)
        for name, value in {"method": method, "workers": workers, "budget": budget}.items():
            if value is not None:
                raise ArgumentError(name, "must be left out with --trees: nothing is searched", value)
    check_place(out, "forest" if trees is None else "fit")


@app.command()
@takes(OPTIONS, WEIGHTING, check=check_forest)
def forest(
    data: Any,
    task: Any,
    options: dict[str, Any],
    weighting: dict[str, Any],
    space: SpaceName = "auto",
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
    as_json: Json = False,
) -> None:
    """Find out what each group of your data can bear, and train one model on all of them with learned weights."""
    folder = out or new_folder("forest")
    with stoppable(folder), Console() as watch:
        more: dict[str, Any] = {"out": folder, "plain": plain, "pairs": pairs, "watch": watch, **weighting}
        if trees is not None:
            result = fit_forest(data, task, trees_of(trees), seed=options.get("seed", 0), **more)
        else:
            result = search_forest(data, task, space_by_name(space, data), **options, **more)
    print_forest(result)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def trees_of(place: Path) -> dict[str, Tree]:
    """The trees of a forest's file or run."""
    found = find(str(place))
    if not isinstance(found, Forest):
        raise ArgumentError("--trees", "must be a forest", str(place))
    return {group: member.tree for group, member in found.groups.items()}


def print_forest(result: ForestResult) -> None:
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
        f"\nThe forest: {result.out}/forest.json (forest.svg is a picture), the model: model.safetensors, the weights"
        " over time: weights.csv, every group: groups.csv."
    )
    say(f"Whether it helps, with several trainings each: augtree compare {result.out}")
