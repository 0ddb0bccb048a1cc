"""Policies as JSON files, version 1; docs/file-format.md describes the form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from augtree.errors import ArgumentError, PolicyFileError
from augtree.files import write_atomically
from augtree.policies.forest import Forest
from augtree.policies.reader import KNOWN, LARGEST_FILE, VERSION, Reader, read_text
from augtree.policies.tree import Tree
from augtree.transforms import Chain, OneOf, Policy, Transform

__all__ = ["KNOWN", "LARGEST_FILE", "Reader", "encoded", "load", "save", "to_json"]

LINE = 100
"""The longest line of a file, in characters."""
IN_A_RUN = ("tree.json", "forest.json", "policy.json")
"""What a run's folder calls its policy: a search's, a forest's, a training's."""


def to_json(policy: Policy) -> str:
    """A policy as the text of a file."""
    if isinstance(policy, Forest):
        groups = {name: {"weight": weight, **encoded(tree)} for name, (tree, weight) in policy.groups.items()}
        for group in groups.values():
            del group["name"]
        body: dict[str, Any] = {"kind": "forest", "groups": groups}
    elif isinstance(policy, Tree):
        body = {"kind": "tree", "nodes": encoded(policy)["nodes"]}
    elif isinstance(policy, Transform):
        body = {"kind": "transform", "transform": encoded(policy)}
    else:
        raise ArgumentError("policy", "must be a tree, a forest or a transform", policy)
    return laid_out({"augtree": VERSION, **body}, "") + "\n"


def encoded(value: Any) -> Any:
    """A transform, or anything among its arguments, as JSON has it."""
    if isinstance(value, Tree):
        nodes = {str(i): {"transform": encoded(node.transform), "p": node.p} for i, node in value.nodes.items()}
        return {"name": "Tree", "nodes": nodes}
    if isinstance(value, Chain):
        return {"name": "Chain", "steps": [{"transform": encoded(step), "p": p} for step, p in value.pairs]}
    if isinstance(value, OneOf):
        choices = [{"transform": encoded(choice), "weight": weight} for choice, weight in value.pairs]
        return {"name": "OneOf", "choices": choices}
    if isinstance(value, Transform):
        return {"name": value.name, **{key: encoded(entry) for key, entry in value.arguments().items()}}
    if isinstance(value, list | tuple):
        return [encoded(entry) for entry in value]
    return value


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


def save(policy: Policy, path: str | Path) -> None:
    """Write a policy to a JSON file; either all of it or nothing.

    Parameters
    ----------
    policy
        A tree, a forest or a transform.
    path
        The file; one that exists is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from augtree.transforms import Rotate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Rotate(0.6), f"{folder}/rotate.json")
    ...     print(load(f"{folder}/rotate.json"))
    Rotate(0.6)

    """
    text = to_json(policy)
    if len(text.encode()) > LARGEST_FILE:
        raise ArgumentError("policy", f"must fit into a file of {LARGEST_FILE} bytes", f"{len(text.encode())} bytes")
    try:
        Reader(Path(path), ()).document(text)
    except PolicyFileError as error:
        raise ArgumentError("policy", f"could not be read again ({error.problem})") from error
    write_atomically(Path(path), text.encode())


def load(path: str | Path, *, transforms: Iterable[Transform | type[Transform]] = ()) -> Any:
    """Read a policy (a tree, a forest or a transform) from a file or a run; none of its content is run.

    Parameters
    ----------
    path
        The JSON file, or the folder of a run that has one.
    transforms
        What the file names but augtree does not have: your wrapped functions, your own classes.

    Examples
    --------
    >>> import tempfile
    >>> from augtree.transforms import wrap
    >>> dim = wrap(lambda picture: picture // 2, name="Dim")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Tree().with_node(1, dim, p=0.5).save(f"{folder}/tree.json")
    ...     print(load(f"{folder}/tree.json", transforms=[dim]))
    Tree(1: Dim p=0.5)

    """
    is_run = os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises where a name is too long)
    path = policy_in(Path(path)) if is_run else Path(path)
    return Reader(path, transforms).policy(read_text(path))


def policy_in(folder: Path) -> Path:
    """The policy of a run's folder."""
    found = next((folder / name for name in IN_A_RUN if (folder / name).is_file()), None)
    if found is None:
        rule = f"a folder must be that of a run with a policy ({', '.join(IN_A_RUN)}), but there is none"
        hint = " yet: the run is not done" if (folder / "spec.json").is_file() else ""
        raise PolicyFileError(folder, "", rule + hint)
    return found
