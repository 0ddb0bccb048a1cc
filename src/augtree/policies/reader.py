"""Reads a policy file, version 1. A file from a stranger is data: reading it runs none of its content.

Every failure is a PolicyFileError that names the place.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from augtree.errors import ArgumentError, PolicyFileError, escaped, nearest, shown
from augtree.policies.forest import Forest
from augtree.policies.tree import DEEPEST, Tree
from augtree.transforms import BUILT_IN, Chain, OneOf, Policy, Transform, Wrapped

VERSION = 1
LARGEST_FILE = 1 << 18
DEEPEST_NESTING = 64
KNOWN: dict[str, type[Transform]] = {**BUILT_IN, "Tree": Tree}
Built = TypeVar("Built")
Place = tuple[str | int, ...]
"""Where something stands in the file: keys and positions, from the outside in."""


def read_text(path: Path) -> str:
    """The content of a file that may be a policy."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise PolicyFileError(path, "", "a policy must be a file, got something else (a folder?)")
        if info.st_size > LARGEST_FILE:
            raise PolicyFileError(path, "", f"a policy has at most {LARGEST_FILE} bytes, got {info.st_size}")
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, PolicyFileError):
            raise
        if isinstance(error, UnicodeDecodeError):
            problem = f"a policy is text in UTF-8, got byte {error.object[error.start]:#04x} at offset {error.start}"
        else:
            problem = f"a policy must be a file that can be read ({getattr(error, 'strerror', None) or error})"
        raise PolicyFileError(path, "", problem) from error


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the file, doubled keys and all."""


class Reader:
    """Reads one file; its errors name the place."""

    def __init__(self, path: Path, transforms: Iterable[Transform | type[Transform]]) -> None:
        self.path = path
        self.mine: dict[str, Wrapped | type[Transform]] = {}
        if not isinstance(transforms, Iterable):
            raise ArgumentError("transforms", "must be a list", transforms)
        for given in transforms:
            name = given.__name__ if isinstance(given, type) else getattr(given, "name", "")
            if not (isinstance(given, Wrapped) or (isinstance(given, type) and issubclass(given, Transform))):
                rule = "must be wrapped functions (augtree.wrap) or Transform classes"
                raise ArgumentError("transforms", rule, given)
            if name in KNOWN:
                raise ArgumentError("transforms", "must not have the name of a built-in transform", name)
            known = self.mine.setdefault(name, given)
            same = given is known or (
                isinstance(given, Wrapped) and isinstance(known, Wrapped) and given.function == known.function
            )
            if not same:
                raise ArgumentError("transforms", "must not have two of one name", name)

    def fail(self, place: Place, problem: str) -> PolicyFileError:
        """The error for a place."""
        return PolicyFileError(self.path, "".join(f"/{escaped(str(part))}" for part in place), problem)

    # -- the text ------------------------------------------------------------------------------------------------

    def document(self, text: str) -> Any:
        """The text as JSON: no doubled keys, no numbers that are none, not too deep."""
        try:
            found = json.loads(text, object_pairs_hook=Pairs)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            hint = " (a comma too many?)" if "property name" in error.msg else ""
            raise self.fail((), f"a policy must be JSON, but in {where}: {error.msg}{hint}") from error
        except (RecursionError, ValueError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise self.fail((), f"a policy must be JSON that can be read, but {shown(reason, 120)}") from error
        return self.to_plain(found, ())

    def to_plain(self, value: Any, place: Place) -> Any:
        """The value with objects as dicts."""
        if len(place) > DEEPEST_NESTING:
            raise self.fail(place, f"a policy may be nested {DEEPEST_NESTING} deep, got more")
        if isinstance(value, Pairs):
            out: dict[str, Any] = {}
            for key, entry in value:
                here = (*place, self.printable(key, place))
                if key in out:
                    raise self.fail(here, "a key must not stand twice in an object")
                out[key] = self.to_plain(entry, here)
            return out
        if isinstance(value, list):
            return [self.to_plain(entry, (*place, i)) for i, entry in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            raise self.fail(place, f"a number must be finite, got {value}")
        return self.printable(value, place) if isinstance(value, str) else value

    def printable(self, text: str, place: Place) -> str:
        """Text that can be written to a file again."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.fail(place, f"text must be valid Unicode, got {shown(text)}") from error
        return text

    # -- what it means -------------------------------------------------------------------------------------------

    def policy(self, text: str) -> Policy:
        """The policy that the text describes."""
        if not isinstance(text, str):
            raise self.fail((), f"a policy must be text, got {shown(text)}")
        document = self.document(text)
        if not isinstance(document, dict):
            raise self.fail((), f"a policy must be a JSON object, got {shown(document)}")
        if "augtree" not in document:
            raise self.fail((), 'a policy must begin with "augtree": 1')
        version = document.pop("augtree")
        if isinstance(version, bool) or version != VERSION:
            raise self.fail(("augtree",), f"the version must be {VERSION}, got {shown(version)}")
        kind = document.pop("kind", None)
        if kind == "tree":
            return self.tree(document, ())
        if kind == "forest":
            return self.forest(document)
        if kind == "transform":
            self.only(document, ("transform",), ())
            return self.transform(document["transform"], ("transform",))
        raise self.fail(("kind",), f"kind must be tree, forest or transform, got {shown(kind)}")

    def only(self, found: Any, wanted: tuple[str, ...], place: Place) -> dict[str, Any]:
        """An object with just these keys."""
        if not isinstance(found, dict):
            raise self.fail(place, f"there must be an object with {' and '.join(wanted)}, got {shown(found)}")
        for key in found:
            if key not in wanted:
                raise self.fail((*place, key), f"there must be nothing but {', '.join(wanted)}, got {shown(key)}")
        for key in wanted:
            if key not in found:
                raise self.fail(place, f"{key} is missing")
        return found

    def forest(self, document: dict[str, Any]) -> Forest:
        """A forest from its groups."""
        groups = self.only(document, ("groups",), ())["groups"]
        if not isinstance(groups, dict):
            raise self.fail(("groups",), f"groups must be an object, got {shown(groups)}")
        members = {}
        for name, member in groups.items():
            place = ("groups", name)
            self.only(member, ("weight", "nodes"), place)
            members[name] = (self.tree({"nodes": member["nodes"]}, place), member["weight"])
        return self.built(Forest, members, ())

    def tree(self, found: Any, place: Place) -> Tree:
        """A tree from its nodes."""
        given = self.only(found, ("nodes",), place)["nodes"]
        place = (*place, "nodes")
        if not isinstance(given, dict):
            raise self.fail(place, f"nodes must be an object, got {shown(given)}")
        nodes = {}
        for index, node in given.items():
            if not re.fullmatch("[1-9][0-9]{0,3}", index) or int(index) >= 2**DEEPEST:
                raise self.fail(
                    (*place, index), f"an index must be a number from 1 to {2**DEEPEST - 1}, got {shown(index)}"
                )
            nodes[int(index)] = self.step(node, (*place, index))
        return self.built(Tree, nodes, place[:-1])

    def step(self, found: Any, place: Place, beside: str = "p") -> tuple[Transform, Any]:
        """A transform and the number beside it."""
        given = self.only(found, ("transform", beside), place)
        return self.transform(given["transform"], (*place, "transform")), given[beside]

    def transform(self, found: Any, place: Place) -> Transform:
        """A transform from its name and arguments."""
        if not isinstance(found, dict) or not isinstance(found.get("name"), str):
            problem = f"a transform must be an object with a name, got {shown(found)}"
            raise self.fail((*place, "name") if isinstance(found, dict) else place, problem)
        arguments = {key: value for key, value in found.items() if key != "name"}
        name = found["name"]
        known = self.mine.get(name) or KNOWN.get(name)
        if known is None:
            hint = nearest(name, [*KNOWN, *self.mine]) or " (give yours to load(path, transforms=[...]))"
            raise self.fail((*place, "name"), f"{shown(name)} is no built-in transform{hint}")
        if known is Tree:
            return self.tree(arguments, place)
        if known is Chain:
            return self.parts(Chain, "steps", "p", arguments, place)
        if known is OneOf:
            return self.parts(OneOf, "choices", "weight", arguments, place)
        if not isinstance(known, type):
            return self.wrapped(known, arguments, place)
        decoded = {key: self.decoded(value, (*place, key)) for key, value in arguments.items()}
        return self.built(known.from_arguments, decoded, place)

    def decoded(self, value: Any, place: Place) -> Any:
        """An argument; an object among them is a transform."""
        if isinstance(value, list):
            return [self.decoded(entry, (*place, i)) for i, entry in enumerate(value)]
        return self.transform(value, place) if isinstance(value, dict) else value

    def parts(
        self, kind: Callable[..., Built], named: str, beside: str, arguments: dict[str, Any], place: Place
    ) -> Built:
        """A chain from its steps, a choice from its transforms: each with a number beside it."""
        parts = self.only(arguments, (named,), place)[named]
        if not isinstance(parts, list):
            raise self.fail((*place, named), f"{named} must be a list, got {shown(parts)}")
        found = [self.step(part, (*place, named, i), beside) for i, part in enumerate(parts)]
        return self.built(kind, found, place)

    def wrapped(self, given: Wrapped, arguments: dict[str, Any], place: Place) -> Wrapped:
        """The user's own function, at the file's magnitude."""
        for key, value in arguments.items():
            if key not in ("takes", "magnitude"):
                raise self.fail((*place, key), f"there must be nothing but takes and magnitude, got {shown(value)}")
        takes, magnitude = arguments.get("takes", given.takes), arguments.get("magnitude")
        if takes != given.takes:
            raise self.fail(
                (*place, "takes"), f"takes must be {given.takes!r} as in the one given, got {shown(takes)}"
            )
        if (magnitude is None) != (given.magnitude is None):
            rule = f"must be there if the {given.name} given has one, and only then"
            raise self.fail((*place, "magnitude"), f"magnitude {rule}, got {shown(magnitude)}")
        return given if magnitude is None else self.built(given.at, magnitude, place)

    def built(self, make: Callable[[Any], Built], arguments: Any, place: Place) -> Built:
        """Make something of its arguments; what it objects to gets its place."""
        try:
            return make(arguments)
        except ArgumentError as error:
            inner = tuple(part.replace("~1", "/").replace("~0", "~") for part in error.field.split("/") if part)
            what = "" if not inner or inner[-1].isdigit() else f"{inner[-1]} "
            raise self.fail((*place, *inner), f"{what}{error.problem}") from error
        except PolicyFileError:
            raise
        except Exception as error:  # a class that is not ours may raise anything
            raise self.fail(
                place, f"this could not be made: {type(error).__name__}: {shown(str(error), 200)}"
            ) from error
