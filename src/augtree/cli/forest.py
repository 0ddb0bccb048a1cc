"""`augtree forest`: a policy for each group, their weights, and one model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.fields import docs_of, option_name, parameter
from augtree.cli.logs import Log
from augtree.cli.options import SEARCH, WEIGHTING, OptionGroup, search_group, with_options
from augtree.cli.search import SpaceName
from augtree.cli.values import SPACES, space_by_name
from augtree.cli.where import WHERE, executor_options
from augtree.errors import ArgumentError, one_of, printable
from augtree.forests import ForestResult, fit_forest, search_forest
from augtree.forests.search import DEFAULT_SCORERS, FOREST_METHODS
from augtree.forests.verdict import verdict_lines
from augtree.policies import Forest
from augtree.policies.presets import find
from augtree.policies.tree import Tree
from augtree.progress import Console
from augtree.runs.store import check_run_folder
from augtree.search.options import SearchOptions
from augtree.tables import duration

TEXTS = {name: text.replace("(density, retrain)", "(method paper)") for name, text in docs_of(SearchOptions).items()}
TREE_SEARCH = search_group(
    skip=("method",), texts=TEXTS, default_texts={"check": "0", "scorer": "cooldown; paper: density"}
)
METHOD = parameter(
    "method",
    str | None,
    "shared (one trunk for all groups) or paper (a tree for each group alone) (default: shared).",
    SEARCH,
)


def make_options(method: str | None = None, **values: Any) -> dict[str, Any]:
    """The method, and the options of its search."""
    method = one_of("method", method or "shared", FOREST_METHODS)
    if values["scorer_option"]:
        values["scorer"] = values["scorer"] or DEFAULT_SCORERS[method]
    return {**TREE_SEARCH.build(**values), "method": method}


OPTIONS = OptionGroup("options", (METHOD, *TREE_SEARCH.parameters), make_options)


def check_forest(space: str, trees: Path | None, out: Path | None, **values: Any) -> None:
    """Raise for options that no forest can have."""
    one_of("space", space, SPACES)
    if trees is not None:
        trees_of(trees)
        searched = {option_name(p.name): values[p.name] for p in OPTIONS.parameters if p.name != "seed"}
        searched |= {option_name(p.name): values[p.name] for p in WHERE.parameters}
        searched |= {"--set": searched.pop("--scorer-option") or None, "--space": None if space == "auto" else space}
        for name, value in searched.items():
            if value is not None:
                raise ArgumentError(name, "must be left out with --trees: nothing is searched", value)
    check_run_folder(out, "forest" if trees is None else "fit")


@app.command()
@with_options(OPTIONS, WEIGHTING, WHERE, check=check_forest)
def forest(
    data: Any,
    task: Any,
    options: dict[str, Any],
    weighting: dict[str, Any],
    where: dict[str, Any],
    space: SpaceName = "auto",
    trees: Annotated[
        Path | None, typer.Option(help="Only learn the weights, for the trees of this forest.json or run.")
    ] = None,
    plain: Annotated[
        bool, typer.Option(help="Also train without augmentation and weights, to compare with.")
    ] = False,
    pairs: Annotated[
        bool, typer.Option(help="Also train on each pair of groups, for the similarity of their features.")
    ] = False,
    out: Out = None,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Search a policy for each group and train one model on all groups with learned weights."""
    folder = out or new_folder("forest")
    with stoppable(folder), executor_options(), Console(say) as console:
        more: dict[str, Any] = {
            "out": folder,
            "plain": plain,
            "pairs": pairs,
            "watch": [console, *(log or ())],
            **weighting,
        }
        if trees is not None:
            result = fit_forest(data, task, trees_of(trees), seed=options.get("seed", 0), **more)
        else:
            result = search_forest(data, task, space_by_name(space, data), **options, **where, **more)
    print_forest(result, console)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def trees_of(place: Path) -> dict[str, Tree]:
    """The trees of a forest's file or run."""
    found = find(str(place))
    if not isinstance(found, Forest):
        raise ArgumentError("--trees", "must be a forest", str(place))
    return {group: member.tree for group, member in found.groups.items()}


def cost_in_words(cost: Mapping[str, float]) -> str:
    """What the search and the weighted training have cost, where there were any.

    >>> cost_in_words({"search_equivalents": 2.123, "search_seconds": 41.2})
    'search 2.12 training equivalents, 41 s'
    """
    parts = [part for part in ("search", "fit") if f"{part}_equivalents" in cost]
    return "; ".join(
        f"{part} {cost[f'{part}_equivalents']:.2f} training equivalents, {duration(cost[f'{part}_seconds'])}"
        for part in parts
    )


def print_forest(result: ForestResult, console: Console) -> None:
    """Print a forest and the next steps."""
    say("\n" + result.forest.to_text())
    for group, found in result.trees.items():
        if found.importances:
            most = ", ".join(f"{name} {value}" for name, value in list(found.importances.items())[:3])
            say(f"Importance in {printable(group)}: {most}")
    console.show_notes(result.notes)
    say("\n" + result.to_text())
    say("\n" + "\n".join(verdict_lines(result)))
    say(f"Weighted so, the training data count as {result.effective_size:.0f} samples (effective sample size, N_w).")
    if result.similarity.get("average_with") is not None:
        before, after = (result.similarity[f"average_{model}"] for model in ("without", "with"))
        say(f"Average similarity of the groups' features: {after:.3f}; without the forest {before:.3f}.")
    for pair in result.similarity.get("pairs", ()):
        size = f", differing by {pair['size']:.1f} nodes and {pair['degree']:.2f} in degree" if "size" in pair else ""
        groups = printable(" and ".join(pair["groups"]))
        say(f"  trained on {groups} alone: similarity {pair['similarity']:.3f}{size}")
    say(f"Cost: {cost_in_words(result.cost)}.")
    if not result.deterministic:
        say("deterministic: false (the same run again may differ; --deterministic).")
    say(
        f"\nThe forest: {result.out}/forest.json (forest.svg is a picture), the model: model.safetensors, the weights"
        " over time: weights.csv, every group: groups.csv."
    )
    say(f"Compare it on the test data, several seeds each: augtree compare {result.out}")
