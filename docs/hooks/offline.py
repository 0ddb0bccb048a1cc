"""Refuses pages that would load anything from elsewhere: the site works offline and tells nobody who reads it."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.exceptions import PluginError

NAMES = r"""(?:link\b(?![^>]*rel=["']?(?:canonical|prev|next|alternate))|script\b|img\b|iframe\b)"""
LOADED = re.compile(rf"""<{NAMES}[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'>\s]+)""")
"""An element that loads something from elsewhere; a link may also only name another page."""


def on_post_page(output: str, page: Any, **rest: Any) -> str:  # noqa: ARG001
    """Look at what a page loads."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri}: must load nothing from elsewhere, but it has {found[1]}")
    return output
