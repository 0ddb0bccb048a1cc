"""Groups of a data set: from a column, by size and degree of graphs, or by a function; and whether they will do."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.dataset import Dataset, place_of
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import ArgumentError, DataError, nearest, one_of

Ints = NDArray[np.int64]
By = str | Callable[[Any], Any]
"""`column:NAME`, `size-degree:NxM`, `size:N`, `degree:N`, or a function of a sample that gives its group's name."""
ALL = "all"
"""The whole, in tables beside its groups."""
FEWEST = 8
"""Validation samples that a group needs, for a search: half of them choose, half of them confirm."""
MERGES = ("nearest",)
CUTS = re.compile(r"(size-degree|size|degree):(\d{1,3})(?:x(\d{1,3}))?")


@dataclass(frozen=True)
class Problem:
    """Why a group cannot have a tree of its own."""

    group: str
    why: str

    def __str__(self) -> str:
        return f"group {self.group} {self.why}"


def group(data: Dataset, by: By, *, merge: str | None = None) -> Dataset:
    """The same samples in other groups; `merge="nearest"` joins groups that are too small with their likest.

    `by` is `column:NAME` (a further column of index.csv), `size-degree:4x4` (graphs, cut at quantiles of the training
    samples: first by nodes, then each part by average degree), `size:4`, `degree:4`, `label`-free functions of a
    sample that give a name, or "given" for the groups as they are.
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
    """The group of each sample; and whether a text says it all, so that it can be done again."""
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
        raise ArgumentError("groups", "must have at least one part each way", by)
    return by_size_and_degree(
        data, *{"size-degree": (first, second), "size": (first, 1), "degree": (1, first)}[cut[1]]
    ), True


def by_column(data: Dataset, column: str) -> list[str]:
    """The values of a column of index.csv."""
    if column not in data.columns:
        known = ", ".join(data.columns) or "none"
        rule = f"must name a column of the data, which has {known}{nearest(column, data.columns)}"
        raise ArgumentError("groups", rule, f"column:{column}")
    return [value or "(empty)" for value in data.columns[column]]


def by_function(data: Dataset, function: Callable[[Any], Any]) -> list[str]:
    """What a function says of each sample."""
    names = []
    for i in range(len(data)):
        name = str(function(data.samples[i]))
        if not name:
            raise ArgumentError(f"groups/{i}", "must give each sample a group with a name", name)
        names.append(name)
    return names


def by_size_and_degree(data: Dataset, sizes: int, degrees: int) -> list[str]:
    """Graphs by their nodes, then by their average degree; the cuts are quantiles of the training graphs."""
    if data.domain != "graph":
        raise ArgumentError("groups", "by size or degree must be for graphs, and the samples are", data.domain + "s")
    nodes, degree = shapes(data)
    train = np.isin(data.split, (SPLITS.index("train"), UNLABELLED))  # whoever has a label, the groups are the same
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


def shapes(data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def problems(data: Dataset, fewest_val: int = FEWEST) -> list[Problem]:
    """What keeps groups from having a tree of their own."""
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


def check_groups(data: Dataset, fewest_val: int = FEWEST) -> None:
    """Raise where a group is too small, with what can be done; before anything runs."""
    if ALL in data.group_names and len(data.group_names) > 1:
        raise DataError(f"{data.name}: a group must not be called {ALL}, which is the name of the whole in tables")
    found = problems(data, fewest_val)
    if found:
        rest = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise DataError(
            f"{data.name}: every group must have training samples of two classes and {fewest_val} validation samples,"
            f" but {'; '.join(str(problem) for problem in found[:5])}{rest}. Merge such groups with their likest"
            ' (merge="nearest", --merge nearest), make fewer cuts, or give more validation data'
        )


def merged(data: Dataset, merge: str, fewest_val: int = FEWEST) -> Dataset:
    """Each group that is too small joined with the one that is most like it, until all will do."""
    one_of("merge", merge, MERGES)
    begun, joined = data, []
    while len(data.group_names) > 1 and (found := problems(data, fewest_val)):
        small = place_of("group", min(found, key=lambda p: len(data.indices(None, p.group))).group, data.group_names)
        other = likest(traits(data), small)
        pair = sorted((data.group_names[small], data.group_names[other]))
        joined.append(" with ".join(pair))
        data = joined_groups(data, small, other)
    if data is begun:
        return data
    source = {**data.source, "merge": merge} if data.source is not None else None
    return replace(
        data, source=source, notes=(*data.notes, f"groups that are too small were merged: {'; '.join(joined)}")
    )


def joined_groups(data: Dataset, one: int, other: int) -> Dataset:
    """Two groups as one, whose name has both."""
    new = "+".join(sorted((data.group_names[one], data.group_names[other])))
    return renamed(data, [new if i in (one, other) else name for i, name in enumerate(data.group_names)])


def joined_as(data: Dataset, names: Collection[str]) -> Dataset:
    """Groups joined to those of such names, which have a + between the groups that were merged; others stay.

    Merging again would not do: which groups are too small depends on who has a label.
    """
    return renamed(data, [whole_of(part, names) for part in data.group_names])


def whole_of(part: str, names: Collection[str]) -> str:
    """The one of such names that a group is part of, or its own.

    >>> whole_of("a", ["a+c", "b"])
    'a+c'
    """
    holders = [name for name in names if f"+{part}+" in f"+{name}+"]
    return part if part in names or len(holders) != 1 else holders[0]


def renamed(data: Dataset, names: Sequence[str]) -> Dataset:
    """The groups under other names; those of one name become one."""
    known = tuple(sorted(set(names)))
    groups = np.array([known.index(name) for name in names], np.int64)[data.groups]
    return replace(data, groups=groups, group_names=known)


def traits(data: Dataset) -> NDArray[np.float64]:
    """What each group is like, a row each: for graphs log size and degree, for pictures their colours."""
    if isinstance(data.samples, Tensor):
        each = picture_traits(data.samples)
    else:
        nodes, degree = shapes(data)
        each = np.stack([np.log(np.maximum(nodes, 1)), degree], 1)
    each = (each - each.mean(0)) / np.maximum(each.std(0), 1e-9)
    return np.stack([each[data.groups == g].mean(0) if (data.groups == g).any() else np.full(each.shape[1], np.inf)
                     for g in range(len(data.group_names))])  # fmt: skip


def picture_traits(pictures: Tensor, at_once: int = 1024) -> NDArray[np.float64]:
    """Mean and deviation of each channel of each picture."""
    parts = []
    for start in range(0, len(pictures), at_once):
        some = pictures[start : start + at_once].float().flatten(2)
        parts.append(torch.cat([some.mean(2), some.std(2, correction=0)], 1))
    return torch.cat(parts).double().numpy()


def likest(traits: NDArray[np.float64], which: int) -> int:
    """The row nearest to one."""
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.linalg.norm(traits - traits[which], axis=1), nan=np.inf)
    distance[which] = np.inf
    order: Sequence[int] = np.lexsort((np.arange(len(distance)), distance)).tolist()
    return order[0] if order[0] != which else order[1]
