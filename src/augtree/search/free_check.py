"""The comparison of a tree with the free policies: a training from the start with each."""

from __future__ import annotations

from typing import Any

import numpy as np

from augtree.data.presets import find_for
from augtree.policies import Tree
from augtree.runs.events import Working
from augtree.runs.failures import attempt
from augtree.search.result import FreePolicy
from augtree.search.scorers.base import Losses, ScoringContext, mean, not_finite, se
from augtree.training.state import seed_of
from augtree.transforms.base import Policy


def against_free(context: ScoringContext, tree: Tree, length: float) -> tuple[dict[str, FreePolicy], list[str]]:
    """Train with the tree and with each free policy; the results, and a note for each failure.

    They are judged on the half of the validation samples that confirmed the nodes. `length` is that of each training,
    as a share of a whole one.
    """
    trainer, rows = context.trainer, context.confirm_rows
    policies: dict[str, Policy] = {"tree": tree} | {
        name: find_for(trainer.data, name) for name in trainer.task.free[trainer.data.domain]
    }
    steps = max(1, round(length * trainer.total_steps))
    found: dict[str, FreePolicy] = {}
    losses: dict[str, Losses] = {}
    notes: list[str] = []
    for name, policy in policies.items():
        context.watch(Working(f"training with {name}"))

        def train(policy: Policy = policy) -> tuple[Losses, float]:
            state = trainer.fit(policy, seed_of(context.seed, "free"), steps)
            return trainer.calibrated_losses(state, rows), trainer.measures(state, rows)[trainer.task.metric]

        def work() -> tuple[dict[str, Any], Losses | None]:
            trained, failed = attempt(train)
            if trained is None or (failed := not_finite(trained[0])):
                return {"failed": failed}, None
            return {"loss": mean(trained[0]), "metric": trained[1]}, trained[0]

        key = f"free/{steps}/{name}/{tree!r}" if name == "tree" else f"free/{steps}/{name}"
        unit = context.run.unit(key, work)
        if unit.losses is None:
            if name == "tree":
                return {}, [f"The tree could not be compared with the free policies: {unit.value['failed']}"]
            notes.append(f"{name} could not be compared with the tree: {unit.value['failed']}")
            continue
        losses[name] = np.asarray(unit.losses)
        behind = losses[name] - losses["tree"]
        found[name] = FreePolicy(unit.value["loss"], se(losses[name]), unit.value["metric"], mean(behind), se(behind))
    return found, notes
