"""`check_dataset`: the contract of every data set, built in or your own.

Each check is a function that raises `Broken`; its docstring is the rule.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.data import Dataset
from augtree.data.fingerprint import feed
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import ArgumentError, one_of, shown
from augtree.testing.contract import SEED, Broken, run_checks
from augtree.testing.worker import WorkerError, elsewhere

JUDGED = SPLITS[:UNLABELLED]
PART = 24
"""Samples that are looked at closely, where all would take long."""


def check_dataset(data: Dataset, *, skip: Collection[str] = ()) -> list[str]:
    """Check a data set against its contract: the names of the checks, or a CheckError that lists every failure.

    Parameters
    ----------
    data
        The data set.
    skip
        Names of checks that do not apply: a set split by camera has groups that are in one split only, and some
        published sets have the same sample twice.

    Examples
    --------
    >>> from augtree.data import load
    >>> check_dataset(load("digits", train=20, val=20), skip=["picklable"])[:3]
    ['length', 'stable indexing', 'disjoint splits']

    """
    if not isinstance(data, Dataset):
        raise ArgumentError("data", "must be a data set (augtree.data.from_arrays makes one of arrays)", data)
    for name in skip:
        one_of("skip", name, CHECKS)
    checks = {name: check for name, check in CHECKS.items() if name not in skip}
    return run_checks(f"{data.name} ({type(data).__qualname__})", checks, data, first=LENGTH)


def some_rows(data: Dataset) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A few samples from everywhere, a training sample among them."""
    spread = np.linspace(0, len(data) - 1, min(PART, len(data))).astype(np.int64)
    return np.unique(np.concatenate([data.indices("train")[:1], spread]))


def same_sample(one: Any, other: Any) -> bool:
    """Whether two samples have the same content."""
    return digest(one) == digest(other)


def digest(sample: Any) -> bytes:
    """A hash of a sample; the label and the name that a graph may carry are not a part of it."""
    state = hashlib.sha256()
    if isinstance(sample, Tensor):
        feed(state, sample, "samples")
    else:
        kept = ("x", "edge_index", "edge_attr", "pos", "num_nodes")
        feed(state, {key: value for key, value in sample.to_dict().items() if key in kept}, "samples")
    return state.digest()


# ---- what there is ---------------------------------------------------------------------------------------------


def length(data: Dataset) -> None:
    """There is a sample for each label, split, group and cell of a column, and len() says how many."""
    counts = {"samples": len(data.samples), "labels": len(data.labels)}
    counts |= {"split": len(data.split), "groups": len(data.groups)}
    counts |= {f"columns/{name}": len(column) for name, column in data.columns.items()}
    wrong = {name: count for name, count in counts.items() if count != len(data)}
    if wrong or not len(data):
        raise Broken(f"len() is {len(data)}, but there are " + ", ".join(f"{n} {name}" for name, n in counts.items()))


def stable_indexing(data: Dataset) -> None:
    """The same index gives the same sample and the same label, every time, and `take` gives them too."""
    rows = some_rows(data)
    part = data.take(rows)
    for place, row in enumerate(rows.tolist()):
        if not same_sample(data.samples[row], data.samples[row]):
            raise Broken(f"sample {row} differs from one look to the next")
        if not same_sample(data.samples[row], part.samples[place]):
            raise Broken(f"sample {row} differs from what take([{row}]) gives")
    if not torch.equal(part.labels, data.labels[torch.from_numpy(rows)]):
        raise Broken("take() gives other labels")
    if data.masks is not None and (part.masks is None or not torch.equal(part.masks[:], data.masks[rows])):
        raise Broken("take() gives other masks")


