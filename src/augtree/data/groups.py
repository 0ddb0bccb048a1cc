"""Groups of a data set: from a column, by size and degree of graphs, or by a function; checks and merging."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.checks import place_of
from augtree.data.dataset import Dataset
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import ArgumentError, DataError, nearest, one_of, printable

Ints = NDArray[np.int64]
By = str | Callable[[Any], Any]
"""`column:NAME`, `size-degree:NxM`, `size:N`, `degree:N`, or a function of a sample that gives its group's name."""
ALL = "all"
"""The whole, in tables beside its groups."""
MIN_VAL_SAMPLES = 8
"""The validation samples that a search in a group needs: half of them choose, half confirm."""
MERGES = ("nearest",)
CUTS = re.compile(r"(size-degree|size|degree):(\d{1,3})(?:x(\d{1,3}))?")


@dataclass(frozen=True)
class Problem:
    """Why a group cannot have a tree of its own."""

    group: str
    why: str

    def __str__(self) -> str:
        return f"group {printable(self.group)} {self.why}"


def group(data: Dataset, by: By, *, merge: str | None = None) -> Dataset:
    """Put the samples of a data set into other groups.

    Parameters
    ----------
    data
        The data set; it stays as it is.
    by
        `column:NAME` (a further column of index.csv); for graphs `size:N`, `degree:N` or `size-degree:NxM` (cut at
        quantiles of the training samples, first by nodes, then each part by average degree); a function of a sample
        that returns the name of its group; or "given" for the groups as they are.
    merge
        "nearest" merges groups that are too small with the most similar group.

    Examples
    --------
    >>> from augtree.data import from_arrays
    >>> pictures = np.zeros((4, 8, 8), np.uint8)
    >>> pictures[2:] = 200
    >>> data = from_arrays(pictures, [0, 1, 0, 1], split=["train"] * 4)
    >>> group(data, lambda picture: "dark" if picture.float().mean() < 128 else "light").group_names
    ('dark', 'light')

    """
    names, again = named_groups(data, by)
    known = tuple(sorted(set(names)))
    place = {name: i for i, name in enumerate(known)}
    groups = np.array([place[name] for name in names], np.int64)
    source = data.source
    if by != "given":
        kept = {name: value for name, value in (data.source or {}).items() if name != "merge"}
        source = {**kept, "groups": by} if again and data.source is not None else None
    found = replace(data, groups=groups, group_names=known, source=source)
    return found if merge is None else merged(found, merge)


def named_groups(data: Dataset, by: By) -> tuple[list[str], bool]:
    """The name of each sample's group; and whether `by` is a text, so that `load` can repeat it."""
    if callable(by):
        return by_function(data, by), False
    if not isinstance(by, str):
        raise ArgumentError("groups", "must be a text or a function of a sample", by)
    if by == "given":
        return [data.group_names[i] for i in data.groups], True
    if by == "column:group" and "group" not in data.columns:
        return named_groups(data, "given")
    if by.startswith("column:"):
        return by_column(data, by.partition(":")[2]), True
    cut = CUTS.fullmatch(by)
    if cut is None or (cut[1] == "size-degree") != (cut[3] is not None):
        rule = "must be column:NAME, size-degree:NxM, size:N, degree:N, given, or a function"
        raise ArgumentError("groups", rule, by)
    first, second = int(cut[2]), int(cut[3] or 1)
    if min(first, second) < 1:
        raise ArgumentError("groups", "must have at least one part", by)
    return by_size_and_degree(
        data, *{"size-degree": (first, second), "size": (first, 1), "degree": (1, first)}[cut[1]]
    ), True


def by_column(data: Dataset, column: str) -> list[str]:
    """The values of a column of index.csv."""
    if column not in data.columns:
        known = ", ".join(data.columns) or "none beyond its labels and groups"
        rule = f"must name a column of the data, which has {known}{nearest(column, data.columns)}"
        raise ArgumentError("groups", rule, f"column:{column}")
    return [value or "(empty)" for value in data.columns[column]]


def by_function(data: Dataset, function: Callable[[Any], Any]) -> list[str]:
    """What a function returns for each sample."""
    names = []
    for i in range(len(data)):
        name = str(function(data.samples[i]))
        if not name:
            raise ArgumentError(f"groups/{i}", "must give each sample a group with a name", name)
        names.append(name)
    return names


def by_size_and_degree(data: Dataset, sizes: int, degrees: int) -> list[str]:
    """Graphs by number of nodes, then by average degree; the cuts are quantiles of the training graphs."""
    if data.domain != "graph":
        raise ArgumentError("groups", "by size or degree must be for graphs, and the samples are", data.domain + "s")
    nodes, degree = nodes_and_degrees(data)
    train = np.isin(data.split, (SPLITS.index("train"), UNLABELLED))  # whatever labels are known
    size_part = cut(nodes, nodes[train], sizes)
    degree_part = np.zeros(len(data), np.int64)
    for part in range(sizes):
        here = size_part == part
        if here.any():
            degree_part[here] = cut(degree[here], degree[here & train], degrees)
    wide = [len(str(n - 1)) for n in (sizes, degrees)]
    out = []
    for s, d in zip(size_part, degree_part, strict=True):
        parts = [f"size{s:0{wide[0]}d}"] * (sizes > 1) + [f"degree{d:0{wide[1]}d}"] * (degrees > 1)
        out.append(" ".join(parts) or "all")
    return out


