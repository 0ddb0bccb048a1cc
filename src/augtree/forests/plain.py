"""Models without augmentation and weights, to compare a forest's groups and features with."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from augtree.forests.analysis import average, between, disparity, features_by_group, similarity
from augtree.forests.result import measures_by_group
from augtree.runs.events import Watch, Working
from augtree.runs.store import Run
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import Identity

Measures = dict[str, Any]


def compare_with_plain(
    trainer: Trainer, run: Run, theta: State, seed: int, watch: Watch, *, plain: bool, pairs: bool
) -> tuple[Measures, dict[str, Any]]:
    """The groups' measures in a plain model, and the similarity of their features; empty where not wanted."""
    measures: Measures = {}
    alike: dict[str, Any] = {}
    if plain:
        watch(Working("training without augmentation and weights"))
        measures, alike = plain_model(trainer, run, theta, seed)
    if pairs:
        alike["pairs"] = pairs_of_groups(trainer, run, seed, watch)
    return measures, alike


def plain_model(trainer: Trainer, run: Run, theta: State, seed: int) -> tuple[Measures, dict[str, Any]]:
    """How the groups do without augmentation and weights, and how similar their features are in both models."""
    split = "test" if len(trainer.data.indices("test")) else "val"

    def work() -> tuple[dict[str, Any], None]:
        state = trainer.fit(Identity(), seed)
        alike = between(features_by_group(trainer, state, split))
        return {"measures": measures_by_group(trainer, state), "alike": alike}, None

    before = run.unit("plain", work).value
    after = run.unit("features", lambda: ({"alike": between(features_by_group(trainer, theta, split))}, None)).value
    alike = {
        "split": split,
        "without": before["alike"],
        "with": after["alike"],
        "average_without": average(before["alike"]),
        "average_with": average(after["alike"]),
        "disparity": disparity(trainer.data),
    }
    return before["measures"], alike


def pairs_of_groups(trainer: Trainer, run: Run, seed: int, watch: Watch) -> list[dict[str, Any]]:
    """A plain model on each pair of groups alone: the similarity of their features, beside how the groups differ."""
    data, task = trainer.data, trainer.task
    disparities = {tuple(row["groups"]): row for row in disparity(data)}
    rows = []
    for (i, one), (j, other) in combinations(enumerate(data.group_names), 2):
        watch(Working(f"training on {one} and {other}"))

        def work(one: str = one, other: str = other) -> tuple[dict[str, Any], None]:
            both = data.take(np.sort(np.concatenate([data.indices(None, group) for group in (one, other)])))
            mine = task.prepare(both)
            splits = [split for split in ("test", "val") if all(len(both.indices(split, g)) for g in (one, other))]
            features = features_by_group(mine, mine.fit(Identity(), seed), [*splits, "train"][0])
            return {"similarity": similarity(features[one], features[other])}, None

        value = run.unit(f"pair/{i}/{j}", work).value
        rows.append({"groups": [one, other], **value, **disparities.get((one, other), {})})
    return rows
