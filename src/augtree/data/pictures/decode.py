"""Decodes pictures of any form and size by one rule for size and colour, which the headers of all decide.

A change of what comes out increases `DECODER` in `readable`, so that older caches are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST_DEFAULT = 224
GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
DEEP_MODES = frozenset({"I", "I;16", "I;16B", "I;16L", "I;16N"})
DEPTHS = (8, 10, 12, 14, 16)
ORIENTATION = 0x0112
BITS_PER_SAMPLE = 258


class Header(NamedTuple):
    """What is known of a picture before it is decoded."""

    width: int
    height: int
    mode: str
    transparent: bool
    bits: int | None = None
    """The bits that the values of a deep grey picture need, where its file does not say what white is."""
    cut: bool = False
    """Whether it has 16 bits a colour, of which Pillow gives eight."""


class Rule(NamedTuple):
    """How every picture of a set is made: grey or RGB, and cut to a square of `side`, or left at its size."""

    grey: bool
    side: int | None
    height: int
    width: int
    bits: int = 16
    """Where a file does not say what is white in deep grey: 2 ** bits - 1."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of each picture."""
        return (1 if self.grey else 3, self.height, self.width)


def header(file: BinaryIO) -> Header:
    """Size (as the EXIF orientation turns it), mode and transparency."""
    from PIL import Image

    with Image.open(file) as image:
        # The method of the base class: that of PNG decodes the whole picture to look behind it.
        turned = Image.Image.getexif(image).get(ORIENTATION, 1) in (5, 6, 7, 8)
        width, height = (image.height, image.width) if turned else image.size
        cut = image.mode not in DEEP_MODES and any(";16" in str(tile) for tile in image.tile)
        return Header(width, height, image.mode, image.has_transparency_data, bits_of(image), cut)


def bits_of(image: Image) -> int | None:
    """The bits that the values of a deep grey picture need; None for others, and where the file states its depth."""
    if image.mode not in DEEP_MODES or stated_bits(image) is not None:
        return None
    return int(deep_values(image).max()).bit_length()


def stated_bits(image: Image) -> int | None:
    """The depth that a file states so that it can be relied on: a TIFF of 12 bits, or what Pillow scales itself."""
    if image.format == "PPM":
        return 16
    bits = int(getattr(image, "tag_v2", {}).get(BITS_PER_SAMPLE, (16,))[0])
    return bits if bits < 16 else None


def deep_values(image: Image) -> NDArray[np.int64]:
    """The values of a deep grey picture."""
    deep = np.asarray(image).astype(np.int64)
    if deep.min() < 0 or deep.max() > 65535:
        raise ValueError(f"16-bit values must be from 0 to 65535, got {deep.min()} to {deep.max()}")
    return deep


def decide(headers: Sequence[Header], size: int | None) -> tuple[Rule, tuple[str, ...]]:
    """The rule for a set of pictures, and notes on it."""
    grey = all(one.mode in GREY_MODES for one in headers)
    sizes = {(one.width, one.height) for one in headers}
    notes = ["all pictures are grey: 1 channel" if grey else "pictures are RGB: 3 channels"]
    if not grey and any(one.mode in GREY_MODES for one in headers):
        notes[0] += ", the grey ones too"
    if any(one.transparent for one in headers):
        notes.append("transparent parts are laid over black")
    bits, depth_notes = depth_of(headers)
    notes += depth_notes
    width, height = next(iter(sizes))
    if size is None and len(sizes) == 1 and max(width, height) <= LARGEST_DEFAULT:
        return Rule(grey, None, height, width, bits), (*notes, f"all pictures are {width}x{height} and stay so")
    shorter = [min(one.width, one.height) for one in headers]
    side = size if size is not None else min(LARGEST_DEFAULT, int(np.median(shorter)))
    # A set of one size that is left as it is needs no cut, so the words are the same for all others.
    kinds = (
        f"{len(sizes)} sizes, shorter side {min(shorter)} to {max(shorter)}"
        if len(sizes) > 1
        else f"{width}x{height}"
    )
    why = "as asked" if size is not None else f"the median shorter side, at most {LARGEST_DEFAULT}"
    cut = f"scaled to a shorter side of {side} ({why}) and cut to the {side}x{side} in the middle"
    return Rule(grey, side, side, side, bits), (*notes, f"pictures ({kinds}) are {cut}")


def depth_of(headers: Sequence[Header]) -> tuple[int, list[str]]:
    """The depth of deep grey where files do not state it, the least that holds the whole set; and notes on it.

    A file of 16 bits often holds 12 (that is how medical pictures are exported), and nothing in it says so.
    """
    needed = [one.bits for one in headers if one.bits is not None]
    bits = next(depth for depth in DEPTHS if depth >= max(needed, default=16))
    notes = []
    if needed:
        notes.append(f"deep grey values have {bits} bits in this set: they are divided by {(2**bits - 1) / 255:.4g}")
    if any(one.mode in DEEP_MODES and one.bits is None for one in headers):
        notes.append("deep grey values are scaled by the depth that their files state")
    if any(one.cut for one in headers):
        notes.append("of 16-bit colours the higher byte is taken")
    return bits, notes


def decoded(file: BinaryIO, rule: Rule) -> NDArray[np.uint8]:
    """One picture, [C,H,W]; of several frames the first."""
    from PIL import Image, ImageOps

    with Image.open(file) as image:
        if rule.side is not None:
            # A large JPEG is decoded at a fraction of its size.
            image.draft(image.mode, (2 * rule.side, 2 * rule.side))
        bits = stated_bits(image) or rule.bits
        picture = coloured(ImageOps.exif_transpose(image), rule.grey, bits)
    if rule.side is not None:
        picture = centre_square(picture, rule.side)
    values = np.asarray(picture)
    if values.shape[:2] != (rule.height, rule.width):
        raise ValueError(f"is {values.shape[1]}x{values.shape[0]} once turned, not {rule.width}x{rule.height}")
    return values[None] if rule.grey else values.transpose(2, 0, 1)


def coloured(image: Image, grey: bool, bits: int) -> Image:
    """The picture in grey or in RGB, without transparency; deep grey is scaled so that 2 ** bits - 1 is white."""
    from PIL import Image

    if image.mode in DEEP_MODES:
        scaled = deep_values(image) * (255 / (2**bits - 1))
        image = Image.fromarray(np.rint(scaled).astype(np.uint8))
    if image.mode == "F":
        raise ValueError("must have whole values, got floats")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", clear.size, (0, 0, 0, 255)), clear)
    return image.convert("L" if grey else "RGB")


def centre_square(image: Image, side: int) -> Image:
    """The square in the middle of the picture, at another size (bilinear, with antialiasing)."""
    from PIL import Image

    short = min(image.size)
    left, top = (image.width - short) / 2, (image.height - short) / 2
    box = (left, top, left + short, top + short)
    return image.resize((side, side), Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
