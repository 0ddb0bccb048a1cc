"""The public functions and classes: what the API reference shows and `tests/test_package.py` checks."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import augtree


def public_modules() -> list[ModuleType]:
    """The package, the subpackages that list their names, and the modules among these names; not the command line."""
    names = [info.name for info in pkgutil.walk_packages(augtree.__path__, "augtree.") if info.ispkg]
    waiting = [augtree, *(importlib.import_module(name) for name in names if not name.startswith("augtree.cli"))]
    found: dict[str, ModuleType] = {}
    while waiting:
        module = waiting.pop()
        if hasattr(module, "__all__") and module.__name__ not in found:
            found[module.__name__] = module
            waiting += [value for name in module.__all__ if isinstance(value := getattr(module, name), ModuleType)]
    return sorted(found.values(), key=lambda module: (module.__name__.count("."), module.__name__))


def public_objects() -> dict[str, object]:
    """Every public function and class, by the name under which a user finds it first."""
    found: dict[str, object] = {}
    for module in public_modules():
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value not in found.values():
                found[f"{module.__name__}.{name}"] = value
    return found
