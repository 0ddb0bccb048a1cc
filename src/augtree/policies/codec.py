"""Policies as JSON files, version 1. A file from a stranger is data: reading it runs none of its content.

docs/file-format.md describes the form. Every failure is a PolicyFileError that names the place.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from augtree.errors import ArgumentError, PolicyFileError, escaped, shown
from augtree.files import write_atomically
from augtree.policies.forest import Forest
from augtree.policies.tree import Tree
from augtree.transforms import BUILT_IN, Policy, Transform, Wrapped

VERSION = 1
LARGEST_FILE = 1 << 20
DEEPEST_NESTING = 64
LINE = 100
KNOWN: dict[str, type[Transform]] = {**BUILT_IN, "Tree": Tree}


# ---- writing ---------------------------------------------------------------------------------------------------


def to_json(policy: Policy) -> str:
    """A policy as the text of a file."""
    head: dict[str, Any] = {"augtree": VERSION}
    if isinstance(policy, Forest):
        groups = {
            name: {"weight": member.weight, **encoded(member.tree.arguments())}
            for name, member in policy.groups.items()
        }
        body: dict[str, Any] = {"kind": "forest", "groups": groups}
    elif isinstance(policy, Tree):
        body = {"kind": "tree", **encoded(policy.arguments())}
    elif isinstance(policy, Transform):
        body = {"kind": "transform", "transform": encoded(policy)}
    else:
        raise ArgumentError("policy", "must be a tree, a forest or a transform", policy)
    return laid_out({**head, **body}, "") + "\n"


def laid_out(value: Any, indent: str) -> str:
    """JSON for people: what fits on a line stands on one."""
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if not isinstance(value, dict | list) or (len(line) <= LINE and indent):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + laid_out(entry, deeper) for entry in value) + f"\n{indent}]"
    entries = (f"{deeper}{json.dumps(key, ensure_ascii=False)}: {laid_out(value[key], deeper)}" for key in value)
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


def encoded(value: Any) -> Any:
    """A transform, or anything among its arguments, as JSON has it."""
    if isinstance(value, Transform):
        return {"name": value.name, **encoded(value.arguments())}
    if isinstance(value, dict):
        return {key: encoded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(entry) for entry in value]
    return value


def save(policy: Policy, path: str | Path) -> None:
    """Write a policy to a file; either all of it or nothing."""
    write_atomically(Path(path), to_json(policy).encode())


# ---- reading ---------------------------------------------------------------------------------------------------


def load(path: str | Path, *, transforms: Iterable[Transform | type[Transform]] = ()) -> Any:
    """Read a policy (a tree, a forest or a transform) from a file.

    `transforms` brings what the file names but augtree does not have: your wrapped functions, your own classes.
    """
    path = Path(path)
    return Reader(path, transforms).policy(read_text(path))


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
            problem = f"the file must be readable, got {getattr(error, 'strerror', None) or error}"
        raise PolicyFileError(path, "", problem) from error


Built = TypeVar("Built")


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the file, doubled keys and all."""


