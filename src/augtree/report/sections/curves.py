"""The training curves: losses on augmented training samples, and on validation samples where they were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.forests.shared_trunk import ONE_FOR_ALL
from augtree.report.figures import Line, Mark, legend, lines
from augtree.report.gather import Record
from augtree.report.markup import tag
from augtree.report.sections import Section
from augtree.report.sections.groups import history_of

INTRO = (
    "The loss on training samples, augmented as they were, step by step. Points are losses on validation"
    " samples, which are not augmented, so they may well lie below; whiskers are their standard errors."
)
MOST_POINTS = 60
PEAK = 3.0
"""Losses that are so much higher than most are cut off."""
Points = list[tuple[float, float]]


def section(record: Record) -> Section | None:
    """The curve of the training, and what branched off."""
    curves = [
        Line(name, points, i, dotted=i > 0)
        for i, (name, points) in enumerate(curves_of(record).items())
        if len(points) > 1
    ]
    marks = [*marks_of(record), *outer_marks(record)]
    if not curves:
        return None
    last = curves[0].points[-1]
    label = f"Training loss: {curves[0].points[0][1]:.3f} at the start, {last[1]:.3f} at step {last[0]:,.0f}"
    kinds = {kind: words for kind, words in LEGEND.items() if any(mark.state == kind for mark in marks)}
    top = top_of(curves)
    cut = None if top is None else tag("p", f"Losses above {top:.3g} are cut off.", class_="faint")
    drawn = lines(curves, marks, ("training step", "loss"), label, None if top is None else (0.0, top))
    figure = tag("figure", drawn, legend(kinds) if kinds else None, cut)
    return Section("curves", "How the model trained", INTRO, figure)


def top_of(curves: Sequence[Line]) -> float | None:
    """Where a few peaks would press all else down, the height to cut them at."""
    losses = sorted(loss for curve in curves for _, loss in curve.points)
    usual = losses[int(0.85 * (len(losses) - 1))]
    return 1.6 * usual if losses[-1] > PEAK * usual else None


def points_of(value: Mapping[str, Any]) -> Points:
    """The curve of one part of a training."""
    return [(float(step), float(loss)) for step, loss in value.get("curve", ())]


def curves_of(record: Record) -> dict[str, Points]:
    """The trunk with its weighted end or the training, and each last cool-down."""
    legs = record.starting("leg/")
    branches = {"cool-down": legs[-1]} if record.starting("trunk/") and len(legs) > 1 else {}
    main = [*record.starting("trunk/"), *record.starting("train/"), *legs[: len(legs) - len(branches)]]
    points = thinned(sorted(point for unit in main for point in points_of(unit.value)))
    if record.kind == "compare" or not points:
        return {}
    cools = [unit for unit in record.starting("cool/") if unit.value.get("curve")]
    branches |= {name_of(unit.value, i, len(cools) + len(branches)): unit for i, unit in enumerate(cools, 1)}
    found = {"training" if record.kind in ("train", "fit") else "trunk": points}
    return found | {name: [*points[-1:], *points_of(unit.value)] for name, unit in branches.items()}


def thinned(points: Points) -> Points:
    """Means of neighbouring points, so that there are not too many.

    >>> len(thinned([(float(i), 1.0) for i in range(200)])), thinned([(1.0, 2.0)])
    (50, [(1.0, 2.0)])
    """
    size = max(1, -(-len(points) // MOST_POINTS))
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [(part[-1][0], sum(loss for _, loss in part) / len(part)) for part in parts]


def name_of(value: Mapping[str, Any], number: int, count: int) -> str:
    """The name of the curve of a last cool-down."""
    if value["candidate"] == ONE_FOR_ALL:
        return ONE_FOR_ALL
    return f"cool-down {number}" if count > 1 else "cool-down"


def marks_of(record: Record) -> list[Mark]:
    """The validation losses of tests, looks and last cool-downs."""
    steps = record.training_steps
    found = []
    for unit in (unit for unit in record.units if unit.key.startswith(("test/", "look/", "cool/"))):
        value = unit.value
        if "at" not in value or "loss" not in value or "predicted" in value or steps is None:
            continue
        where = unit.key.partition("/")[0]
        x = value["at"] * steps + value["steps"]
        label = f"{NAMES[where]}: validation loss {value['loss']:.4f} ± {value['loss_se']:.4f}"
        found.append(Mark(label, x, value["loss"], value["loss_se"], where))
    return found


LEGEND = {
    "test": "validation loss at the test of flips and turns",
    "look": "validation losses of a look",
    "cool": "validation loss after a last cool-down",
    "outer": "mean validation loss at an update of the weights",
}
NAMES = {"test": "test of flips and turns", "look": "a look", "cool": "a last cool-down"}


def outer_marks(record: Record) -> Sequence[Mark]:
    """The mean of the groups' validation losses at each update of the weights."""
    rows = [row for row in history_of(record) if row.get("outer")]
    found = []
    for row in rows:
        losses = list(row["outer"].values())
        mean = sum(losses) / len(losses)
        found.append(Mark(f"update of the weights: mean validation loss {mean:.4f}", row["step"], mean, 0.0, "outer"))
    return found
