"""`augtree search`: what the data can bear, a policy and a finished model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.console import Console
from augtree.cli.options import search_part, takes
from augtree.cli.values import SPACES, space_by_name
from augtree.errors import one_of
from augtree.runs.store import check_place
from augtree.search import TreeResult, search_tree

SpaceName = Annotated[str, typer.Option(help="auto, images, simclr or graphs; the last three also with +composites.")]


def check_search(space: str, out: Path | None) -> None:
    """Raise for options that no search can have."""
    one_of("space", space, SPACES)
    check_place(out, "search")


@app.command()
@takes(search_part(), check=check_search)
def search(
    data: Any,
    task: Any,
    options: dict[str, Any],
    space: SpaceName = "auto",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Find out what your data can bear, and end with a policy and a finished model."""
    folder = out or new_folder("search")
    with stoppable(folder), Console() as watch:
        result = search_tree(data, task, space_by_name(space, data), out=folder, watch=watch, **options)
    print_tree(result)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def print_tree(result: TreeResult) -> None:
    """Everything that a search found, and what to do next."""
    for note in result.notes:
        say(note)
    empty = "The tree is empty: nothing improved on leaving the data alone."
    say("\n" + (result.tree.to_text() if len(result.tree) else empty))
    if result.importances:
        say("\nWhat mattered (fall of the validation loss where it was confirmed):")
        for name, importance in result.importances.items():
            say(f"  {name}: {importance}")
    if result.free:
        say("\nCompared with the free policies (on the validation half that confirmed the nodes):")
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
