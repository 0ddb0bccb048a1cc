"""Copies functions, with all that they use, from augtree's own modules into a module that needs no augtree."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import InspectLoader


@dataclass(frozen=True)
class Part:
    """A function, a class or a constant: its source, and the names in it."""

    text: str
    names: tuple[str, ...]
    is_constant: bool


@dataclass(frozen=True)
class Source:
    """A module taken apart."""

    parts: dict[str, Part]
    """By name; names that are assigned together have the same part."""
    imports: dict[str, tuple[str, str]]
    """What a name is imported from: a module, and the name there (or nothing, for the module itself)."""


@cache
def taken_apart(module: str) -> Source:
    """The parts and imports of a module."""
    text = source_text(module)
    parts: dict[str, Part] = {}
    imports: dict[str, tuple[str, str]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            imports |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign):
            part = Part(source_of(text, node), tuple(used_in(node)), isinstance(node, ast.Assign | ast.AnnAssign))
            parts |= dict.fromkeys(defined_by(node), part)
    return Source(parts, imports)


def source_text(module: str) -> str:
    """The text of a module, which is not imported: what it needs may not be installed."""
    spec = importlib.util.find_spec(module)
    loader = None if spec is None else spec.loader
    text = loader.get_source(module) if isinstance(loader, InspectLoader) else None
    if text is None:
        raise RuntimeError(f"the source of {module} must be there to be exported")
    return text


def source_of(text: str, node: ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign) -> str:
    """The lines of a definition, its decorators among them."""
    decorators = [] if isinstance(node, ast.Assign | ast.AnnAssign) else node.decorator_list
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def defined_by(node: ast.AST) -> Iterator[str]:
    """The names that a definition gives a value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    yield from (name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name))


def used_in(node: ast.AST) -> Iterator[str]:
    """The names that a definition takes from elsewhere, in the order in which they stand there, each once."""
    nodes = list(ast.walk(node))
    local = {each.arg for each in nodes if isinstance(each, ast.arg)}
    local |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    names = [each for each in nodes if isinstance(each, ast.Name) and each.id not in local]
    yield from dict.fromkeys(name.id for name in sorted(names, key=lambda name: (name.lineno, name.col_offset)))


@dataclass
class Bundle:
    """A module that is being put together: code of its own, and what that uses of some modules."""

    modules: tuple[str, ...]
    """Where names are looked for, in this order."""
    own: frozenset[str] = frozenset()
    """Names that the module defines itself."""
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, names: Iterable[str]) -> None:
        """Take in what these names are, and all that it uses."""
        for name in names:
            home = next((module for module in self.modules if name in taken_apart(module).parts), None)
            if home is not None:
                self.take(name, home)
            else:
                found = (taken_apart(module).imports.get(name) for module in self.modules)
                self.resolve(name, next((each for each in found if each), None))

    def add_code(self, code: str) -> None:
        """Take in what some code uses."""
        self.add(used_in(ast.parse(code)))

    def resolve(self, name: str, origin: tuple[str, str] | None) -> None:
        """Take in an imported name: its source where it is augtree's, its import otherwise."""
        if origin is None or name in self.own:
            return
        module, original = origin
        if module.startswith("augtree."):
            self.take(original, module)
        elif self.imports.setdefault(name, origin) != origin:
            raise ValueError(f"{name} must be imported from one place, got {origin} and {self.imports[name]}")

    def take(self, name: str, module: str) -> None:
        """Copy a part of a module, and what it uses."""
        source = taken_apart(module)
        if name in source.imports:
            self.resolve(name, source.imports[name])
            return
        part = source.parts.get(name)
        taken = self.constants if part and part.is_constant else self.functions
        if part is None or name in self.own or part.text in taken.values():
            return
        if name in taken:
            raise ValueError(f"{name} must have one meaning, got another one in {module}")
        if not part.is_constant:
            taken[name] = part.text
        for used in part.names:
            self.take(used, module)
        if part.is_constant:  # after those that it is made of
            taken[name] = part.text

    def import_lines(self) -> list[str]:
        """The imports: those of the standard library, then the others."""
        names: dict[str, list[str]] = {}
        lines: dict[bool, list[str]] = {True: [], False: []}
        for name, (module, original) in sorted(self.imports.items()):
            if original:
                names.setdefault(module, []).append(original if name == original else f"{original} as {name}")
            else:
                lines[is_standard(module)].append(f"import {module}" + ("" if name == module else f" as {name}"))
        for module, each in names.items():
            lines[is_standard(module)].append(f"from {module} import {', '.join(each)}")
        standard, others = (sorted(lines[kind], key=by_kind) for kind in (True, False))
        return [*standard, *([""] if standard else []), *others]


def is_standard(module: str) -> bool:
    """Whether a module is of the standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def by_kind(line: str) -> tuple[bool, str]:
    """Whole modules before names from modules."""
    return line.startswith("from"), line
