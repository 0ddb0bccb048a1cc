"""`augtree evaluate`: encoders that were trained without labels, by the protocol of a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.baselines.catalogue import is_method
from augtree.cli.app import Json, Out, app, finish, new_folder, say, stoppable
from augtree.cli.logs import Log
from augtree.cli.options import make_task, with_options
from augtree.cli.values import policies_by_name
from augtree.comparison import free_policies
from augtree.errors import ArgumentError
from augtree.evaluation import Evaluation
from augtree.evaluation import evaluate as evaluate_policies
from augtree.evaluation.leakage import AUTO, check_known_labels, with_all_labels
from augtree.evaluation.protocols import USUAL, Protocol, find_protocol
from augtree.policies.presets import find
from augtree.progress import Console
from augtree.runs.store import check_run_folder
from augtree.tasks import Contrastive


def check_evaluate(policies: list[str] | None, protocol: str | None, known_labels: str, out: Path | None) -> None:
    """Raise for options that no evaluation can have."""
    if protocol is not None:
        find_protocol(protocol)
    for policy in policies_by_name(policies or []).values():
        if not is_method(policy):
            find(policy)
    check_known_labels(known_labels)
    check_run_folder(out, "evaluate")


def task_settings(kind: str | None = None, **arguments: Any) -> dict[str, Any]:
    """The task's arguments that are given, checked; the protocol has the others."""
    if kind not in (None, "contrastive"):
        raise ArgumentError("--task", "must be contrastive: its encoder is what is evaluated", kind)
    make_task("contrastive", **arguments)
    return arguments


@app.command()
@with_options(check=check_evaluate, task=task_settings)
def evaluate(
    data: Any,
    task: Any,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policy files, folders of runs, and names of policies and contrastive methods (default: none, and"
            " simclr or graphcl; for a run also its tree)."
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="graphcl (default for graphs) or tree-paper (ten-fold); linear (default for pictures) or svm (the"
            " data's own test set)."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 5,
    known_labels: Annotated[
        str,
        typer.Option(
            help="The samples whose labels a search has used, so that no fold has them: auto (those that the runs"
            " among the policies used; train+val for policy files), none; or, beside what those runs used, train+val"
            " or the folder of a search."
        ),
    ] = AUTO,
    workers: Annotated[int, typer.Option(min=1, help="Classifiers that are fitted at once.")] = 1,
    out: Out = None,
    log: Log = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train encoders without labels, with each policy, and judge their features by the protocol of a paper."""
    folder = out or new_folder("evaluate")
    settings = find_protocol(protocol or USUAL[data.domain])
    if isinstance(task, dict):
        task = task_of(settings, task)
    elif not isinstance(task, Contrastive):
        rule = f"must be a data set, or a contrastive run: its policy is evaluated by `augtree evaluate DATA {run}`"
        raise ArgumentError("data", rule, str(run))
    if run is not None and settings.folds is not None and (labelled := with_all_labels(data)) is not data:
        data = labelled
        say(f"With all labels: {data}")
    chosen = policies_by_name(policies) if policies else dict(free_policies(data, task))
    if run is not None:
        chosen |= policies_by_name([str(run)])
    with stoppable(folder), Console(say) as console:
        result = evaluate_policies(
            data,
            task,
            chosen,
            protocol=settings.name,
            seeds=seeds,
            known_labels=known_labels,
            workers=workers,
            out=folder,
            watch=[console, *(log or ())],
        )
    print_evaluation(result, folder, console)
    finish({"out": str(folder), **json.loads(result.to_json())}, as_json)


def task_of(protocol: Protocol, arguments: dict[str, Any]) -> Any:
    """The protocol's task, with the given arguments."""
    if protocol.folds is not None and arguments.get("samples") == "train":
        rule = f"must be all with the folds of {protocol.name}, whose encoder is trained on all samples"
        raise ArgumentError("--samples", rule, "train")
    return protocol.task(**arguments)


def print_evaluation(result: Evaluation, folder: Path, console: Console) -> None:
    """Print the table and the names of its files."""
    console.show_notes(result.notes)
    say("\n" + result.to_text())
    say(f"\nEvery fold: {folder}/evaluation.csv and evaluation.json")
