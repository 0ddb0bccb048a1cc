"""The result of `evaluate`: an accuracy for each row of the table, seed and fold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from augtree.tables import csv_text, figure, html_lines, html_table, markdown


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Examples
    --------
    >>> from augtree.evaluation import Evaluation
    >>> rows = [{"row": "none", "seed": seed, "fold": 0, "accuracy": 0.5 + seed / 4} for seed in (0, 1)]
    >>> Evaluation("linear", rows, {"none": "Identity"}, seen=0).lines()[0]["mean"]
    0.625

    """

    protocol: str
    """The protocol's name."""
    rows: Sequence[Mapping[str, Any]]
    """The accuracy for each row of the table, seed and fold; or, for a row and seed, why it failed."""
    policies: Mapping[str, str]
    """The policy of each row, in words."""
    seen: int
    """The number of samples that are not judged since a search has used their labels."""
    notes: Sequence[str] = ()
    """What a reader of the table should know."""

    def lines(self) -> list[dict[str, Any]]:
        """Mean and spread of each row: over seeds (of the means over folds), and over the folds of a seed.

        Seeds that failed are left out and counted; where all did, the mean is None.
        """
        out = []
        for name in dict.fromkeys(row["row"] for row in self.rows):
            mine = [row for row in self.rows if row["row"] == name and "failed" not in row]
            failed = sum(row["row"] == name and "failed" in row for row in self.rows)
            each = [
                [r["accuracy"] for r in mine if r["seed"] == seed] for seed in dict.fromkeys(r["seed"] for r in mine)
            ]
            means = [float(np.mean(folds)) for folds in each]
            within = [float(np.std(folds, ddof=1)) for folds in each if len(folds) > 1]
            figures = {"seeds": len(means), "mean": float(np.mean(means)) if means else None}
            figures |= {"over_seeds": spread(means), "over_folds": float(np.mean(within)) if within else None}
            out.append({"row": name, **figures, "failed": failed})
        return out

    def to_text(self) -> str:
        """The table, as Markdown, and what the policies are."""
        return "\n".join([markdown(self.columns()), "", *self.in_words()])

    def _repr_html_(self) -> str:
        """The table and what the policies are, in a notebook."""
        return html_table(self.columns()) + html_lines(self.in_words())

    def in_words(self) -> list[str]:
        """What the policies are."""
        return [f"{name}: {policy}" for name, policy in self.policies.items()]

    def columns(self) -> dict[str, list[str]]:
        """The table, by column."""
        lines = self.lines()
        columns = {
            "row": [line["row"] for line in lines],
            f"accuracy, {self.protocol}": [figure(line["mean"], line["over_seeds"]) or "failed" for line in lines],
            "seeds": [str(line["seeds"]) for line in lines],
        }
        if any(line["over_folds"] is not None for line in lines):
            columns["spread over folds"] = [figure(line["over_folds"]) for line in lines]
        return columns

    def to_csv(self) -> str:
        """The accuracies as CSV: a line for each row of the table, seed and fold."""
        columns = ["row", "seed", "fold", "accuracy", "c", "fitted", "tested"]
        columns += ["failed"] if any("failed" in row for row in self.rows) else []
        return csv_text(self.rows, columns)

    def to_json(self) -> str:
        """Everything."""
        content = {
            "protocol": self.protocol,
            "seen": self.seen,
            "policies": dict(self.policies),
            "lines": self.lines(),
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation; None of fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each row of the table that failed, with the reason."""
    out = []
    for name in dict.fromkeys(row["row"] for row in rows if "failed" in row):
        mine = [row for row in rows if row["row"] == name and "failed" in row]
        out.append(f"{name} failed with seed {', '.join(str(row['seed']) for row in mine)}: {mine[0]['failed']}")
    return out
