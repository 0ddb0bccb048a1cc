"""A search that scores one candidate at a time (density, retrain): Algorithm 1, or all trees of two levels."""

from __future__ import annotations

from collections.abc import Iterator

from augtree.policies.codec import to_json
from augtree.runs import faults
from augtree.runs.events import Finished, Planned
from augtree.search import exhaustive
from augtree.search.budget import describe_training
from augtree.search.free_check import against_free
from augtree.search.grow import Growth, NodeBuilt, grow
from augtree.search.importance import confirmed_gains, importances
from augtree.search.options import SearchOptions
from augtree.search.result import TreeResult, cost_of, history
from augtree.search.scorers.base import ScoringContext
from augtree.tables import counted

AMPLE_VAL_SAMPLES = 200
"""The number of validation samples from which on differences stand out from the noise."""


def search_by_candidates(context: ScoringContext, options: SearchOptions) -> TreeResult:
    """Grow the tree, then compare it with the free policies."""
    run, trainer, watch, scorer = context.run, context.trainer, context.watch, options.scorer_options
    check, most_passes = affordable(context, options)
    context.most_passes, context.most_seconds = most_passes, options.limits.seconds
    notes = [*run.notes, *few_samples(context)]
    announce(context, options, notes)
    if options.method == "exhaustive":
        growth, more = exhaustive.search(scorer.scorer(context))
        notes += more
    else:

        def built(growth: Growth, node: int) -> None:
            faults.point("node.built")
            run.record_fact("tree", to_json(growth.tree))
            watch(NodeBuilt(node, growth.built[-1][1], growth))

        growth = grow(scorer.scorer(context), options.depth, context.seed, built)
    notes += notes_on(context, growth, options)
    run.write_all({"tree.json": to_json(growth.tree).encode()})  # before the check, which takes a while
    free, failures = against_free(context, growth.tree, check) if check else ({}, [])
    result = TreeResult(
        tree=growth.tree,
        importances=importances(growth, confirmed_gains(growth, run), context.seed),
        history=history(run),
        free=free,
        cost=cost_of(run, trainer),
        notes=[*notes, *failures],
        metric=trainer.task.metric,
        deterministic=trainer.device.type == "cpu" or trainer.task.deterministic,
        out=run.folder,
    )
    texts = {"history.csv": result.history_csv(), "tree.svg": result.tree.to_svg(), "result.json": result.to_json()}
    run.write_all({name: text.encode() for name, text in texts.items()})
    run.record_fact("status", "spent" if growth.open else "done")
    watch(Finished(result.verdict(), {"cost": result.cost.training_equivalents}, result.tree))
    return result


def affordable(context: ScoringContext, options: SearchOptions) -> tuple[float, float]:
    """The length of the check's trainings, which take at most half of the budget, and the passes that remain."""
    trainer = context.trainer
    trainings = 1 + len(trainer.task.free[trainer.data.domain])
    budget = options.limits.trainings
    check = min(options.check, budget / (2 * trainings))
    return check, (budget - check * trainings) * trainer.total_steps * trainer.passes_per_step


def announce(context: ScoringContext, options: SearchOptions, notes: list[str]) -> None:
    """Report the plan."""
    candidates, nodes = len(context.candidates), 2**options.depth - 1
    most = options.scorer_options.scorings(options.depth, context.candidates, len(context.probabilities))
    if options.method == "exhaustive":
        most = exhaustive.count(candidates) + 1
    lines = (
        f"Model: {describe_training(context.trainer)}.",
        f"At most {counted(most, 'scoring')}: {counted(candidates, 'candidate')}, up to {counted(nodes, 'node')}.",
    )
    context.watch(Planned(notes=list(notes), lines=lines, scorings=most))


def few_samples(context: ScoringContext) -> Iterator[str]:
    """A note where there are few validation samples."""
    choosing, confirming = len(context.rank_rows), len(context.confirm_rows)
    if choosing + confirming < AMPLE_VAL_SAMPLES:
        yield f"Only {choosing} validation samples to choose by and {confirming} to confirm by: expect noise."


def notes_on(context: ScoringContext, growth: Growth, options: SearchOptions) -> Iterator[str]:
    """Notes on why the tree is no larger, and which candidates failed."""
    if growth.open and options.method == "greedy":
        yield f"The budget was spent with {counted(len(growth.open), 'node')} still open: this is the tree so far."
    yield from (f"Node {node} is empty: {built.why}." for node, built in growth.built if built.why)
    units = context.run.units("node/")
    failed = {unit.value["candidate"]: unit.value["failed"] for unit in units if "failed" in unit.value}
    yield from (f"{name} failed and was never chosen: {reason}" for name, reason in failed.items())