def nodes_and_degrees(data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and average degree of each graph."""
    nodes = np.array([graph.num_nodes for graph in data.samples], np.float64)
    edges = np.array([graph.num_edges for graph in data.samples], np.float64)
    return nodes, edges / np.maximum(nodes, 1)


def cut(values: NDArray[np.float64], known: NDArray[np.float64], parts: int) -> Ints:
    """The part of each value, by quantiles of the known ones; equal values stay together."""
    if parts == 1 or not len(known):
        return np.zeros(len(values), np.int64)
    edges = np.quantile(known, np.arange(1, parts) / parts)
    return np.searchsorted(edges, values, side="left").astype(np.int64)


def group_problems(data: Dataset, fewest_val: int = MIN_VAL_SAMPLES) -> list[Problem]:
    """The groups that cannot have a tree of their own, with the reasons."""
    found = []
    for name in data.group_names:
        train, val = (data.indices(split, name) for split in ("train", "val"))
        why = []
        if not len(train):
            why.append("has no training sample")
        elif not data.multilabel and len(torch.unique(data.labels[torch.from_numpy(train)])) < 2:
            why.append(f"has only one class among its {len(train)} training samples")
        if len(val) < fewest_val:
            why.append(f"has {len(val)} validation samples of at least {fewest_val}")
        if why:
            found.append(Problem(name, " and ".join(why)))
    return found


def check_groups(data: Dataset, fewest_val: int = MIN_VAL_SAMPLES) -> None:
    """Raise where a group is too small, with what can be done; before anything runs."""
    if ALL in data.group_names and len(data.group_names) > 1:
        raise DataError(f"{data.name}: a group must not be called {ALL}, which is the name of the whole in tables")
    found = group_problems(data, fewest_val)
    if found:
        rest = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise DataError(
            f"{data.name}: every group must have training samples of two classes and {fewest_val} validation samples,"
            f" but {'; '.join(str(problem) for problem in found[:5])}{rest}. Merge such groups with similar ones"
            ' (merge="nearest", --merge nearest), make fewer cuts, or give more validation data'
        )


def merged(data: Dataset, merge: str, fewest_val: int = MIN_VAL_SAMPLES) -> Dataset:
    """Merge groups that are too small with the most similar group, until all are large enough."""
    one_of("merge", merge, MERGES)
    begun, joined = data, []
    while len(data.group_names) > 1 and (found := group_problems(data, fewest_val)):
        small = place_of("group", min(found, key=lambda p: len(data.indices(None, p.group))).group, data.group_names)
        other = nearest_group(group_features(data), small)
        pair = sorted((data.group_names[small], data.group_names[other]))
        joined.append(printable(" with ".join(pair)))
        data = joined_groups(data, small, other)
    if data is begun:
        return data
    source = {**data.source, "merge": merge} if data.source is not None else None
    return replace(
        data, source=source, notes=(*data.notes, f"groups that are too small were merged: {'; '.join(joined)}")
    )


def joined_groups(data: Dataset, one: int, other: int) -> Dataset:
    """Two groups merged into one, whose name has both names."""
    new = "+".join(sorted((data.group_names[one], data.group_names[other])))
    return renamed(data, [new if i in (one, other) else name for i, name in enumerate(data.group_names)])


def merge_like(data: Dataset, names: Collection[str]) -> Dataset:
    """The data set with its groups merged as in these names, which join merged groups by +; other groups stay.

    To merge anew could give other groups: which ones are too small depends on the labels that are known.
    """
    return renamed(data, [merged_name(part, names) for part in data.group_names])


def merged_name(part: str, names: Collection[str]) -> str:
    """The merged name that a group is part of, or its own name.

    >>> merged_name("a", ["a+c", "b"])
    'a+c'
    """
    holders = [name for name in names if f"+{part}+" in f"+{name}+"]
    return part if part in names or len(holders) != 1 else holders[0]


def renamed(data: Dataset, names: Sequence[str]) -> Dataset:
    """The groups under other names; those of one name become one."""
    known = tuple(sorted(set(names)))
    groups = np.array([known.index(name) for name in names], np.int64)[data.groups]
    return replace(data, groups=groups, group_names=known)


def group_features(data: Dataset) -> NDArray[np.float64]:
    """A row of features for each group: log size and degree of graphs, colours of pictures."""
    if isinstance(data.samples, Tensor):
        each = colour_features(data.samples)
    else:
        nodes, degree = nodes_and_degrees(data)
        each = np.stack([np.log(np.maximum(nodes, 1)), degree], 1)
    each = (each - each.mean(0)) / np.maximum(each.std(0), 1e-9)
    return np.stack([each[data.groups == g].mean(0) if (data.groups == g).any() else np.full(each.shape[1], np.inf)
                     for g in range(len(data.group_names))])  # fmt: skip


def colour_features(pictures: Tensor, at_once: int = 1024) -> NDArray[np.float64]:
    """Mean and deviation of each channel of each picture."""
    parts = []
    for start in range(0, len(pictures), at_once):
        some = pictures[start : start + at_once].float().flatten(2)
        parts.append(torch.cat([some.mean(2), some.std(2, correction=0)], 1))
    return torch.cat(parts).double().numpy()


def nearest_group(features: NDArray[np.float64], which: int) -> int:
    """The row nearest to one."""
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.linalg.norm(features - features[which], axis=1), nan=np.inf)
    distance[which] = np.inf
    order: Sequence[int] = np.lexsort((np.arange(len(distance)), distance)).tolist()
    return order[0] if order[0] != which else order[1]