class Reader:
    """Reads one file; knows the place of everything it complains about."""

    def __init__(self, path: Path, transforms: Iterable[Transform | type[Transform]]) -> None:
        self.path = path
        self.mine: dict[str, Wrapped | type[Transform]] = {}
        for given in transforms:
            name = given.__name__ if isinstance(given, type) else getattr(given, "name", None)
            if not (isinstance(given, Wrapped) or (isinstance(given, type) and issubclass(given, Transform))):
                raise ArgumentError(
                    "transforms", "must be wrapped functions (augtree.wrap) or Transform classes", given
                )
            if name in KNOWN:
                raise ArgumentError("transforms", "must not have the name of a built-in transform", name)
            self.mine[str(name)] = given

    def fail(self, pointer: str, problem: str) -> PolicyFileError:
        """The error for a place."""
        return PolicyFileError(self.path, pointer, problem)

    def policy(self, text: str) -> Policy:
        """The policy that the text describes."""
        document = self.checked(self.parsed(text), "", 0)
        if not isinstance(document, dict):
            raise self.fail("", f"a policy must be a JSON object, got {shown(document)}")
        if "augtree" not in document:
            raise self.fail("", 'a policy must begin with "augtree": 1')
        version = document.pop("augtree")
        if isinstance(version, bool) or version != VERSION:
            raise self.fail("/augtree", f"the version must be {VERSION}, got {shown(version)}")
        kind = document.pop("kind", None)
        if kind == "tree":
            return self.tree(document, "")
        if kind == "forest":
            return self.forest(document)
        if kind == "transform":
            self.only(document, {"transform"}, "")
            return self.transform(document["transform"], "/transform")
        raise self.fail("/kind", f"kind must be tree, forest or transform, got {shown(kind)}")

    def parsed(self, text: str) -> Any:
        """The text as JSON; objects as lists of pairs."""
        try:
            return json.loads(text, object_pairs_hook=Pairs)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise self.fail("", f"a policy must be JSON, got an error in {where} ({error.msg})") from error
        except (RecursionError, ValueError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise self.fail("", f"a policy must be JSON that can be read, but {shown(reason, 120)}") from error

    def checked(self, value: Any, pointer: str, depth: int) -> Any:
        """The value with objects as dicts: no doubled keys, no numbers that are none, not too deep."""
        if depth > DEEPEST_NESTING:
            raise self.fail(pointer, f"a policy may be nested {DEEPEST_NESTING} deep, got more")
        if isinstance(value, Pairs):
            out: dict[str, Any] = {}
            for key, entry in value:
                place = f"{pointer}/{escaped(key)}"
                if key in out:
                    raise self.fail(place, "a key must not stand twice in an object, got it again")
                out[self.printable(key, place)] = self.checked(entry, place, depth + 1)
            return out
        if isinstance(value, list):
            return [self.checked(entry, f"{pointer}/{i}", depth + 1) for i, entry in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            raise self.fail(pointer, f"a number must be finite, got {value}")
        return self.printable(value, pointer) if isinstance(value, str) else value

    def printable(self, text: str, pointer: str) -> str:
        """Text that can be written to a file again."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.fail(pointer, f"text must be valid Unicode, got {shown(text)}") from error
        return text

    def only(self, found: dict[str, Any], wanted: set[str], pointer: str) -> None:
        """Raise unless an object has just these keys."""
        for key in found:
            if key not in wanted:
                raise self.fail(
                    f"{pointer}/{escaped(key)}",
                    f"there must be nothing but {', '.join(sorted(wanted))}, got this",
                )
        for key in sorted(wanted - set(found)):
            raise self.fail(pointer or "", f"there must be {key}, got {shown(sorted(found))}")

    def forest(self, document: dict[str, Any]) -> Forest:
        """A forest from its groups."""
        self.only(document, {"groups"}, "")
        groups = document["groups"]
        if not isinstance(groups, dict):
            raise self.fail("/groups", f"groups must be an object, got {shown(groups)}")
        members = {}
        for name, member in groups.items():
            place = f"/groups/{escaped(name)}"
            if not isinstance(member, dict):
                raise self.fail(place, f"a group must be an object, got {shown(member)}")
            if "weight" not in member:
                raise self.fail(place, f"there must be weight, got {shown(sorted(member))}")
            weight = member.pop("weight")
            members[name] = (self.tree(member, place), weight)
        return self.built(Forest, members, "")

    def tree(self, found: Any, pointer: str) -> Tree:
        """A tree from its nodes."""
        self.only(found, {"nodes"}, pointer)
        return self.built(Tree.from_arguments, self.with_transforms(found, pointer), pointer)

    def transform(self, found: Any, pointer: str) -> Transform:
        """A transform from its name and arguments."""
        if not isinstance(found, dict):
            raise self.fail(pointer, f"a transform must be an object with a name, got {shown(found)}")
        if not isinstance(found.get("name"), str):
            raise self.fail(f"{pointer}/name", f"a transform must have a name, got {shown(found.get('name'))}")
        arguments = dict(found)
        name = arguments.pop("name")
        known = self.mine.get(name) or KNOWN.get(name)
        if known is None:
            raise self.fail(
                f"{pointer}/name",
                f"{shown(name)} is no built-in transform (give yours to load(path, transforms=[...])), found",
            )
        if not isinstance(known, type):
            return self.wrapped(known, arguments, pointer)
        return self.built(known.from_arguments, self.with_transforms(arguments, pointer), pointer)

    def wrapped(self, given: Wrapped, arguments: dict[str, Any], pointer: str) -> Wrapped:
        """The user's own function, at the file's magnitude."""
        takes, magnitude = arguments.pop("takes", given.takes), arguments.pop("magnitude", None)
        self.only(arguments, set(), pointer)
        if takes != given.takes:
            raise self.fail(
                f"{pointer}/takes",
                f"takes must be {given.takes!r} as in the transform given, got {shown(takes)}",
            )
        if (magnitude is None) != (given.magnitude is None):
            raise self.fail(
                f"{pointer}/magnitude",
                f"magnitude must be given in the file if {given.name} has one, and only then",
            )
        return given if magnitude is None else self.built(given.at, magnitude, pointer)

    def with_transforms(self, value: Any, pointer: str) -> Any:
        """Arguments with everything that stands where a transform may stand read as one."""
        if isinstance(value, dict):
            return {
                key: self.transform(entry, f"{pointer}/{escaped(key)}")
                if key == "transform"
                else self.with_transforms(entry, f"{pointer}/{escaped(key)}")
                for key, entry in value.items()
            }
        if isinstance(value, list):
            return [self.with_transforms(entry, f"{pointer}/{i}") for i, entry in enumerate(value)]
        return value

    def built(self, make: Callable[[Any], Built], arguments: Any, pointer: str) -> Built:
        """Make something of its arguments; what it objects to gets its place."""
        try:
            return make(arguments)
        except ArgumentError as error:
            what = error.field.rpartition("/")[2]
            problem = f"{what} {error.rule}, got {shown(error.value)}".strip()
            raise self.fail(f"{pointer}/{error.field}" if error.field else pointer, problem) from error
