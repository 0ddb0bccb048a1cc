"""`augtree evaluate`: encoders that were trained without labels, by the protocol of a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, app, finish, say
from augtree.cli.options import on_data_and_task, task
from augtree.cli.progress import Progress
from augtree.cli.search import named, new_folder, stoppable
from augtree.errors import ArgumentError

SEEN = "auto"
Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]


def check_evaluate(policies: list[str] | None, protocol: str, seen: str, out: Path | None) -> None:
    """Raise for options that no evaluation can have."""
    from augtree.policies.named import find
    from augtree.runs.store import check_place
    from augtree.tasks.evaluation import find_protocol

    find_protocol(protocol)
    for policy in named(policies or []).values():
        find(policy)
    if seen not in (SEEN, "none", "train+val") and not (Path(seen) / "spec.json").is_file():
        raise ArgumentError("--seen", "must be auto, none, train+val or the folder of a search", seen)
    if out is not None:
        check_place(out, "evaluate")


def asked(kind: str | None = None, **given: Any) -> dict[str, Any]:
    """What is asked of the task; the protocol has the rest."""
    if kind not in (None, "contrastive"):
        raise ArgumentError("--task", "must be contrastive: its encoder is what is evaluated", kind)
    task("contrastive", **given)
    return given


@app.command()
@on_data_and_task(check_evaluate, asked)
def evaluate(
    data: Any,
    task: Any,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policy files, folders of runs, and names (default: none, and simclr or graphcl; for a run also its"
            " tree)."
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(help="graphcl or tree-paper for graphs (ten-fold); linear or svm (the data's own test set)."),
    ] = "graphcl",
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 5,
    seen: Annotated[
        str,
        typer.Option(
            help="Whose labels a search has seen, so that no fold has them: auto (what the runs among the policies"
            " saw; train+val for policy files), none, train+val, or the folder of a search."
        ),
    ] = SEEN,
    workers: Annotated[int, typer.Option(min=1, help="Processes that fit classifiers.")] = 1,
    out: Out = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train encoders without labels, with each policy, and judge their features by the protocol of a paper."""
    from augtree.comparison import evaluate as run_evaluation
    from augtree.comparison import free_policies
    from augtree.tasks.evaluation import find_protocol

    folder = out or new_folder("evaluate")
    if isinstance(task, dict):
        task = find_protocol(protocol).task(**task)
    chosen = named(policies) if policies else dict(free_policies(data, task))
    if run is not None:
        chosen |= named([str(run)])
    with stoppable(folder), Progress() as watch:
        result = run_evaluation(
            data,
            task,
            chosen,
            protocol=protocol,
            seeds=seeds,
            seen=rows_of(seen, data),
            workers=workers,
            out=folder,
            watch=watch,
        )
    tell_evaluation(result, folder, as_json)


def rows_of(seen: str, data: Any) -> Any:
    """The samples whose labels were seen, where that is said."""
    import numpy as np

    from augtree.comparison.evaluation import seen_in_run

    if seen == SEEN:
        return None
    if seen == "none":
        return []
    if seen == "train+val":
        return np.concatenate([data.indices("train"), data.indices("val")])
    return seen_in_run(Path(seen), data)


def tell_evaluation(result: Any, folder: Path, as_json: bool) -> None:
    """The table and where it lies."""
    for note in result.notes:
        say(note)
    say("\n" + result.to_text())
    say(f"\nEvery fold: {folder}/evaluation.csv and evaluation.json")
    finish({"out": str(folder), **json.loads(result.to_json())}, as_json)
