"""`augtree search`: a policy and a finished model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.logs import Log
from augtree.cli.options import search_group, with_options
from augtree.cli.values import SPACES, space_by_name
from augtree.cli.where import WHERE, executor_options
from augtree.errors import one_of
from augtree.progress import Console
from augtree.runs.store import check_run_folder
from augtree.search import SearchOptions, TreeResult, search_tree

SpaceName = Annotated[str, typer.Option(help="auto, images, simclr or graphs; the last three also with +composites.")]


def check_search(space: str, out: Path | None, scorer: str | None, **values: Any) -> None:
    """Raise for options that no search can have."""
    one_of("space", space, SPACES)
    with executor_options():
        SearchOptions(scorer=scorer or "cooldown", **WHERE.value(values)).check_executor()
    check_run_folder(out, "search")


@app.command()
@with_options(search_group(), WHERE, check=check_search)
def search(
    data: Any,
    task: Any,
    options: dict[str, Any],
    where: dict[str, Any],
    space: SpaceName = "auto",
    out: Out = None,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Search for an augmentation policy while training a model with it."""
    folder = out or new_folder("search")
    with stoppable(folder), executor_options(), Console(say) as console:
        result = search_tree(
            data, task, space_by_name(space, data), out=folder, watch=[console, *(log or ())], **options, **where
        )
    print_tree(result, console)
    finish({"out": str(result.out), **json.loads(result.to_json())}, as_json)


def print_tree(result: TreeResult, console: Console) -> None:
    """Print the result of a search and the next steps."""
    console.show_notes(result.notes)
    empty = "The tree is empty: nothing improved on leaving the data alone."
    say("\n" + (result.tree.to_text() if len(result.tree) else empty))
    if result.importances:
        say("\nImportance (how much the validation loss falls, on data that did not choose the node):")
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
        say(f"The finished model: {result.out}/model.safetensors; its training options: {result.out}/training.json")
        say(f"Also there: mixture.json and single.json; {result.out}/history.csv has every cool-down.")
    else:
        say(f"Every scored candidate: {result.out}/history.csv")
    say(f"Compare it on the test data, several seeds each: augtree compare {result.out}")
