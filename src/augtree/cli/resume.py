"""`augtree resume`: continue a run that was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import torch
import typer

from augtree.cli.app import Json, app, finish, say, stoppable
from augtree.cli.compare import print_comparison
from augtree.cli.evaluate import print_evaluation
from augtree.cli.forest import print_forest
from augtree.cli.logs import Log
from augtree.cli.search import print_tree
from augtree.cli.train import print_trained
from augtree.cli.where import WHERE, Address, GpusPerTask, On, Workers, executor_options
from augtree.comparison import Comparison, Trained
from augtree.comparison import resume as resume_run
from augtree.evaluation import Evaluation
from augtree.progress import Console
from augtree.runs.store import Run
from augtree.search import TreeResult
from augtree.search.options import parse_budget


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="The folder of a run of any kind.")],
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads (default: those of the run so far).")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Another budget, for a search by density or retrain that its budget ended.")
    ] = None,
    on: On = None,
    address: Address = None,
    gpus_per_task: GpusPerTask = None,
    workers: Workers = None,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Resume a run that was stopped; the result is the same as without the interruption."""
    parse_budget(budget)
    chosen = WHERE.value({"on": on, "address": address, "gpus_per_task": gpus_per_task, "workers": workers})
    torch.set_num_threads(threads or threads_of(run))
    with stoppable(run), executor_options(), Console(say) as console:
        result = resume_run(run, budget=budget, watch=[console, *(log or ())], **chosen)
    if isinstance(result, Trained):
        print_trained(result, run)
        finish({"out": str(run), "metrics": result.metrics}, as_json)
        return
    if isinstance(result, Comparison):
        print_comparison(result, run, console)
    elif isinstance(result, Evaluation):
        print_evaluation(result, run, console)
    elif isinstance(result, TreeResult):
        print_tree(result, console)
    else:
        print_forest(result, console)
    finish({"out": str(run), **json.loads(result.to_json())}, as_json)


def threads_of(folder: Path) -> int:
    """The CPU threads that a run was begun with."""
    with Run.open(folder, write=False) as run:
        return int(run.fact("surroundings", {}).get("threads", 1))
