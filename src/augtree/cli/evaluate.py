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


def check_evaluate(policies: list[str] | None, protocol: str | None, seen: str, out: Path | None) -> None:
    """Raise for options that no evaluation can have."""
    from augtree.evaluation.protocols import find_protocol
    from augtree.policies.presets import find
    from augtree.runs.store import check_place

    if protocol is not None:
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
        str | None,
        typer.Option(
            help="graphcl (default for graphs) or tree-paper (ten-fold); linear (default for pictures) or svm (the"
            " data's own test set)."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 5,
    seen: Annotated[
        str,
        typer.Option(
            help="Whose labels a search has seen, so that no fold has them: auto (what the runs among the policies"
            " saw; train+val for policy files), none; or, beside what those runs saw, train+val or the folder of a"
            " search."
        ),
    ] = SEEN,
    workers: Annotated[int, typer.Option(min=1, help="Classifiers that are fitted at once.")] = 1,
    out: Out = None,
    as_json: Json = False,
    run: Path | None = None,
) -> None:
    """Train encoders without labels, with each policy, and judge their features by the protocol of a paper."""
    from augtree.comparison import free_policies
    from augtree.evaluation import evaluate as run_evaluation
    from augtree.evaluation.protocols import USUAL, find_protocol

    folder = out or new_folder("evaluate")
    how = find_protocol(protocol or USUAL[data.domain])
    if isinstance(task, dict):
        task = task_of(how, task)
    if run is not None and how.folds is not None:
        data = with_all_labels(data)
    chosen = named(policies) if policies else dict(free_policies(data, task))
    if run is not None:
        chosen |= named([str(run)])
    rows, notes = seen_of(seen, chosen, data, how)
    with stoppable(folder), Progress() as watch:
        result = run_evaluation(
            data,
            task,
            chosen,
            protocol=how.name,
            seeds=seeds,
            seen=rows,
            notes=notes,
            workers=workers,
            out=folder,
            watch=watch,
        )
    tell_evaluation(result, folder, as_json)


def task_of(protocol: Any, asked: dict[str, Any]) -> Any:
    """The protocol's task, with what is asked of it."""
    if protocol.folds is not None and asked.get("samples") == "train":
        rule = f"must be all with the folds of {protocol.name}, whose encoder is trained on all samples"
        raise ArgumentError("--samples", rule, "train")
    return protocol.task(**asked)


def with_all_labels(data: Any) -> Any:
    """The data of a run that had the labels of some samples only, with those of all: for folds of the others.

    Groups are not merged: others would be too small. A forest knows which of them its own are made of.
    """
    from augtree.data import load

    if (data.source or {}).get("labels") is None:
        return data
    found = load(**{name: value for name, value in data.source.items() if name not in ("labels", "merge")})
    say(f"With all labels: {found}")
    return found


def seen_of(seen: str, policies: dict[str, Any], data: Any, protocol: Any) -> tuple[Any, list[str]]:
    """The samples whose labels were seen, where that is said, and what should be known of it."""
    import numpy as np

    from augtree.evaluation.leakage import judged_on_seen, seen_in_run, seen_in_runs

    if seen == SEEN:
        return None, []
    if seen == "none":
        return [], judged_on_seen(policies.values(), protocol, data)
    known = [data.indices("train"), data.indices("val")] if seen == "train+val" else [seen_in_run(Path(seen), data)]
    return np.concatenate([*known, seen_in_runs(policies.values(), data)]), []


def tell_evaluation(result: Any, folder: Path, as_json: bool) -> None:
    """The table and where it lies."""
    for note in result.notes:
        say(note)
    say("\n" + result.to_text())
    say(f"\nEvery fold: {folder}/evaluation.csv and evaluation.json")
    finish({"out": str(folder), **json.loads(result.to_json())}, as_json)
