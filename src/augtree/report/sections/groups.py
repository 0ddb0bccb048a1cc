"""The groups: what the model reaches in each, and their weights over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.report.figures import Line, lines
from augtree.report.gather import Record
from augtree.report.markup import Html, tag
from augtree.report.sections import Section
from augtree.report.sections.verdict import SPLITS, shown
from augtree.search.play import factor_in_words

TABLE = "What the finished model reaches in each group, and how much each group counts."
WEIGHTS = (
    "How much each group counts in training. The weights move towards the groups whose training lowers the loss"
    " on validation data; they sum to 1."
)


def section(record: Record) -> Section | None:
    """A row for each group; beside it, without the forest, where that was trained."""
    measures: Mapping[str, Any] = record.result.get("measures", {})
    split = "test" if "test" in measures else "val"
    groups: Mapping[str, Mapping[str, float]] = measures.get(split, {})
    if record.kind not in ("forest", "fit") or len(groups) < 2:
        return None
    plain = record.result.get("plain", {}).get(split, {})
    out = record.result.get("out_of_play", {})
    head = ["group", "weight", "samples", f"{record.metric}, {SPLITS[split]}"]
    head += ["without augmentation and weights"] * bool(plain) + ["out of play"] * bool(out)
    rows = []
    for group, found in groups.items():
        weight = record.weights.get(group)
        cells: list[Any] = ["" if weight is None else f"{weight:.3f}", f"{int(found['samples']):,}"]
        cells.append(share(found.get(record.metric), record.metric))
        cells += [share(plain.get(group, {}).get(record.metric), record.metric)] * bool(plain)
        cells += [
            ", ".join(map(factor_in_words, out.get(group, ()))) or ("" if weight is None else "nothing")
        ] * bool(out)
        rows.append(
            tag(
                "tr",
                tag("th", group, scope="row"),
                [tag("td", cell) for cell in cells],
                class_="total" if weight is None else None,
            )
        )
    return Section("groups", "Group by group", TABLE, table(head, rows))


def table(head: Sequence[str], rows: Sequence[Html], label: str = "Group by group") -> Html:
    """A table that scrolls in itself where it is too wide."""
    heads = tag("thead", tag("tr", [tag("th", each, scope="col") for each in head]))
    return tag(
        "div", tag("table", heads, tag("tbody", rows)), class_="scroll", tabindex="0", role="region", aria_label=label
    )


def share(value: float | None, metric: str) -> str:
    """A metric, or nothing."""
    return "" if value is None else shown(value, metric)


def weights(record: Record) -> Section | None:
    """The weights after each update."""
    history = history_of(record)
    if len(history) < 2:
        return None
    names = list(history[-1]["w"])
    curves = [Line(name, [(row["step"], row["w"][name]) for row in history], i) for i, name in enumerate(names)]
    top = 1.1 * max(y for curve in curves for _, y in curve.points)
    ends = ", ".join(f"{name} {history[-1]['w'][name]:.3f}" for name in names)
    figure = tag(
        "figure",
        lines(
            curves, [], ("training step", "weight"), f"Weights of the groups over time; at the end {ends}", (0, top)
        ),
    )
    return Section("weights", "The groups' weights over time", WEIGHTS, figure)


def history_of(record: Record) -> Sequence[Mapping[str, Any]]:
    """A row for each update of the weights."""
    legs = [row for unit in record.starting("leg/") for row in unit.value.get("history", ())]
    return record.result.get("history") or legs
