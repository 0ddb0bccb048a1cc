"""Examples in docstrings that have no section of their own get one, so that the API reference shows them as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

HEADING = "Examples\n--------\n"


class Examples(Extension):  # type: ignore[misc]
    """Puts the heading before the first `>>>`."""

    def on_object(self, *, obj: Object, **rest: Any) -> None:  # noqa: ARG002
        """Change the docstring of one object."""
        if obj.docstring and HEADING not in obj.docstring.value:
            obj.docstring.value = with_heading(obj.docstring.value)


def with_heading(docstring: str) -> str:
    """The docstring with a section of examples."""
    return re.sub(r"^>>> ", rf"{HEADING}>>> ", docstring, count=1, flags=re.MULTILINE)
