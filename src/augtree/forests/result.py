"""The result of a forest: the weights and their history, the measures of each group, the cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from augtree.data import Dataset
from augtree.data.groups import ALL
from augtree.errors import ArgumentError
from augtree.forests.verdict import verdict_lines
from augtree.policies import Forest
from augtree.runs.events import Finished
from augtree.search.play import factor_in_words
from augtree.search.result import TreeResult
from augtree.tables import csv_text, html_lines, html_table, markdown
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
from augtree.training.state import Passes, State

Measures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By split, by group (and `all`), by metric; `samples` is their number."""


@dataclass(frozen=True)
class ForestResult:
    """The result of `search_forest` and `fit_forest`.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> data = at.data.group(data, lambda picture: "dark" if picture.float().mean() < 78 else "bright")
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=2, batch_size=16)
    >>> result = at.fit_forest(data, task, alpha=1)
    >>> sorted(result.weights)
    ['bright', 'dark']
    >>> result.verdict().startswith("accuracy on test data: ")
    True

    """

    forest: Forest
    """The trees of the groups and their weights."""
    model: nn.Module = field(repr=False)
    """The trained model, in eval mode; pictures are normalised by `mean` and `std` of 0..1."""
    weights: Mapping[str, float]
    """The weight of each group at the end."""
    history: Sequence[Mapping[str, Any]] = field(repr=False)
    """A row for each update of the weights."""
    measures: Measures = field(repr=False)
    """The metrics of the model on each split, on all samples and in each group."""
    plain: Measures = field(repr=False)
    """The same of a model without augmentation and weights, trained for as long; empty where that was left out."""
    effective_size: float
    """N_w of the paper: the effective number of training samples at these weights."""
    similarity: Mapping[str, Any] = field(repr=False)
    """The paper's s(i, j) of the groups' features, without and with the forest; empty where that was left out."""
    trees: Mapping[str, TreeResult] = field(repr=False)
    """The result of each group's search, with the paper's method; else empty."""
    cost: Mapping[str, float]
    """Training equivalents and seconds, of the searches and of the weighted training."""
    notes: Sequence[str]
    """What a reader of the result should know."""
    metric: str
    """The task's metric."""
    deterministic: bool
    """Whether the same call gives the same bits on this device."""
    mean: tuple[float, ...] = ()
    """Of the training pictures, by channel."""
    std: tuple[float, ...] = ()
    """Of the training pictures, by channel."""
    out_of_play: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What left each group's play; empty where nothing was searched, or with the paper's method."""
    findings: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """The finding of each look on each factor, in all groups together and in each."""
    cooled: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Validation loss and metric after each of the last cool-downs: with the forest, and with one policy for all."""
    members: Sequence[str] = ()
    """The cool-downs whose average the model is."""
    state: State | None = field(default=None, repr=False)
    """The model's tensors, as a trainer takes them."""
    passes: Passes = field(default_factory=Passes, repr=False)
    """The samples that went through models."""
    out: Path | None = None
    """The run's folder."""

    def average(self, split: str = "test", measures: Measures | None = None) -> float | None:
        """The metric on all samples of a split; None where it does not exist there."""
        return (self.measures if measures is None else measures)[split][ALL].get(self.metric)

    def worst(self, split: str = "test", measures: Measures | None = None) -> tuple[str, float | None]:
        """The group in which the metric is worst, and the metric there."""
        return worst_of((self.measures if measures is None else measures)[split], self.metric)

    @property
    def judged_on(self) -> str:
        """The split that the table shows: test, or validation where there is none."""
        return "test" if "test" in self.measures else "val"

    def verdict(self) -> str:
        """The model's metric on average and in the worst group; what left play in each group, and why."""
        return " ".join(verdict_lines(self))

    def table(self) -> list[dict[str, Any]]:
        """A row for each split and group."""
        rows = []
        for split, groups in self.measures.items():
            for group, found in groups.items():
                plain = self.plain.get(split, {}).get(group, {}).get(self.metric)
                weight = self.weights.get(group)
                rows.append(
                    {"split": split, "group": group, "weight": weight, **found, f"plain {self.metric}": plain}
                )
        return rows

    def to_text(self) -> str:
        """The table of the groups, as Markdown."""
        return markdown(self.columns())

    def _repr_html_(self) -> str:
        """The verdict, the table of the groups and the trees, in a notebook."""
        return html_lines(verdict_lines(self)) + html_table(self.columns()) + self.forest._repr_html_()

    def columns(self) -> dict[str, list[str]]:
        """The table of the groups, by column."""
        head = [
            "group",
            "weight",
            "samples",
            self.metric,
            *(["without"] if self.plain else []),
            "out of play" if self.out_of_play else "what mattered most",
        ]
        split, body = self.judged_on, []
        for group, found in self.measures[split].items():
            cells = [group, f"{self.weights[group]:.3f}" if group in self.weights else "", str(int(found["samples"]))]
            cells.append(f"{found[self.metric]:.4f}" if self.metric in found else "")
            if self.plain:
                plain = self.plain[split][group].get(self.metric)
                cells.append("" if plain is None else f"{plain:.4f}")
            body.append([*cells, self.about(group)])
        return {name: list(cells) for name, cells in zip(head, zip(*body, strict=True), strict=True)}

    def about(self, group: str) -> str:
        """A group's policy in a few words."""
        if self.out_of_play:
            return ", ".join(map(factor_in_words, self.out_of_play[group])) if group in self.out_of_play else ""
        return most_important(self.trees.get(group))

    def to_json(self) -> str:
        """Everything but the model."""
        content = {
            "forest": {group: {"tree": str(m.tree), "weight": m.weight} for group, m in self.forest.groups.items()},
            "verdict": self.verdict(),
            "measures": self.measures,
            "plain": self.plain,
            "importances": {
                group: {name: asdict(value) for name, value in found.importances.items()}
                for group, found in self.trees.items()
            },
            "out_of_play": {group: list(names) for group, names in self.out_of_play.items()},
            "findings": [dict(finding) for finding in self.findings],
            "cooled": {name: list(values) for name, values in self.cooled.items()},
            "members": list(self.members),
            "effective_size": self.effective_size,
            "similarity": self.similarity,
            "history": list(self.history),
            "cost": dict(self.cost),
            "notes": list(self.notes),
            "deterministic": self.deterministic,
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def weights_csv(self) -> str:
        """The history of the weights as CSV: a row for each update."""
        by_group = {f"{what} {group}": (what, group) for what in ("w", "d", "outer") for group in self.weights}
        rows = [
            row | {column: (row[what] or {}).get(group) for column, (what, group) in by_group.items()}
            for row in map(dict, self.history)
        ]
        return csv_text(rows, ["step", *by_group, "residual", "iterations", "product", "skipped"])

    def groups_csv(self) -> str:
        """The measures as CSV: a row for each split and group."""
        return csv_text(self.table())


def finished(result: ForestResult) -> Finished:
    """The last event of a forest's run."""
    figures = {
        f"{split}/{name}": value
        for split, groups in result.measures.items()
        for name, value in (("average", result.average(split)), ("worst-group", result.worst(split)[1]))
        if value is not None
    }
    costs = {f"cost/{name}": value for name, value in result.cost.items()}
    return Finished(f"{result.to_text()}\n\n{result.verdict()}", {**figures, **costs}, result.forest)


def most_important(found: TreeResult | None) -> str:
    """The most important transform of a group's tree."""
    if found is None:
        return ""
    if not found.importances:
        return "nothing: its tree is empty"
    name, importance = next(iter(found.importances.items()))
    return f"{name} {importance}"


def measures_by_group(trainer: Trainer, state: State) -> dict[str, dict[str, dict[str, float]]]:
    """The metrics of a model on each split, on all samples and in each group."""
    data: Dataset = trainer.data
    out: dict[str, dict[str, dict[str, float]]] = {}
    for split in ("val", "test"):
        if not len(data.indices(split)):
            continue
        rows = {ALL: data.indices(split)} | {group: data.indices(split, group) for group in data.group_names}
        out[split] = {}
        for group, found in rows.items():
            if len(found):
                out[split][group] = {"samples": len(found), **measures_of(trainer, state, found)}
    return out


def measures_of(trainer: Trainer, state: State, rows: Any) -> dict[str, float]:
    """The metrics that exist on these samples."""
    try:
        return trainer.measures(state, rows)
    except ArgumentError:  # the task's own metric does not exist here: no class has both labels
        return {"loss": float(np.mean(trainer.losses(state, rows)))}


def worst_of(groups: Mapping[str, Mapping[str, float]], metric: str) -> tuple[str, float | None]:
    """The worst group by a metric."""
    known = {group: found[metric] for group, found in groups.items() if group != ALL and metric in found}
    if not known:
        return ALL, groups[ALL].get(metric)
    name = (min if METRICS[metric].higher_is_better else max)(known, key=lambda group: known[group])
    return name, known[name]
