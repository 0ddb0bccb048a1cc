"""Unreadable pictures are left out and named, unless they are many or all of a split, group or class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from augtree.data.splits import SPLITS
from augtree.errors import DataError, printable, shown

MAX_UNREADABLE = 0.5
"""The largest share of the pictures that may be unreadable."""
SHOWN = 5
"""The number of names in a message."""


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
    """Raise if more than half are unreadable, or all of a split, a group, or the training samples of a class."""
    if not problems:
        return
    left, train = np.ones(len(names), bool), split == 0
    left[list(problems)] = False
    if len(problems) > MAX_UNREADABLE * len(names):
        raise error_for(place, "at least half of the pictures must be readable", names, problems)
    lost = [
        *(f"split {name}" for name in emptied(split[:, None] == np.arange(len(SPLITS)), left, SPLITS)),
        *(f"group {name}" for name in emptied(groups[:, None] == np.arange(len(group_names)), left, group_names)),
        *(
            f"training samples of {name}"
            for name in emptied(class_members(labels, classes)[train], left[train], classes)
        ),
    ]
    if lost:
        rule = f"every split, group and class must keep readable pictures, but {first_few(lost)} lost all"
        raise error_for(place, rule, names, problems)


def class_members(labels: NDArray[Any], classes: Sequence[str]) -> NDArray[np.bool_]:
    """Which samples are of which class: [samples, classes]."""
    return labels > 0 if labels.ndim == 2 else labels[:, None] == np.arange(len(classes))


def emptied(member: NDArray[np.bool_], left: NDArray[np.bool_], names: Sequence[str]) -> list[str]:
    """The names of the columns that had members and have none left."""
    lost: NDArray[np.bool_] = np.any(member, axis=0) & ~np.any(member[left], axis=0)
    return [printable(name) for name, is_lost in zip(names, lost, strict=True) if is_lost]


def error_for(place: str, rule: str, names: Sequence[str], problems: Mapping[int, str]) -> DataError:
    """One error for all pictures that cannot be read."""
    lines = [f"  {one_line(names[row])}: {problems[row]}" for row in sorted(problems)[:SHOWN]]
    more = [f"  and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return DataError("\n".join([f"{place}: {rule}; {len(problems)} of {len(names)} are unreadable:", *lines, *more]))


def note_for(names: Sequence[str], problems: Mapping[int, str], kept: Path | None) -> tuple[str, ...]:
    """A note on the pictures that are left out."""
    if not problems:
        return ()
    some = first_few([f"{one_line(names[row])}: {problems[row]}" for row in sorted(problems)], "; ")
    where = f"; all are listed in {kept / 'broken.csv'}" if kept is not None else ""
    return (f"{len(problems)} of {len(names)} pictures are unreadable and left out: {some}{where}",)


def first_few(texts: Sequence[str], between: str = ", ") -> str:
    """The first few texts, and how many more there are."""
    more = [f"and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return between.join([*texts[:SHOWN], *more])


def one_line(name: str) -> str:
    """A name that cannot break a message."""
    return shown(name, 200)[1:-1]
