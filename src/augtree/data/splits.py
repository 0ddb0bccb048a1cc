"""Splits into training, validation and test samples: seeded, stratified, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from augtree.errors import ArgumentError
from augtree.keys import Key

Ints = NDArray[np.int64]
Split = NDArray[np.int8]

SPLITS = ("train", "val", "test", "unlabelled")
"""The last one: training samples whose labels are never read."""
UNLABELLED = 3
SPLIT_NAMES = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "dev": 1,
    "test": 2,
    "testing": 2,
    "unlabelled": UNLABELLED,
    "unlabeled": UNLABELLED,
}
"""What a split may be called in files and arguments, in any case of letters."""


def split_number(name: object) -> int | None:
    """0, 1, 2 or 3 for the name of a split; None for anything else."""
    return SPLIT_NAMES.get(name.strip().lower()) if isinstance(name, str) else None


def make_split(
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int = 0,
) -> Split:
    """0 (train), 1 (val) or 2 (test) for each sample, stratified by label, and within a label by group.

    A class is in every split once it has three samples. Clusters (patients, cameras) stay whole where they are given:
    then shares and strata are met as nearly as a greedy choice, the largest cluster first, can.
    """
    weights = checked_shares(shares)
    label = strata(labels)
    group = np.zeros(len(label), np.int64) if groups is None else codes(groups)
    if clusters is not None:
        return split_clusters(codes(np.stack([label, group], axis=1)), codes(clusters), weights, seed)
    split = np.empty(len(label), np.int8)
    by_chance = draws(seed, np.arange(len(label)), "split")
    for one in np.unique(label):
        rows = np.flatnonzero(label == one)
        of_group = draws(seed, group[rows], "split groups", int(one))
        order = np.lexsort((by_chance[rows], group[rows], of_group))
        split[rows[order]] = spread(parts(len(rows), weights))
    return split


def complete_split(
    split: Split, labels: ArrayLike, *, groups: ArrayLike | None = None, seed: int = 0
) -> tuple[Split, tuple[str, ...]]:
    """A split with validation samples taken from training where it has none; and notes on that."""
    split, notes = split.copy(), []
    rows = np.flatnonzero(split == 0)
    if not (split == 1).any() and len(rows):
        among = None if groups is None else np.asarray(groups)[rows]
        split[rows] = make_split(np.asarray(labels)[rows], groups=among, shares=(0.8, 0.2, 0), seed=seed)
        taken = int((split == 1).sum())
        notes.append(f"no validation samples are given: {taken} training samples (20 %) became them, seed {seed}")
    if not (split == 2).any():
        notes.append("no test samples are given, so there is no test score")
    return split, tuple(notes)


def choose(labels: ArrayLike, count: int, *, seed: int, role: str) -> Ints:
    """The rows of `count` samples, stratified by label; within a label, a larger count adds to a smaller one."""
    label = strata(labels)
    by_chance = draws(seed, np.arange(len(label)), role)
    sizes = np.bincount(label)
    counts = parts(count, sizes / max(len(label), 1))
    rows = [np.flatnonzero(label == one) for one in range(len(sizes))]
    taken = [part[np.argsort(by_chance[part], kind="stable")][:some] for part, some in zip(rows, counts, strict=True)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *taken]))


def strata(labels: ArrayLike) -> Ints:
    """A number a sample: its label. Of several labels it is the rarest, and to have none is a stratum too."""
    table = np.asarray(labels)
    if table.ndim == 1:
        return codes(table)
    rarity = np.where(table > 0, table.sum(axis=0, dtype=np.int64), len(table) + 1)
    return codes(np.where(table.any(axis=1), rarity.argmin(axis=1), table.shape[1]))


def codes(values: ArrayLike) -> Ints:
    """Values, or rows of values, as 0, 1, ... in their order."""
    table = np.asarray(values)
    inverse = np.unique(table, axis=None if table.ndim == 1 else 0, return_inverse=True)[1]
    return inverse.reshape(-1).astype(np.int64)


def draws(seed: int, index: Ints, role: str, step: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each index, by position."""
    return Key.of(seed, index, role=role, step=step).uniform()


def checked_shares(shares: Sequence[float]) -> NDArray[np.float64]:
    """Three shares that sum to 1, the first positive."""
    given: Any = np.asarray(shares, np.float64)
    if given.shape != (3,) or not (given >= 0).all() or given[0] == 0 or abs(given.sum() - 1) > 1e-6:
        raise ArgumentError(
            "shares", "must be three numbers (train, val, test) that sum to 1, the first above 0", shares
        )
    return given  # type: ignore[no-any-return]


def parts(total: int, weights: NDArray[np.float64]) -> Ints:
    """`total` in whole parts by weight (largest remainder), where it suffices none empty, the first least of all."""
    exact = weights * total
    found = np.floor(exact + 1e-9).astype(np.int64)
    largest = np.argsort(found - exact, kind="stable")
    found[largest[: total - int(found.sum())]] += 1
    for empty in np.flatnonzero((found == 0) & (weights > 0)):
        if found.max(initial=0) > 1 or (empty == 0 and total):
            found[found.argmax()] -= 1
            found[empty] = 1
    return found


def spread(counts: Ints) -> Split:
    """0, 1, 2 as often as counted, evenly mixed, so that each stretch has about the same shares."""
    kind = np.repeat(np.arange(len(counts)), counts)
    place = np.concatenate([(np.arange(count) + 0.5) / max(count, 1) for count in counts])
    return kind[np.argsort(place, kind="stable")].astype(np.int8)


def split_clusters(stratum: Ints, cluster: Ints, shares: NDArray[np.float64], seed: int) -> Split:
    """Whole clusters to splits, the largest first, each to where its strata are missed most (in chi-squared)."""
    table = np.zeros((int(cluster.max(initial=-1)) + 1, int(stratum.max(initial=-1)) + 1))
    np.add.at(table, (cluster, stratum), 1)
    used = np.flatnonzero(shares > 0)
    if len(table) < len(used):
        rule = f"must be at least {len(used)} different ones, one for each split"
        raise ArgumentError("clusters", rule, len(table))
    target = np.outer(shares[used], table.sum(axis=0))
    have = np.zeros_like(target)
    home = np.empty(len(table), np.int8)
    by_chance = draws(seed, np.arange(len(table)), "split units")  # the role stays: it decides what is drawn
    order = np.lexsort((by_chance, -table.sum(axis=1)))
    for left, one in zip(range(len(order), 0, -1), order, strict=True):
        cost = (table[one] * (2 * have + table[one]) / target).sum(axis=1)
        empty = ~have.any(axis=1)
        if left <= empty.sum():
            cost[~empty] = np.inf
        best = int(cost.argmin())
        have[best] += table[one]
        home[one] = used[best]
    return home[cluster]
