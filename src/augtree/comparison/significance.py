"""Whether a method is better than others across data sets: the Wilcoxon signed-rank test on saved comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augtree.errors import ArgumentError, RunError, need
from augtree.runs.store import read_spec
from augtree.tables import markdown
from augtree.training.metrics import METRICS

REFERENCES = ("search", "forest")
"""What is compared with the others, unless it is named; without these, the last row that all comparisons have."""


@dataclass(frozen=True)
class SignedRank:
    """A method against another, over data sets."""

    policy: str
    """The other method."""
    data_sets: int
    """The data sets on which the two differ."""
    better_on: int
    """Those on which the method is better."""
    difference: float
    """The mean difference over all data sets; above zero, the method is better."""
    p: float
    """The two-sided p-value; 1 where the two differ nowhere."""


@dataclass(frozen=True)
class Significance:
    """One method against every other that stands in all of some comparisons.

    Examples
    --------
    >>> rows = [SignedRank("randaugment", 10, 9, 0.012, 0.0039)]
    >>> print(Significance("search", "accuracy", [f"set {i}" for i in range(10)], rows).to_text())
    search against ..., 10 data sets, accuracy:
    <BLANKLINE>
    | policy      | difference | better on | p (Wilcoxon) |
    | ----------- | ---------- | --------- | ------------ |
    | randaugment | +0.0120    | 9 of 10   | 0.0039       |

    """

    method: str
    """The method."""
    metric: str
    """The metric of all comparisons."""
    data_sets: Sequence[str]
    """Their data sets."""
    rows: Sequence[SignedRank]
    """A row for each other method."""

    def to_text(self) -> str:
        """The table."""
        columns = {
            "policy": [row.policy for row in self.rows],
            "difference": [f"{row.difference:+.4f}" for row in self.rows],
            "better on": [f"{row.better_on} of {row.data_sets}" for row in self.rows],
            "p (Wilcoxon)": [f"{row.p:.4f}" for row in self.rows],
        }
        text = f"{self.method} against ..., {len(self.data_sets)} data sets, {self.metric}:\n\n{markdown(columns)}"
        fewest = 2.0 ** (1 - len(self.data_sets))
        return text + (f"\n\nWith so few data sets no p can be below {fewest:.4f}." if fewest > 0.05 else "")

    def to_dict(self) -> dict[str, Any]:
        """As a value for JSON."""
        return {**asdict(self), "data_sets": list(self.data_sets), "rows": [asdict(row) for row in self.rows]}


def significance(folders: Sequence[str | Path], method: str | None = None) -> Significance:
    """Test whether a method is better than others over the data sets of saved comparisons.

    Parameters
    ----------
    folders
        The folders of finished comparisons, one for each data set.
    method
        The row that is compared with the others; by default `search` or `forest`, else the last.

    Examples
    --------
    >>> significance(["runs/compare-1"])
    Traceback (most recent call last):
    ...
    augtree.errors.ArgumentError: comparisons must be two or more, of different data sets, got ['runs/compare-1']

    """
    if len(folders) < 2:
        rule = "must be two or more, of different data sets"
        raise ArgumentError("comparisons", rule, [str(folder) for folder in folders])
    found: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        name, content = read_comparison(Path(folder))
        if name in found:
            raise ArgumentError("comparisons", f"must be of different data sets, but two are of {name}", str(folder))
        found[name] = content
    metrics = {content["metric"] for content in found.values()}
    if len(metrics) > 1:
        raise ArgumentError("comparisons", "must have the same metric", sorted(metrics))
    metric = metrics.pop()
    means = [means_of(content) for content in found.values()]
    common = [name for name in means[0] if all(name in each for each in means)]
    chosen = reference(method, common)
    sign = 1.0 if METRICS[metric].higher_is_better else -1.0
    own = np.array([each[chosen] for each in means])
    others = [name for name in common if name != chosen]
    if not others:
        raise ArgumentError("comparisons", "must have two rows in common", common)
    rows = [signed_rank(name, sign * (own - np.array([each[name] for each in means]))) for name in others]
    return Significance(chosen, metric, list(found), rows)


def read_comparison(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """The name of the data set of a finished comparison, and its result."""
    path = folder / "comparison.json"
    if not path.is_file():
        raise RunError(
            f"{folder} must be the folder of a finished comparison (augtree compare --out), with {path.name}"
        )
    content: Mapping[str, Any] = json.loads(path.read_text())
    return str(read_spec(folder)["data"]["name"]), content


def means_of(content: Mapping[str, Any]) -> dict[str, float]:
    """The mean of the metric over seeds of each row without a failure."""
    split = content["judged_on"]
    values: dict[str, list[float | None]] = {}
    for row in content["rows"]:
        values.setdefault(row["policy"], []).append(row.get(split))
    return {name: float(np.mean(each)) for name, each in values.items() if None not in each}  # type: ignore[arg-type]


def reference(method: str | None, common: Sequence[str]) -> str:
    """The method that is compared with the others."""
    if not common or (method is not None and method not in common):
        raise ArgumentError(
            "method", f"must be a row of all comparisons ({', '.join(common) or 'there is none'})", method
        )
    return method or next((name for name in REFERENCES if name in common), common[-1])


def signed_rank(policy: str, differences: Any) -> SignedRank:
    """The test of some differences; those that are zero are left out (Wilcoxon 1945)."""
    kept = differences[differences != 0]
    stats = need("scipy.stats", "train")
    p = float(stats.wilcoxon(kept, method="auto").pvalue) if len(kept) else 1.0
    return SignedRank(policy, len(kept), int((kept > 0).sum()), float(differences.mean()), p)
