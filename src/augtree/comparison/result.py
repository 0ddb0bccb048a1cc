"""The result of `compare`: a row for each policy and seed, and the table, files and verdict that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from augtree.tables import csv_text, figure, html_lines, html_table, markdown, plus_minus, signed
from augtree.training.metrics import METRICS

SHOWN_GROUPS = 6
"""More groups than this are in the CSV alone."""


@dataclass(frozen=True)
class Line:
    """The figures of one policy: means over seeds, with standard deviations. Failed trainings are left out."""

    policy: str
    """The policy's name."""
    seeds: int
    """The number of trainings that did not fail."""
    mean: float | None
    """The metric; None where every training failed."""
    spread: float | None
    """Its standard deviation; None where there is one training."""
    difference: float | None
    """The difference to the best free policy, paired by seed; None for that policy itself."""
    difference_se: float | None
    """Its standard error."""
    worst_group: float | None
    """The metric in the worst group."""
    val: float | None
    """The metric on validation data."""
    failed: int = 0
    """The number of trainings that failed."""
    reason: str = ""
    """Why the first of them failed."""
    worst_spread: float | None = None
    """The standard deviation of the metric in the worst group."""
    cost: float | None = None
    """The cost of one training in training equivalents, judging included."""
    groups: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    """Mean and standard deviation in each group."""

    @property
    def failures(self) -> str:
        """How many trainings failed, and the first reason."""
        return f"{self.failed} of {self.failed + self.seeds} failed: {self.reason}" if self.failed else ""


