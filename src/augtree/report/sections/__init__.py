"""The sections of a page: each takes a run as it was gathered, and is nothing where it has nothing to show."""

from __future__ import annotations

from typing import NamedTuple

from augtree.report.markup import Html


class Section(NamedTuple):
    """A section of a page."""

    name: str
    """Its name in addresses."""
    title: str
    intro: str
    """What it shows, for somebody who has never heard of the method."""
    body: Html
