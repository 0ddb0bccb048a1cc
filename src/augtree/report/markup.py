"""HTML and SVG as values: every text is escaped unless it is `Html`, so that nothing from a user's data is markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

from augtree.errors import printable

VOID = frozenset(["br", "hr", "img", "input", "link", "meta"])
"""Elements of HTML without an end."""


WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?=\()")
"""Where a name may be broken."""


class Html(str):
    """Markup that stands on a page as it is."""

    __slots__ = ()


Child = Any
"""A text or number, which is escaped; markup; None, which is nothing; or several of these."""


def text(value: object) -> Html:
    r"""A text that is shown as it is, whatever is in it.

    >>> text("<b>\x07 & \u202e")
    '&lt;b&gt;\\x07 &amp; \\u202e'
    """
    return value if isinstance(value, Html) else Html(escape(printable(str(value), keep="\n")))


def breakable(label: str) -> Html:
    """A name that may be broken before a bracket and between its words.

    >>> breakable("PermuteEdges(0.1)")
    'Permute<wbr>Edges<wbr>(0.1)'
    """
    return Html("<wbr>".join(text(part) for part in WORDS.split(label)))


def join(*children: Child) -> Html:
    """Children one after the other."""
    return Html("".join(flattened(children)))


def flattened(children: Iterable[Child]) -> Iterable[str]:
    """Children and their children, escaped where they are texts."""
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, Iterable) and not isinstance(child, str):
            yield from flattened(child)
        else:
            yield text(child)


def tag(name: str, *children: Child, **attributes: Any) -> Html:
    """An element; `class_` is class, `data_node` is data-node, True is an attribute without a value.

    >>> tag("a", "1 < 2", href="#x", class_="y", hidden=True, title=None)
    '<a href="#x" class="y" hidden>1 &lt; 2</a>'
    """
    opening = "".join([f"<{name}", *(attribute(key, value) for key, value in attributes.items()), ">"])
    return Html(opening if name in VOID else f"{opening}{join(*children)}</{name}>")


def attribute(key: str, value: object) -> str:
    """An attribute of an element; nothing for None and False."""
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def as_json(value: Any) -> Html:
    r"""A value as JSON within a script element, which nothing in it can end.

    >>> as_json("</script><!--")
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    content = json.dumps(value, allow_nan=False)
    for letter in "<>&":
        content = content.replace(letter, f"\\u{ord(letter):04x}")
    return Html(content)