def doubt(ahead: float, error: float | None) -> str:
    """What is to be said of a difference that may be chance."""
    if error is None:
        return ": one seed in common cannot tell that from noise"
    return ": not more than noise" if abs(ahead) < 2 * error else ""


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Examples
    --------
    >>> from augtree.comparison import Comparison
    >>> rows = [{"policy": name, "seed": 0, "val": val, "test": val} for name, val in (("none", 0.8), ("tree", 0.9))]
    >>> Comparison("accuracy", rows, free=["none"], judged_on="test").verdict()
    'tree is 0.1000 ahead of none, the best free policy: one seed in common cannot tell that from noise.'

    """

    metric: str
    """The task's metric."""
    rows: Sequence[Mapping[str, Any]]
    """A row for each policy and seed."""
    free: Sequence[str]
    """The policies that need no search."""
    judged_on: str
    """The split that the table shows."""
    notes: Sequence[str] = ()
    """What a reader of the table should know."""
    controls: Sequence[str] = ()
    """The rows that a search must beat at its own cost: trainings with free policies that took as long."""
    finished: Sequence[str] = ()
    """The rows of searches, judged by the model that each ends with."""
    published: Sequence[str] = ()
    """The rows of published methods, which are neither free policies nor the search that the verdict is about."""

    @property
    def best_free(self) -> str | None:
        """The free policy that is best on validation data (without any, the first): the test data chooses nothing."""
        return self._best(self.free)

    def _best(self, names: Sequence[str]) -> str | None:
        trained = [name for name in names if self._values(name)]
        known = {name: found[0] for name in trained if (found := self._spread(name, "val"))}
        if not known:
            return trained[0] if trained else None
        return (max if METRICS[self.metric].higher_is_better else min)(known, key=lambda name: known[name])

    def lines(self) -> list[Line]:
        """A line for each policy, in the order in which they were given; those that only failed come last."""
        names = list(dict.fromkeys(row["policy"] for row in self.rows))
        return sorted(map(self._line, names), key=lambda line: line.mean is None)

    def _line(self, name: str) -> Line:
        mine, reasons = self._values(name), self._failed(name)
        if not mine:
            return Line(name, 0, None, None, None, None, None, None, len(reasons), reasons[0])
        reference = self.best_free
        difference = error = None
        if reference is not None and name != reference:
            difference, error = self._difference(name, reference)
        values = np.array(list(mine.values()))
        spread = float(values.std(ddof=1)) if len(values) > 1 else None
        worst, val, cost = (self._spread(name, column) or (None, None) for column in ("worst_group", "val", "cost"))
        failed = (len(reasons), reasons[0] if reasons else "")
        groups = {group: found for group in self._groups() if (found := self._spread(name, f"group {group}"))}
        figures = (len(mine), float(values.mean()), spread, difference, error, worst[0], val[0], *failed)
        return Line(name, *figures, worst_spread=worst[1], cost=cost[0], groups=groups)

    def _difference(self, name: str, reference: str) -> tuple[float | None, float | None]:
        """By how much one is above another, paired by seed, with the standard error."""
        mine, other = self._values(name), self._values(reference)
        pairs = np.array([mine[seed] - other[seed] for seed in mine if seed in other])
        difference = float(pairs.mean()) if len(pairs) else None
        return difference, float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else None

    def _groups(self) -> list[str]:
        return [column[6:] for column in dict.fromkeys(c for row in self.rows for c in row) if column[:6] == "group "]

    def _spread(self, name: str, column: str) -> tuple[float, float | None] | None:
        found = [row[column] for row in self.rows if row["policy"] == name and row.get(column) is not None]
        if not found:
            return None
        return float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else None

    def _values(self, name: str) -> dict[int, float]:
        rows = [row for row in self.rows if row["policy"] == name and "failed" not in row]
        return {row["seed"]: row[self.judged_on] for row in rows}

    def _failed(self, name: str) -> list[str]:
        return [row["failed"] for row in self.rows if row["policy"] == name and "failed" in row]

    def verdict(self) -> str:
        """Whether the search helped; validation data chooses the policy of the search that this is about."""
        failures = [f"Trainings with {line.policy}: {line.failures}." for line in self.lines() if line.failed]
        beside = [*self._at_equal_cost(), *self._beside_published()]
        return " ".join([self._verdict(), *beside, *self._worst_verdict(), *failures])

    @property
    def _candidates(self) -> list[str]:
        """The rows of a search: neither free policies nor controls; without any, the published methods."""
        others = [line.policy for line in self.lines() if line.policy not in {*self.free, *self.controls}]
        return [name for name in others if name not in self.published] or others

    def _at_equal_cost(self) -> list[str]:
        """The finished model beside the best of the controls, which validation data chooses."""
        return self._side_by_side("At the same cost", self._best(self.finished), self._best(self.controls))

    def _beside_published(self) -> list[str]:
        """The search beside the best published method, which validation data chooses."""
        best = self._best(self._candidates)
        other = None if best in self.published else self._best(self.published)
        return self._side_by_side("Beside the published methods", best, other)

    def _side_by_side(self, words: str, mine: str | None, control: str | None) -> list[str]:
        """A sentence on the difference of two rows."""
        if mine is None or control is None:
            return []
        difference, error = self._difference(mine, control)
        if difference is None:
            return []
        ahead = difference if METRICS[self.metric].higher_is_better else -difference
        side = "behind" if ahead < 0 else "ahead of"
        return [f"{words}, {mine} is {abs(ahead):.4f}{plus_minus(error)} {side} {control}{doubt(ahead, error)}."]

    def _worst_verdict(self) -> list[str]:
        lines = {line.policy: line for line in self.lines()}
        reference, best = self.best_free, self._best(self._candidates)
        if reference is None or best is None or None in (lines[best].worst_group, lines[reference].worst_group):
            return []
        mine, other = (figure(lines[name].worst_group, lines[name].worst_spread) for name in (best, reference))
        return [f"In the worst group: {best} {mine}, {reference} {other}."]

    def _verdict(self) -> str:
        lines = {line.policy: line for line in self.lines()}
        reference, best = self.best_free, self._best(self._candidates)
        if best is None and (free := self._verdict_on_free()):
            return free
        if reference is None or best is None or lines[best].difference is None:
            return "There must be a free policy and another one, with a seed in common, for a verdict."
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        ahead, noise = sign * (lines[best].difference or 0.0), lines[best].difference_se
        figures = f"{abs(ahead):.4f}{plus_minus(noise)}"
        found = "It" if best in self.published else "The search"
        if ahead == 0:
            return f"{found} did not help: {best} does just as {reference}, which is free."
        if ahead < 0:
            return f"{found} did not help: {best} is {figures} behind {reference}, which is free."
        chosen = "the best free policy" if lines[reference].val is not None else "which is free"
        return f"{best} is {figures} ahead of {reference}, {chosen}{doubt(ahead, noise)}."

    def _verdict_on_free(self) -> str:
        """Which free policy is best, beside the next; empty with fewer than two."""
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        by_val = any(line.val is not None for line in self.lines())
        means = {line.policy: sign * line.mean for line in self.lines() if line.mean is not None}
        ranked = sorted((name for name in self.free if name in means), key=lambda name: -means[name])
        if by_val and (best := self.best_free) is not None:
            following = self._best([name for name in ranked if name != best])
            ranked = [best] if following is None else [best, following]
        if len(ranked) < 2 or (found := self._difference(*ranked[:2]))[0] is None:
            return ""
        difference, error = sign * found[0], found[1]
        side = "behind" if difference < 0 else "ahead of"
        figures = f"in {self.metric} ({self.judged_on}) {abs(difference):.4f}{plus_minus(error)} {side} {ranked[1]}"
        chosen = ", by validation data" if by_val else ""
        return f"{ranked[0]} is the best free policy{chosen}: {figures}, the next{doubt(difference, error)}."

    def to_text(self) -> str:
        """The table, as Markdown."""
        return markdown(self.columns())

    def _repr_html_(self) -> str:
        """The table and the verdict, in a notebook."""
        return html_table(self.columns()) + html_lines([self.verdict()])

    def columns(self) -> dict[str, list[str]]:
        """The table, by column."""
        lines, reference = self.lines(), self.best_free
        columns = {
            "policy": [line.policy for line in lines],
            f"{self.metric}, {self.judged_on}": [figure(line.mean, line.spread) or "failed" for line in lines],
            "seeds": [str(line.seeds) for line in lines],
        }
        if reference is not None:
            columns[f"difference to {reference}"] = [signed(line.difference, line.difference_se) for line in lines]
        if any(line.cost is not None for line in lines):
            columns["trainings"] = ["" if line.cost is None else f"{line.cost:.1f}" for line in lines]
        if any(line.worst_group is not None for line in lines):
            columns["worst group"] = [figure(line.worst_group, line.worst_spread) for line in lines]
        if 1 < len(self._groups()) <= SHOWN_GROUPS:
            for group in self._groups():
                columns[group] = [figure(*line.groups.get(group, (None, None))) for line in lines]
        if any(line.failed for line in lines):
            columns["failed"] = [line.failures for line in lines]
        return columns

    def to_csv(self) -> str:
        """A row for each policy and seed."""
        columns = dict.fromkeys(key for row in self.rows for key in row)
        return csv_text(self.rows, sorted(columns, key=lambda column: column == "failed"))  # at the end

    def to_json(self) -> str:
        """Everything."""
        content = {
            "metric": self.metric,
            "judged_on": self.judged_on,
            "best_free": self.best_free,
            "verdict": self.verdict(),
            "free": list(self.free),
            "controls": list(self.controls),
            "finished": list(self.finished),
            "published": list(self.published),
            "lines": [vars(line) for line in self.lines()],
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"
