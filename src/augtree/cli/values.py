"""Values from the texts of a command line."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from augtree.baselines.catalogue import is_known
from augtree.errors import ArgumentError, nearest, one_of
from augtree.transforms import spaces

NOTHING = "none"
"""A list without entries."""
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
SPACES: dict[str, Callable[[Any], Any]] = {
    "auto": lambda _: None,
    "images": lambda data: spaces.images(fill=data.fill),
    "images+composites": lambda data: spaces.images(composites=True, fill=data.fill),
    "simclr": lambda _: spaces.simclr(),
    "simclr+composites": lambda data: spaces.simclr(composites=True, fill=data.fill),
    "graphs": lambda _: spaces.graphs(),
    "graphs+composites": lambda _: spaces.graphs(composites=True),
}
"""The space of each name for a data set; None leaves the choice to the search."""


def space_by_name(name: str, data: Any) -> Any:
    """A space by its name, with the options that suit the data."""
    return SPACES[one_of("--space", name, SPACES)](data)


def kinds_of(hint: Any) -> set[Any]:
    """The types that a field may have, apart from None."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return (set(typing.get_args(hint)) if union else {hint}) - {types.NoneType}


def parse(place: str, text: str, hint: Any) -> Any:
    """A text as a value of the type that a field has.

    >>> parse("looks", "0.3,0.6", tuple[float, ...]), parse("last", "3", int), parse("plain", "yes", bool)
    ((0.3, 0.6), 3, True)
    >>> parse("looks", "none", tuple[float, ...])
    ()
    """
    kinds = kinds_of(hint)
    listed = next((kind for kind in kinds if typing.get_origin(kind) in (tuple, Sequence)), None)
    if listed is not None:
        if text == NOTHING:
            return ()
        return tuple(parse(place, part, typing.get_args(listed)[0]) for part in text.split(","))
    if bool in kinds:
        return BOOLEANS[one_of(place, text.lower(), BOOLEANS)]
    if str in kinds or not {int, float} & kinds:
        return text
    try:
        value = float(text)
    except ValueError:
        rule = "must be a number" if float in kinds else "must be a whole number"
        raise ArgumentError(place, rule, text) from None
    if float in kinds:
        return value
    if not math.isfinite(value) or value != int(value):
        raise ArgumentError(place, "must be a whole number", text)
    return int(value)


def assignments(option: str, texts: Iterable[str], hints: Mapping[str, Any], owner: str = "") -> dict[str, Any]:
    """Values from texts NAME=VALUE, with the types of the names."""
    chosen: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in hints or not value:
            known = f"must be NAME=VALUE with one of {', '.join(hints)}{owner}{nearest(name, hints)}"
            raise ArgumentError(option, known if hints else f"must be left out{owner}: it has no options", text)
        chosen[name] = parse(f"{option} {name}", value, hints[name])
    return chosen


def policies_by_name(policies: Iterable[str]) -> dict[str, Any]:
    """Policies by short names; files of the same name are told apart by their folders."""
    found: dict[str, Any] = {}
    for policy in policies:
        path = Path(policy)
        name = policy if is_known(policy) else path.stem
        if name in found or name in ("tree", "policy", "forest"):
            name = f"{path.parent.name}/{path.stem}" if path.parent.name else name
        if name in found:
            raise ArgumentError("policies", "must not have two of one name", name)
        found[name] = policy.lower() if is_known(policy) else policy
    return found
