"""The training curves: the loss on augmented training samples, and on validation samples wherever that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.report.figures import Line, Mark, lines
from augtree.report.gather import Record
from augtree.report.markup import tag
from augtree.report.sections import Section
from augtree.report.sections.groups import history_of

INTRO = (
    "The loss on training samples, augmented as they were, step by step. Points are losses on validation samples, which are not"
    " augmented, so they may well lie below; whiskers are their standard errors."
)
Points = list[tuple[float, float]]


def section(record: Record) -> Section | None:
    """The curve of the training, and what branched off."""
    curves = [Line(name, points, i, dotted=i > 0) for i, (name, points) in enumerate(curves_of(record).items()) if len(points) > 1]
    marks = [*marks_of(record), *outer_marks(record)]
    if not curves:
        return None
    last = curves[0].points[-1]
    label = f"Training loss: {curves[0].points[0][1]:.3f} at the start, {last[1]:.3f} at step {last[0]:,.0f}"
    figure = tag("figure", lines(curves, marks, ("training step", "loss"), label))
    return Section("curves", "How the model trained", INTRO, figure)


def points_of(value: Mapping[str, Any]) -> Points:
    """The curve of one part of a training."""
    return [(float(step), float(loss)) for step, loss in value.get("curve", ())]


def curves_of(record: Record) -> dict[str, Points]:
    """The trunk with its weighted end or the training, and each last cool-down."""
    main: Points = []
    for prefix in ("trunk/", "train/", "leg/"):
        main += [point for unit in record.starting(prefix) for point in points_of(unit.value)]
    name = "training" if record.kind in ("train", "fit") else "trunk"
    if record.kind == "compare" or not main:
        return {}
    found = {name: sorted(main)}
    cools = [unit for unit in record.starting("cool/") if unit.value.get("curve")]
    for i, unit in enumerate(cools):
        found[f"cool-down {i + 1}" if len(cools) > 1 else "cool-down"] = [*found[name][-1:], *points_of(unit.value)] if record.kind == "search" else points_of(unit.value)
    return found


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
