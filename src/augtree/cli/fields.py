"""Options of a command, made from the fields of dataclasses: the docstring under a field is the option's help."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any

import typer

from augtree.cli.values import kinds_of, parse


def docs_of(owner: type) -> dict[str, str]:
    """The docstring under each field of a dataclass; that of a subclass counts before that of its base."""
    found: dict[str, str] = {}
    for cls in reversed(owner.__mro__):
        if not dataclasses.is_dataclass(cls):
            continue
        body = typing.cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]).body
        for field, doc in pairwise(body):
            text = doc.value.value if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) else None
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
                found[field.target.id] = " ".join(text.split())
    return found


def options_of(
    owner: type, panel: str, *, skip: Iterable[str] = (), defaults: Mapping[str, Any] = types.MappingProxyType({})
) -> list[inspect.Parameter]:
    """An option for each field of a dataclass; `defaults` are those that differ from the fields'."""
    hints, docs = typing.get_type_hints(owner), docs_of(owner)
    found = []
    for field in dataclasses.fields(owner):
        if field.name not in skip:
            help_text = docs[field.name]
            default = defaults.get(field.name, field.default)
            if default is not None and not isinstance(default, bool):
                shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
                help_text = f"{help_text.rstrip('.')} (default: {shown})."
            found.append(parameter(field.name, hints[field.name], help_text, panel))
    return found


def parameter(name: str, hint: Any, help_text: str, panel: str) -> inspect.Parameter:
    """An option that may be left out: a flag, a number, or a text that `arguments_of` reads."""
    kind = next((kind for kind in (bool, int, float) if kinds_of(hint) == {kind}), str)
    annotation = Annotated[kind | None, typer.Option(help=help_text, rich_help_panel=panel)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def arguments_of(owner: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, as arguments of the dataclass."""
    hints = typing.get_type_hints(owner)
    return {
        name: parse(option_name(name), value, hints[name]) if isinstance(value, str) else value
        for name, value in given.items()
        if name in hints and value is not None
    }


def option_name(parameter_name: str) -> str:
    """A parameter as it is called on the command line."""
    return f"--{parameter_name.replace('_', '-')}"
