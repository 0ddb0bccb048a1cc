"""Unreadable pictures are left out and named, unless they are many or all of a split, group or class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.data.splits import SPLITS
from augtree.errors import DataError, shown

MOST = 0.5
"""The largest share of the pictures that may be broken."""
NAMED = 5


def check_left_out(
    place: str,
    names: Sequence[str],
    problems: Mapping[int, str],
    labels: NDArray[Any],
    classes: Sequence[str],
    split: NDArray[np.int8],
    groups: NDArray[np.int64],
    group_names: Sequence[str],
) -> None:
    """Raise where more than half are broken, or all of a split, of a group, or of the training samples of a class."""
    if not problems:
        return
    left, train = np.ones(len(names), bool), split == 0
    left[list(problems)] = False
    if len(problems) > MOST * len(names):
        raise error_for(place, "at least half of the pictures must be readable", names, problems)
    lost = [
        *(f"split {name}" for name in gone(split[:, None] == np.arange(len(SPLITS)), left, SPLITS)),
        *(f"group {name}" for name in gone(groups[:, None] == np.arange(len(group_names)), left, group_names)),
        *(f"training samples of {name}" for name in gone(of_class(labels, classes)[train], left[train], classes)),
    ]
    if lost:
        rule = f"every split, group and class must keep readable pictures, but {named(lost)} lost all"
        raise error_for(place, rule, names, problems)


def of_class(labels: NDArray[Any], classes: Sequence[str]) -> NDArray[np.bool_]:
    """Which samples are of which class."""
    return labels > 0 if labels.ndim == 2 else labels[:, None] == np.arange(len(classes))


def gone(member: NDArray[np.bool_], left: NDArray[np.bool_], names: Sequence[str]) -> list[str]:
    """The names of what has members, but none that are left."""
    lost: NDArray[np.bool_] = np.any(member, axis=0) & ~np.any(member[left], axis=0)
    return [name for name, is_lost in zip(names, lost, strict=True) if is_lost]


def error_for(place: str, rule: str, names: Sequence[str], problems: Mapping[int, str]) -> DataError:
    """One error for all pictures that cannot be read."""
    lines = [f"  {one_line(names[row])}: {problems[row]}" for row in sorted(problems)[:NAMED]]
    more = [f"  and {len(problems) - NAMED} more"] if len(problems) > NAMED else []
    return DataError("\n".join([f"{place}: {rule}; {len(problems)} of {len(names)} are broken:", *lines, *more]))


def note_for(names: Sequence[str], problems: Mapping[int, str], kept: Path | None) -> tuple[str, ...]:
    """A note on the pictures that are left out."""
    if not problems:
        return ()
    some = named([f"{one_line(names[row])}: {problems[row]}" for row in sorted(problems)], "; ")
    where = f"; all are listed in {kept / 'broken.csv'}" if kept is not None else ""
    return (f"{len(problems)} of {len(names)} pictures are broken and left out: {some}{where}",)


def named(texts: Sequence[str], between: str = ", ") -> str:
    """The first few of many."""
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    return between.join([*texts[:NAMED], *more])


def one_line(name: str) -> str:
    """A name that cannot break a message."""
    return shown(name, 200)[1:-1]
