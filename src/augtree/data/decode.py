"""Decodes pictures of any form and size into one batch: one rule for size, one for colour, both said aloud."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import need, whole_number
from augtree.transforms.pictures import LARGEST_SIDE

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST_DEFAULT = 224
GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
DEEP_MODES = frozenset({"I", "I;16", "I;16B", "I;16L", "I;16N"})
ORIENTATION = 0x0112
Opener = Callable[[], BinaryIO]
Found = TypeVar("Found")


class Header(NamedTuple):
    """What is known of a picture before it is decoded."""

    width: int
    height: int
    mode: str
    transparent: bool


class Rule(NamedTuple):
    """How every picture of a set is made: grey or RGB, and cut to a square of `side`, or left at its size."""

    grey: bool
    side: int | None
    height: int
    width: int


def read_pictures(
    openers: Sequence[Opener], size: int | None = None
) -> tuple[Tensor, tuple[str, ...], dict[int, str]]:
    """All pictures as uint8 [N,C,H,W], what was decided, and why which of them could not be read."""
    need("PIL.Image", "cli").init()  # all formats are known before threads ask for them
    if size is not None:
        whole_number("size", size, 1, LARGEST_SIDE)
    problems: dict[int, str] = {}
    headers = in_threads(openers, list(range(len(openers))), lambda _, file: header(file), problems)
    if not headers:
        return torch.empty(0, 1, 1, 1, dtype=torch.uint8), (), problems
    rule, notes = decide(list(headers.values()), size)
    out = np.zeros((len(openers), 1 if rule.grey else 3, rule.height, rule.width), np.uint8)

    def fill(row: int, file: BinaryIO) -> None:
        out[row] = decoded(file, rule)

    in_threads(openers, list(headers), fill, problems)
    return torch.from_numpy(out), notes, problems


def in_threads(
    openers: Sequence[Opener],
    rows: Sequence[int],
    work: Callable[[int, BinaryIO], Found],
    problems: dict[int, str],
) -> dict[int, Found]:
    """The result for each row whose file could be worked on; the others become problems."""
    lock = threading.Lock()

    def attempt(row: int) -> tuple[int, Found] | None:
        try:
            with openers[row]() as file:
                return row, work(row, file)
        except Exception as error:  # Pillow raises nearly anything on a damaged picture
            with lock:
                problems[row] = reason(error)
            return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return dict(done for done in pool.map(attempt, rows) if done is not None)


def reason(error: Exception) -> str:
    """Why a picture could not be read, in few words."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if type(error).__name__ == "UnidentifiedImageError":
        return "is no picture that Pillow knows"
    return f"cannot be read ({getattr(error, 'strerror', None) or error or type(error).__name__})"


def header(file: BinaryIO) -> Header:
    """Size (as the EXIF orientation turns it), mode and transparency."""
    from PIL import Image

    with Image.open(file) as image:
        # The method of the base class: that of PNG decodes the whole picture to look behind it.
        turned = Image.Image.getexif(image).get(ORIENTATION, 1) in (5, 6, 7, 8)
        width, height = (image.height, image.width) if turned else image.size
        return Header(width, height, image.mode, image.has_transparency_data)


def decide(headers: Sequence[Header], size: int | None) -> tuple[Rule, tuple[str, ...]]:
    """The rule for a set of pictures, and how to say it."""
    grey = all(one.mode in GREY_MODES for one in headers)
    sizes = {(one.width, one.height) for one in headers}
    notes = ["all pictures are grey: 1 channel" if grey else "pictures are RGB: 3 channels"]
    if not grey and any(one.mode in GREY_MODES for one in headers):
        notes[0] += ", the grey ones too"
    if any(one.transparent for one in headers):
        notes.append("transparent parts are laid over black")
    if any(one.mode in DEEP_MODES for one in headers):
        notes.append("16-bit values are divided by 257")
    width, height = next(iter(sizes))
    if size is None and len(sizes) == 1 and max(width, height) <= LARGEST_DEFAULT:
        return Rule(grey, None, height, width), (*notes, f"all pictures are {width}x{height} and stay so")
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
    return Rule(grey, side, side, side), (*notes, f"pictures ({kinds}) are {cut}")


def decoded(file: BinaryIO, rule: Rule) -> NDArray[np.uint8]:
    """One picture, [C,H,W]; of several frames the first."""
    from PIL import Image, ImageOps

    with Image.open(file) as image:
        if rule.side is not None:
            image.draft(
                image.mode, (2 * rule.side, 2 * rule.side)
            )  # a large JPEG is decoded at a fraction of its size
        picture = coloured(ImageOps.exif_transpose(image), rule.grey)
    if rule.side is not None:
        picture = centre_square(picture, rule.side)
    values = np.asarray(picture)
    if values.shape[:2] != (rule.height, rule.width):
        raise ValueError(f"is {values.shape[1]}x{values.shape[0]} once turned, not {rule.width}x{rule.height}")
    return values[None] if rule.grey else values.transpose(2, 0, 1)


def coloured(image: Image, grey: bool) -> Image:
    """The picture in grey or in RGB, without transparency."""
    from PIL import Image

    if image.mode in DEEP_MODES:
        deep = np.asarray(image).astype(np.int64)
        if deep.min() < 0 or deep.max() > 65535:
            raise ValueError(f"16-bit values must be from 0 to 65535, got {deep.min()} to {deep.max()}")
        image = Image.fromarray(np.rint(deep / 257).astype(np.uint8))
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