def disjoint_splits(data: Dataset) -> None:
    """Every sample stands in exactly one split, and `counts` says how many do in each."""
    found = {split: data.indices(split).tolist() for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        both = set(found[one]) & set(found[other])
        if both:
            raise Broken(f"sample {min(both)} is in {one} and in {other}")
    if sorted(row for rows in found.values() for row in rows) != list(range(len(data))):
        raise Broken(f"the splits have {sum(map(len, found.values()))} of {len(data)} samples")
    wrong = [split for split, rows in found.items() if data.counts.get(split, 0) != len(rows)]
    if wrong:
        raise Broken(f"counts says {data.counts.get(wrong[0], 0)} for {wrong[0]}, indices has {len(found[wrong[0]])}")


def groups_cover(data: Dataset) -> None:
    """Every sample is in exactly one group, and every group has a sample."""
    rows = [data.indices(group=name).tolist() for name in data.group_names]
    empty = [name for name, some in zip(data.group_names, rows, strict=True) if not some]
    if empty:
        raise Broken(f"group {empty[0]} has no sample")
    if sorted(row for some in rows for row in some) != list(range(len(data))):
        raise Broken(f"the groups have {sum(map(len, rows))} samples, the data set has {len(data)}")


def no_empty_group(data: Dataset) -> None:
    """Every group that there is has samples in every split that there is (unlabelled ones aside)."""
    for split in JUDGED:
        if not len(data.indices(split)):
            continue
        for name in data.group_names:
            if len(data.indices(group=name)) and not len(data.indices(split, name)):
                raise Broken(f"group {name} has no sample in {split}")


def label_range(data: Dataset) -> None:
    """Labels are places among the classes, or 0 and 1, and every class has a name of its own."""
    high = 1 if data.multilabel else data.num_classes - 1
    low, most = int(data.labels.min()), int(data.labels.max())
    if low < 0 or most > high:
        raise Broken(f"labels must be from 0 to {high}, got {low} to {most}")
    if data.multilabel and data.labels.shape[1] != data.num_classes:
        raise Broken(f"there are {data.num_classes} classes, and {data.labels.shape[1]} columns of labels")
    if len(set(data.classes)) < len(data.classes):
        raise Broken("two classes have one name")


def no_leak(data: Dataset) -> None:
    """No sample has an identical one in another split."""
    first: dict[bytes, int] = {}
    leaks = []
    for row in range(len(data)):
        other = first.setdefault(digest(data.samples[row]), row)
        if data.split[other] != data.split[row]:
            leaks.append((other, row))
    if leaks:
        (one, other), more = leaks[0], len(leaks) - 1
        where = f"{SPLITS[data.split[one]]} and {SPLITS[data.split[other]]}"
        raise Broken(f"samples {one} and {other} are identical, in {where}" + (f", and {more} more" if more else ""))


# ---- as a value ------------------------------------------------------------------------------------------------


def stable_fingerprint(data: Dataset) -> None:
    """The fingerprint is the same for the same data, whatever the name and the place."""
    again = replace(data, name=f"{data.name} again", source=None, notes=())
    if again.fingerprint != data.fingerprint:
        raise Broken("the same data have another fingerprint the second time")


def sensitive_fingerprint(data: Dataset) -> None:
    """The fingerprint changes with a sample, a label, a split, a group, and the names of classes and groups."""
    part = data.take(some_rows(data))
    for what, changes in changed(part).items():
        if replace(part, **changes).fingerprint == part.fingerprint:
            raise Broken(f"the fingerprint is the same with another {what}")


def changed(part: Dataset) -> dict[str, dict[str, Any]]:
    """Small changes of a data set."""
    samples: Any = part.samples
    if isinstance(samples, Tensor):
        samples = samples.clone()
        samples[0, 0, 0, 0] ^= 1
    else:
        graph = samples[0].clone()
        graph.edge_index = graph.edge_index.flip(0)
        graph.augtree_check = torch.ones(1)
        samples = (graph, *samples[1:])
    labels = part.labels.clone()
    labels[0] = 1 - labels[0] if part.multilabel else (labels[0] + 1) % part.num_classes
    split, groups = part.split.copy(), part.groups.copy()
    split[0] = 0 if split[0] else 1
    groups[0] = (groups[0] + 1) % len(part.group_names)
    out: dict[str, dict[str, Any]] = {"sample": {"samples": samples}}
    if (split == 0).any():
        out["split"] = {"split": split}
    if part.num_classes > 1:
        out["label"] = {"labels": labels}
    if len(part.group_names) > 1:
        out["group"] = {"groups": groups}
    out["name of a class"] = {"classes": (*part.classes[:-1], f"{part.classes[-1]} other")}
    out["name of a group"] = {"group_names": (*part.group_names[:-1], f"{part.group_names[-1]} other")}
    if part.masks is not None:
        bits = part.masks.bits.copy()
        bits[0, 0] ^= 128
        out["mask"] = {"masks": replace(part.masks, bits=bits)}
    return out


def picklable(data: Dataset) -> None:
    """It can be sent to another process, and is the same there."""
    part = data.take(some_rows(data))
    try:
        there = elsewhere(_in_worker, part)
    except WorkerError as error:
        raise Broken(shown(str(error), 300)[1:-1]) from error
    if there != part.fingerprint:
        raise Broken("another process has another fingerprint of it")


def _in_worker(data: Dataset) -> str:
    return replace(data).fingerprint


def unmutated(data: Dataset) -> None:
    """Nothing that one does with it changes it; what it hands out can be written on."""
    before = replace(data).fingerprint
    use(data)
    data.indices("train")[:] = 0
    if replace(data).fingerprint != before:
        raise Broken("it is another one after it was used")


def use(data: Dataset) -> None:
    """What is usual: look at it, take some, keep few, prepare a batch."""
    repr(data), data.counts
    rows = some_rows(data)
    part = data.take(rows)
    train = len(data.indices("train"))
    part.few(train=1)
    if train > 1:
        part.with_labels(1)
    if data.preprocess is not None and isinstance(part.samples, Tensor):
        data.preprocess(part.samples, seed=SEED)
    for row in rows.tolist():
        data.samples[row]


def offline(data: Dataset) -> None:
    """Nothing is fetched any more once it is built."""
    with no_network():
        use(data)
        data.take(some_rows(data)).fingerprint  # noqa: B018


@contextmanager
def no_network() -> Iterator[None]:
    """Connections to other machines fail."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise Broken("it opened a network connection")

    patched = [(socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")]
    kept = [getattr(place, name) for place, name in patched]
    try:
        for place, name in patched:
            setattr(place, name, refuse)
        yield
    finally:
        for (place, name), function in zip(patched, kept, strict=True):
            setattr(place, name, function)


LENGTH = "length"
CHECKS: dict[str, Callable[[Dataset], None]] = {
    LENGTH: length,
    "stable indexing": stable_indexing,
    "disjoint splits": disjoint_splits,
    "groups cover exactly": groups_cover,
    "no empty group in a split": no_empty_group,
    "label range": label_range,
    "no identical sample in two splits": no_leak,
    "stable fingerprint": stable_fingerprint,
    "sensitive fingerprint": sensitive_fingerprint,
    "picklable": picklable,
    "unmutated": unmutated,
    "offline after building": offline,
}
