"""`augtree compare`: policies side by side, and a run at its own cost."""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.baselines.catalogue import is_method, listing
from augtree.baselines.methods import check_known
from augtree.cli.app import AS_JSON, Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.logs import Log
from augtree.cli.options import with_options
from augtree.cli.values import assignments, policies_by_name
from augtree.cli.where import WHERE, executor_options
from augtree.comparison import Comparison, free_policies, rows_of_run
from augtree.comparison import compare as compare_policies
from augtree.comparison.compare import TRAIN_ON
from augtree.comparison.rows import rows_with_weights
from augtree.comparison.significance import significance as significance_of
from augtree.errors import ArgumentError, one_of
from augtree.forests import Weighting
from augtree.policies.presets import find
from augtree.progress import Console
from augtree.runs.store import check_run_folder


def check_compare(
    data: str, policies: list[str] | None, train_on: str, out: Path | None, significance: bool, as_json: bool
) -> None:
    """Raise for options that no comparison can have; with --significance, print its table and stop."""
    if significance:
        found = significance_of([data, *(policies or [])])
        say(found.to_text())
        finish(found.to_dict(), as_json)
        raise typer.Exit
    one_of("train_on", train_on, TRAIN_ON)
    for policy in policies_by_name(policies or []).values():
        check_known(policy)
        if not is_method(policy):
            find(policy)
    check_run_folder(out, "compare")


def print_methods(wanted: bool) -> None:
    """Print what can be compared by name, and stop."""
    if not wanted:
        return
    for entry in listing():
        tasks, data = ", ".join(entry["settings"]), ", ".join(f"{domain}s" for domain in entry["domains"])
        needs = f"; needs {entry['needs']}" if entry["needs"] else ""
        say(f"{entry['name']}: {entry['about']} ({entry['source']})")
        say(f"    {entry['kind']}; {tasks}; {data}; trainings: {entry['costs']}{needs}")
    finish({"methods": listing()}, AS_JSON.get())
    raise typer.Exit


@app.command()
@with_options(WHERE, check=check_compare)
def compare(
    data: Any,
    task: Any,
    where: dict[str, Any],
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policy files and names (--list; default: none, randaugment, trivialaugment; for a run also what it"
            " found, and controls that cost as much)."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="For a forest's run: add rows with other options of the weights, such as alpha=10,200 (repeatable)."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 3,
    train_on: Annotated[
        str, typer.Option(help="What to train on: train, or train+val (needs test samples).")
    ] = "train",
    list_methods: Annotated[  # noqa: ARG001 (its callback prints and stops)
        bool,
        typer.Option("--list", callback=print_methods, help="Say what each name is, needs and costs, and exit."),
    ] = False,
    significance: Annotated[  # noqa: ARG001 (`check_compare` prints and stops)
        bool,
        typer.Option(
            "--significance",
            help="Test finished comparisons of several data sets (their folders) by Wilcoxon, and exit.",
        ),
    ] = False,
    out: Out = None,
    log: Log = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train with each policy and compare the results; for a run, also against controls of the same cost."""
    folder = out or new_folder("compare")
    chosen = policies_by_name(policies) if policies else None
    if chosen and len(chosen) == 1 and "none" not in chosen:
        chosen = {"none": "none", **chosen}  # a policy by itself has nothing to be compared with
    run_rows = {} if run is None else rows_of_run(run, data)
    for text in vary or ():
        if run is None:
            raise ArgumentError("--vary", "must be for the run of a forest, in the place of the data", text)
        run_rows |= varied(run, text)
    if run_rows:
        chosen = {**(chosen or free_policies(data, task)), **run_rows}
    with stoppable(folder), executor_options(), Console(say) as console:
        how: dict[str, Any] = {"seeds": seeds, "train_on": train_on, **where}
        result = compare_policies(data, task, chosen, out=folder, watch=[console, *(log or ())], **how)
    print_comparison(result, folder, console)
    finish({"out": str(folder), **json.loads(result.to_json())}, as_json)


def varied(run: Path, text: str) -> dict[str, Any]:
    """Rows for a text NAME=VALUE,VALUE."""
    option, _, texts = text.partition("=")
    hints = typing.get_type_hints(Weighting)
    values = [assignments("--vary", [f"{option}={value}"], hints)[option] for value in texts.split(",")]
    try:
        return rows_with_weights(run, option, values)
    except ArgumentError as error:
        raise ArgumentError(f"--vary {error.field}", *error.args[1:]) from error


def print_comparison(result: Comparison, folder: Path, console: Console) -> None:
    """Print the table and the verdict."""
    console.show_notes(result.notes)
    say("\n" + result.to_text())
    say(f"\n{result.verdict()}")
    say(f"Every training: {folder}/comparison.csv and comparison.json")
