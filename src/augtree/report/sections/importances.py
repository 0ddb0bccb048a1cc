"""How much each transform of the trees brought, side by side across groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from augtree.report.figures import Bar, bars
from augtree.report.gather import Record
from augtree.report.markup import tag
from augtree.report.sections import Section
from augtree.search.play import UNGROUPED

INTRO = (
    "How much the validation loss falls with each transform of the tree, measured on samples that did not"
    " choose it. Whiskers are standard deviations over bootstrap samples; a transform that is not named in a"
    " group is not in its tree."
)
Given = Mapping[str, Mapping[str, float]]


def importances_of(record: Record) -> dict[str, Given]:
    """By group, the gain and spread of each transform."""
    found: Mapping[str, Any] = record.result.get("importances", {})
    grouped = record.kind in ("forest", "fit")
    return {name: given for name, given in (found if grouped else {UNGROUPED: found}).items() if given}


def section(record: Record) -> Section | None:
    """A figure for each transform, a bar for each group."""
    by_group = importances_of(record)
    if not by_group:
        return None
    names = dict.fromkeys(name for given in by_group.values() for name in given)
    largest = max(each["gain"] + each["spread"] for given in by_group.values() for each in given.values())
    lowest = min(0.0, *(each["gain"] - each["spread"] for given in by_group.values() for each in given.values()))
    figures = []
    if list(by_group) == [UNGROUPED]:
        rows = [bar(name, each) for name, each in by_group[UNGROUPED].items()]
        figures.append(
            tag("figure", tag("figcaption", "falls of the validation loss"), bars(rows, lowest, largest, said(rows)))
        )
    else:
        for name in names:
            rows = [bar(group, given[name]) for group, given in by_group.items() if name in given]
            figures.append(
                tag("figure", tag("figcaption", name), bars(rows, lowest, largest, f"{name}: {said(rows)}"))
            )
    return Section("importances", "What each transform brought", INTRO, tag("div", figures, class_="multiples"))


def bar(label: str, each: Mapping[str, float]) -> Bar:
    """One importance."""
    return Bar(label, each["gain"], each["spread"], "helps", f"{each['gain']:.4f} ± {each['spread']:.4f}")


def said(rows: list[Bar]) -> str:
    """Importances in words."""
    return "; ".join(f"{row.label} {row.figure}" for row in rows)
