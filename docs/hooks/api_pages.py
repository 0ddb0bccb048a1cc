"""The API reference: a page for each public module, whose text mkdocstrings takes from the docstrings."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from public_names import public_modules, public_objects

INTRODUCTION = """# API reference

Every public name, generated from the docstrings. `import augtree as at` gives the names of [augtree](augtree.md);
`at.data`, `at.errors`, `at.executors`, `at.search`, `at.spaces`, `at.tasks`, `at.testing` and `at.transforms` are
modules.

| module | | names |
|---|---|---|
"""
ALIASES = {"augtree.runs.executors": "at.executors", "augtree.transforms.spaces": "at.spaces"}
"""Modules that have a shorter name."""
INHERITED = {
    "augtree.tasks": "\n    options:\n      inherited_members: true",
    "augtree.transforms": "\n    options:\n      inherited_members: [magnitude, fill]",
}
"""Inherited members that are shown: the options of all tasks, and those of transforms."""


def names_by_module() -> dict[str, list[str]]:
    """The public names of each module that is the first to have any, the package itself first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in public_objects():
        module, _, name = path.rpartition(".")
        found[module].append(name)
    return dict(sorted(found.items()))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the navigation, where it says `API`."""
    for section in config.nav or []:
        for parts in section.values():
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, dict) and "API" in part:
                    part["API"] = ["api/index.md", *({module: f"api/{module}.md"} for module in names_by_module())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    rows = []
    about = {module.__name__: inspect.getdoc(module) or "" for module in public_modules()}
    for module, names in names_by_module().items():
        summary = about[module].partition("\n")[0]
        links = ", ".join(f"[{name}]({module}.md#{module}.{name})" for name in names)
        rows.append(f"| [{module}]({module}.md) | {summary} | {links} |")
        add(files, config, f"api/{module}.md", page(module, summary, names))
    add(files, config, "api/index.md", INTRODUCTION + "\n".join(rows) + "\n")
    return files


def page(module: str, summary: str, names: list[str]) -> str:
    """The page of a module, as Markdown with the marks of mkdocstrings."""
    alias = f" In Python: `{ALIASES[module]}`." if module in ALIASES else ""
    options = INHERITED.get(module, "")
    in_order = sorted(names, key=lambda name: (name[0].isupper(), name))  # functions, then classes
    entries = "\n\n".join(f"::: {module}.{name}{options}" for name in in_order)
    return f"# {module}\n\n{summary}{alias}\n\n{entries}\n"


def add(files: Files, config: Any, uri: str, content: str) -> None:
    """Add a page that is in no file."""
    files.append(File.generated(config, uri, content=content))
