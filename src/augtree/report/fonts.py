"""Fonts for the texts of a sheet: Pillow's own has few letters beyond ASCII; those of the system have others."""

from __future__ import annotations

from functools import cache
from typing import Any

from augtree.errors import need, printable

FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "wqy-microhei.ttc",
    "Arial Unicode.ttf",
    "PingFang.ttc",
    "arial.ttf",
    "msyh.ttc",
    "malgun.ttf",
)
"""Files that Linux, macOS and Windows have, for letters that Pillow's font does not have."""
NO_LETTER = "\U0010ffff"
"""A character that no font has: what is drawn for it is drawn for all that are missing."""


def drawable(text: str, size: int) -> tuple[Any, str]:
    r"""The font that has the most letters of a text, Pillow's own if it can be; and the text, other letters escaped.

    >>> drawable("caf\u00e9", 11)[1], drawable("a\U0010fffe", 11)[1]
    ('café', 'a\\U0010fffe')
    """
    text = printable(text)
    letters, best, missing = set(text), font(None, size), set(text)
    for name in (None, *FONTS):
        face = font(name, size)
        lacking = letters if face is None else {letter for letter in letters if not has_letter(face, letter)}
        if len(lacking) < len(missing):
            best, missing = face, lacking
        if not missing:
            break
    return best, "".join(escaped(letter) if letter in missing else letter for letter in text)


def escaped(letter: str) -> str:
    """A letter by its number."""
    return letter.encode("unicode_escape").decode()


@cache
def font(name: str | None, size: int) -> Any:
    """Pillow's own font, or one of the system; None where there is none of this name."""
    fonts = need("PIL.ImageFont", "train")
    try:
        return fonts.load_default(size) if name is None else fonts.truetype(name, size)
    except OSError:
        return None


@cache
def has_letter(face: Any, letter: str) -> bool:
    """Whether a font has this letter."""
    return letter.isspace() or drawn(face, letter) != drawn(face, NO_LETTER)


def drawn(face: Any, letter: str) -> tuple[Any, bytes]:
    """What a letter looks like."""
    mask = face.getmask(letter)
    return mask.size, bytes(mask)
