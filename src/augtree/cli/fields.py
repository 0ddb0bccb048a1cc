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

NO_TEXTS: Mapping[str, str] = types.MappingProxyType({})


def docs_of(owner: type) -> dict[str, str]:
    """The docstring under each field of a dataclass; that of a subclass counts before that of its base."""
    docs: dict[str, str] = {}
    for cls in reversed(owner.__mro__):
        if not dataclasses.is_dataclass(cls):
            continue
        body = typing.cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]).body
        for field, doc in pairwise(body):
            text = doc.value.value if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) else None
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
                docs[field.target.id] = " ".join(text.split())
    return docs


def options_of(
    owner: type,
    panel: str,
    *,
    skip: Iterable[str] = (),
    texts: Mapping[str, str] = NO_TEXTS,
    default_texts: Mapping[str, str] = NO_TEXTS,
) -> list[inspect.Parameter]:
    """An option for each field of a dataclass; `texts` and `default_texts` replace what the help says of a field."""
    hints, docs = typing.get_type_hints(owner), {**docs_of(owner), **texts}
    parameters = []
    for field in dataclasses.fields(owner):
        if field.name not in skip:
            help_text = docs[field.name]
            default = field.default
            if default is not None and not isinstance(default, bool):
                shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
                help_text = f"{help_text.rstrip('.')} (default: {default_texts.get(field.name, shown)})."
            parameters.append(parameter(field.name, hints[field.name], help_text, panel))
    return parameters


def parameter(name: str, hint: Any, help_text: str, panel: str) -> inspect.Parameter:
    """An optional option: a flag, a number, or a text that `arguments_of` parses."""
    kind = next((kind for kind in (bool, int, float) if kinds_of(hint) == {kind}), str)
    annotation = Annotated[kind | None, typer.Option(help=help_text, rich_help_panel=panel)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def arguments_of(owner: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options that were given, as arguments of the dataclass."""
    hints = typing.get_type_hints(owner)
    return {
        name: parse(option_name(name), value, hints[name]) if isinstance(value, str) else value
        for name, value in values.items()
        if name in hints and value is not None
    }


def option_name(parameter_name: str) -> str:
    """The option of a parameter on the command line."""
    return f"--{parameter_name.replace('_', '-')}"
