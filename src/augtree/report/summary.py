"""A data set in figures: counts by split, class and group, and sizes of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.data import Dataset
from augtree.data.identical import identical_pictures
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.data.warnings import data_warnings, search_warnings
from augtree.errors import printable

JUDGED = SPLITS[:UNLABELLED]
MOST_ROWS = 20
"""Rows of a table that a person is shown."""


def summary(data: Dataset) -> dict[str, Any]:
    """Count what is in a data set, for JSON.

    Parameters
    ----------
    data
        The data set.

    Examples
    --------
    >>> from augtree.data import load
    >>> about = summary(load("digits"))
    >>> about["samples"], about["counts"]["val"], about["sizes"]
    (1797, 362, {'channels': 1, 'height': 8, 'width': 8})

    """
    identical = identical_pictures(data)
    return {
        "name": data.name,
        "domain": data.domain,
        "samples": len(data),
        "multilabel": data.multilabel,
        "counts": data.counts,
        "classes": by_class(data),
        "groups": {
            name: {split: len(data.indices(split, name)) for split in data.counts} for name in data.group_names
        },
        "sizes": picture_sizes(data.samples) if isinstance(data.samples, Tensor) else graph_sizes(data.samples),
        "masks": None if data.masks is None else with_masks(data),
        "notes": list(data.notes),
        "warnings": [*search_warnings(data), *data_warnings(data, identical)],
        "identical": [each.row() for each in identical if each.across_splits or each.contradicting],
        "fingerprint": data.fingerprint,
        "source": None if data.source is None else dict(data.source),
    }


def with_masks(data: Dataset) -> dict[str, int]:
    """How many samples of each split have a mask with an object."""
    known = np.zeros(len(data), bool) if data.masks is None else data.masks.areas > 0
    return {split: int(known[data.indices(split)].sum()) for split in data.counts}


def by_class(data: Dataset) -> dict[str, dict[str, int]]:
    """How many samples of each class are in each split; labels of unlabelled samples are not looked at."""
    columns = {}
    for split in JUDGED:
        labels = data.labels[torch.from_numpy(data.indices(split))]
        if data.multilabel:
            columns[split] = labels.sum(0, dtype=torch.int64).tolist()
        else:
            columns[split] = torch.bincount(labels, minlength=data.num_classes).tolist()
    return {name: {split: columns[split][i] for split in JUDGED} for i, name in enumerate(data.classes)}


def picture_sizes(pictures: Tensor) -> dict[str, Any]:
    """The one size of all pictures."""
    channels, height, width = pictures.shape[1:]
    return {"channels": channels, "height": height, "width": width}


def graph_sizes(graphs: Sequence[Any]) -> dict[str, Any]:
    """Ranges over graphs: nodes, edges (each once) and the average degree, and the number of features."""
    nodes = np.array([graph.num_nodes for graph in graphs], np.int64)
    # An edge stands in both directions.
    ends = np.array([graph.num_edges for graph in graphs], np.int64)
    features, edge_features = (
        0 if one is None else one.shape[-1] for one in (graphs[0].get("x"), graphs[0].get("edge_attr"))
    )
    return {
        "nodes": spread(nodes),
        "edges": spread(ends / 2),
        "average_degree": spread(ends / np.maximum(nodes, 1)),
        "node_features": features,
        "edge_features": edge_features,
    }


def spread(values: Any) -> dict[str, float]:
    """The least, the middle, the mean and the most."""
    found = {"min": values.min(), "median": np.median(values), "mean": values.mean(), "max": values.max()}
    return {name: round(float(value), 4) for name, value in found.items()}


def summary_lines(about: Mapping[str, Any]) -> list[str]:
    """A summary as lines of text.

    Parameters
    ----------
    about
        What `summary` returned.

    Examples
    --------
    >>> from augtree.data import load
    >>> summary_lines(summary(load("digits")))[:2]
    ['digits: 1,797 pictures; train 1,078, val 362, test 357', 'pictures: 8x8, grey']

    """
    counts = ", ".join(f"{name} {count:,}" for name, count in about["counts"].items())
    what = "pictures" if about["domain"] == "image" else "graphs"
    lines = [f"{printable(about['name'])}: {about['samples']:,} {what}; {counts}", *size_lines(about)]
    kind = "label" if about["multilabel"] else "class"
    lines += ["", *table(kind, about["classes"], JUDGED)]
    if len(about["groups"]) > 1:
        lines += ["", *table("group", about["groups"], tuple(about["counts"]))]
    notes = [*about["notes"], *(f"Warning: {warning}" for warning in about["warnings"])]
    lines += ["", *(f"- {printable(note)}" for note in notes), f"fingerprint {about['fingerprint']}"]
    return lines


def size_lines(about: Mapping[str, Any]) -> list[str]:
    """How large samples are."""
    sizes = about["sizes"]
    if about["domain"] == "image":
        colours = {1: "grey", 3: "RGB"}.get(sizes["channels"], f"{sizes['channels']} channels")
        lines = [f"pictures: {sizes['width']}x{sizes['height']}, {colours}"]
        if about["masks"] is not None:
            lines.append("masks: " + ", ".join(f"{split} {count:,}" for split, count in about["masks"].items()))
        return lines
    lines = []
    for name in ("nodes", "edges", "average_degree"):
        one = sizes[name]
        digits = 1 if name == "average_degree" else 0
        low, high = f"{one['min']:,.{digits}f}", f"{one['max']:,.{digits}f}"
        lines.append(
            f"{name.replace('_', ' ')}: {low} to {high} (median {one['median']:,.1f}, mean {one['mean']:,.1f})"
        )
    return [*lines, f"features: {sizes['node_features']} a node, {sizes['edge_features']} an edge"]


def table(kind: str, rows: Mapping[str, Mapping[str, int]], splits: Sequence[str]) -> list[str]:
    """A row a class or group, a column a split; of many rows the largest."""
    shown = list(rows)
    if len(rows) > MOST_ROWS:
        shown = sorted(rows, key=lambda name: -sum(rows[name].values()))[:MOST_ROWS]
    names = {name: printable(name) for name in shown}
    width = max(len(kind), *(len(name) for name in names.values()))
    head = f"{kind:<{width}}" + "".join(f"{split:>12}" for split in splits)
    lines = [f"{names[name]:<{width}}" + "".join(f"{rows[name][split]:>12,}" for split in splits) for name in shown]
    more = [f"and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    return [head, *lines, *more]
