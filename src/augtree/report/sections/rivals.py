"""The score of a node against its rivals: what else was tried in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.forests.shared_trunk import FOREST, ONE_FOR_ALL
from augtree.report.figures import interval
from augtree.report.gather import Record
from augtree.report.markup import Html, tag
from augtree.report.parts import WHOLE, Part

MOST = 8
Row = tuple[str, float, float]
"""A rival, its validation loss and its standard error."""


def rivals(record: Record, groups: Sequence[str], part: Part) -> Html | None:
    """The validation losses of what was tried in the place of a part, the best first."""
    return table_of(rows_of(record, groups, part))


def table_of(rows: Sequence[Row]) -> Html | None:
    """What was tried, the lowest losses first; nothing where there was no choice."""
    if len(rows) < 2:
        return None
    rows = sorted(rows, key=lambda row: row[1])
    shown, rest = rows[:MOST], len(rows) - MOST
    low = min(loss - error for _, loss, error in shown)
    high = max(loss + error for _, loss, error in shown)
    items = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", interval(loss, error, (low, high), "helps" if i == 0 else "")),
            tag("td", f"{loss:.4f} ± {error:.4f}", class_="figure"),
        )
        for i, (name, loss, error) in enumerate(shown)
    ]
    more = tag("p", f"and {rest} more, with higher losses", class_="faint") if rest > 0 else None
    head = tag("caption", "Against its rivals: validation loss, the lowest first")
    return tag("div", tag("table", head, tag("tbody", items), class_="rivals"), more)


def rows_of(record: Record, groups: Sequence[str], part: Part) -> list[Row]:
    """What was tried for a node, with losses that can be compared."""
    if part.node is None:
        return []
    own = record.groups.get(groups[0], record)
    if any(unit.key.startswith("node/") for unit in own.units):
        return scored(own, part.node) if part.key != WHOLE else []
    if part.key == WHOLE or part.node > 1:
        return cooled(record, None if part.key == WHOLE else part.node)
    return []


def policy_name(candidate: str) -> str:
    """What ran in a last cool-down, in few words; a mixture is written out elsewhere.

    >>> policy_name("Flip, then Identity | Rotate (50 % each), again"), policy_name("Flip")
    ('the mixture of what is in play, with other random draws', 'Flip')
    """
    if " | " not in candidate:
        return {FOREST: "each group's own policy", ONE_FOR_ALL: "one policy for all groups"}.get(candidate, candidate)
    return "the mixture of what is in play" + (", with other random draws" if candidate.endswith(", again") else "")


def scored(record: Record, node: int) -> list[Row]:
    """The candidates at a node, each at the probability that suits it best, in the last round that scored it."""
    best: dict[str, Row] = {}
    latest: dict[str, int] = {}
    for value in (unit.value for unit in record.starting(f"node/{node}/")):
        if value.get("round") == "confirm" or value.get("loss") is None or "p" not in value:
            continue
        name, number = str(value["candidate"]), int(value.get("round") or 0)
        row = (f"{name}, p = {value['p']:g}", float(value["loss"]), float(value.get("loss_se") or 0.0))
        if number > latest.get(name, -1) or (number == latest[name] and row[1] < best[name][1]):
            best[name], latest[name] = row, number
    return list(best.values())


def cooled(record: Record, node: int | None) -> list[Row]:
    """The last cool-downs; of a node below the root, those on trees that have it."""
    values: list[Mapping[str, Any]] = [
        unit.value for unit in record.starting("cool/") if unit.value.get("loss") is not None
    ]
    below = [value for value in values if node is None or f"{node}: " in str(value["candidate"])]
    return [(policy_name(str(v["candidate"])), float(v["loss"]), float(v.get("loss_se") or 0.0)) for v in below]
