"""Decodes pictures of any form and size into one batch: one rule for size, one for colour, both said aloud.

Pictures are decoded by threads, some at a time, into memory or, where they are many, into a file of the cache. Pillow
lets go of the interpreter while it decodes; processes were no faster on two cores (benchmarks/picture_cache.py), and
would have to be started and sent what to open.
"""

from __future__ import annotations

import errno
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.pictures.cache import IN_MEMORY, Entry, digest
from augtree.errors import DataError, need, whole_number
from augtree.transforms.pictures import LARGEST_SIDE

if TYPE_CHECKING:
    from PIL.Image import Image

DECODER = 1
"""Goes up whenever the same file gives other numbers than before, so that old caches are not used."""
LARGEST_DEFAULT = 224
GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
DEEP_MODES = frozenset({"I", "I;16", "I;16B", "I;16L", "I;16N"})
DEPTHS = (8, 10, 12, 14, 16)
ORIENTATION = 0x0112
BITS_PER_SAMPLE = 258
MOST_THREADS = 8
AT_ONCE, BYTES_AT_ONCE = 64, 1 << 24
"""A thread decodes so many pictures or so many bytes at a time."""
MACHINE = frozenset(
    {errno.EACCES, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EPERM, errno.ESTALE, errno.ETIMEDOUT}
)
"""Errors that say nothing of the picture: it may be whole a moment later, so these end the reading."""
Opener = Callable[[], BinaryIO]
"""Opens a picture. One that also has `stamp()`, a text that changes with the picture, can be kept in a cache."""
Progress = Callable[[int, int], None]
"""Told of how much is done, of how much."""
Rows = Sequence[int]
Found = TypeVar("Found")


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


class Readable(NamedTuple):
    """The pictures of a list that can be read."""

    samples: Tensor
    """uint8 [R,C,H,W], perhaps mapped from a file."""
    rows: NDArray[np.int64]
    """Their places in the list."""
    notes: tuple[str, ...]
    """What was decided."""
    problems: dict[int, str]
    """Why which of the others cannot be read."""
    kept: Path | None = None
    """The folder of the cache, where they are mapped from one."""


def readable_pictures(
    openers: Sequence[Opener],
    size: int | None = None,
    *,
    cache: str | Path | None = None,
    of: str | None = None,
    progress: Progress | None = None,
) -> Readable:
    """The pictures that can be read, without the others: in memory, or mapped from the cache.

    Where they have less than 256 MiB they stay in memory, unless `cache` names a folder. `of` says what they are the
    pictures of: an older cache of the same is removed once there is a new one.
    """
    side = checked_size(size)
    entry = entry_for(openers, side, cache, of)
    found = entry.read() if entry is not None else None
    if entry is not None and found is not None:
        return from_cache(entry, found, len(openers))
    decoding = Decoding(openers, side, progress)
    if entry is None or not decoding.headers or (cache is None and decoding.bytes < IN_MEMORY):
        return decoding.into_memory()
    return decoding.into_cache(entry)


def checked_size(size: int | None) -> int | None:
    """A side that is possible; and Pillow is there and knows all its formats before threads ask for them."""
    need("PIL.Image", "cli").init()
    return None if size is None else whole_number("size", size, 1, LARGEST_SIDE)


def entry_for(openers: Sequence[Opener], size: int | None, cache: str | Path | None, of: str | None) -> Entry | None:
    """Where these pictures are kept, if they can be: each must have a stamp."""
    stamps = [opener.stamp() for opener in openers if hasattr(opener, "stamp")]
    if len(stamps) < len(openers) or not stamps:
        return None
    version = f"{DECODER} Pillow {need('PIL', 'cli').__version__}"
    what = of if of is not None else digest(names_of(openers))
    return Entry.of(cache, (what, f"size {size}"), (version, *stamps))


def names_of(openers: Sequence[Opener]) -> list[str]:
    """What pictures are called: by their name, or by their path."""
    return [str(getattr(one, "name", getattr(one, "path", row))) for row, one in enumerate(openers)]


def from_cache(entry: Entry, found: tuple[Tensor, dict[str, Any]], count: int) -> Readable:
    """What an entry of the cache holds."""
    samples, about = found
    problems = {int(row): str(why) for row, why in about["problems"]}
    return Readable(samples, all_but(count, problems), tuple(about["notes"]), problems, entry.path)


def all_but(count: int, problems: Iterable[int]) -> NDArray[np.int64]:
    """The rows that are left."""
    left = np.ones(count, bool)
    left[list(problems)] = False
    return np.flatnonzero(left)


NOTHING = Rule(True, None, 1, 1)


class Decoding:
    """The work on a list of pictures: first their headers, which decide what all become; then the pictures."""

    def __init__(self, openers: Sequence[Opener], size: int | None, progress: Progress | None = None) -> None:
        self.openers, self.progress, self.done = openers, progress, 0
        self.problems: dict[int, str] = {}
        self.headers: dict[int, Header] = {}
        for found in self._worked(self._headers, range(len(openers)), AT_ONCE):
            self.headers.update(found)
        self.rule, self.notes = decide(list(self.headers.values()), size) if self.headers else (NOTHING, ())
        self.shape = (len(self.headers), *self.rule.shape)
        self.bytes = math.prod(self.shape)

    def into_memory(self) -> Readable:
        """Decode all into one tensor."""
        out, count = np.empty(self.shape, np.uint8), 0
        for block in self.blocks():
            out[count : count + len(block)] = block
            count += len(block)
        rows = all_but(len(self.openers), self.problems)
        return Readable(torch.from_numpy(out[:count]), rows, self.notes, self.problems)

    def into_cache(self, entry: Entry) -> Readable:
        """Decode all into a file, unless another process has done so by now."""
        with entry.alone():
            if entry.read() is None:
                entry.write(self.shape, self.blocks(), self._about, self._broken)
            found = entry.read()
        if found is not None:
            return from_cache(entry, found, len(self.openers))
        nothing = torch.empty(0, *self.rule.shape, dtype=torch.uint8)
        return Readable(nothing, all_but(len(self.openers), self.problems), self.notes, self.problems)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """The pictures that can be decoded, in their order, some at a time."""
        at_once = max(1, min(AT_ONCE, BYTES_AT_ONCE // math.prod(self.rule.shape)))
        return self._worked(self._block, list(self.headers), at_once)

    def _about(self) -> dict[str, Any]:
        return {"notes": self.notes, "problems": sorted(self.problems.items())}

    def _broken(self) -> list[tuple[str, str]]:
        names = names_of(self.openers)
        return [(names[row], self.problems[row]) for row in sorted(self.problems)]

    def _worked(
        self, work: Callable[[Rows], tuple[Found, dict[int, str]]], rows: Rows, at_once: int
    ) -> Iterator[Found]:
        """What threads make of the rows, some at a time, in order; never much more than is asked for."""
        parts = [rows[i : i + at_once] for i in range(0, len(rows), at_once)]
        threads = min(MOST_THREADS, os.cpu_count() or 1)
        with ThreadPoolExecutor(threads) as pool:
            for part, (found, problems) in zip(parts, in_order(pool, work, parts, 2 * threads), strict=True):
                self.problems.update(problems)
                self.done += len(part)
                if self.progress is not None:
                    self.progress(self.done, 2 * len(self.openers))
                yield found

    def _headers(self, rows: Rows) -> tuple[dict[int, Header], dict[int, str]]:
        found, problems = {}, {}
        for row in rows:
            got = self._attempt(row, header)
            if isinstance(got, str):
                problems[row] = got
            else:
                found[row] = got
        return found, problems

    def _block(self, rows: Rows) -> tuple[NDArray[np.uint8], dict[int, str]]:
        out, problems, count = np.empty((len(rows), *self.rule.shape), np.uint8), {}, 0
        for row in rows:
            got = self._attempt(row, lambda file: decoded(file, self.rule))
            if isinstance(got, str):
                problems[row] = got
            else:
                out[count] = got
                count += 1
        return out[:count], problems

    def _attempt(self, row: int, work: Callable[[BinaryIO], Found]) -> Found | str:
        """What is made of a picture, or why it cannot be."""
        try:
            with self.openers[row]() as file:
                return work(file)
        except Exception as error:  # Pillow raises nearly anything on a damaged picture
            if isinstance(error, MemoryError) or getattr(error, "errno", None) in MACHINE:
                raise DataError(
                    f"{names_of(self.openers)[row]}: {reason(error)}; it may be whole, so nothing is kept"
                ) from error
            return reason(error)


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Rows], Found], parts: Sequence[Rows], ahead: int
) -> Iterator[Found]:
    """The results in the order of the parts; at most so many are ahead of what is asked for."""
    waiting: deque[Future[Found]] = deque()
    for part in parts:
        waiting.append(pool.submit(work, part))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


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
    """The rule for a set of pictures, and how to say it."""
    grey = all(one.mode in GREY_MODES for one in headers)
    sizes = {(one.width, one.height) for one in headers}
    notes = ["all pictures are grey: 1 channel" if grey else "pictures are RGB: 3 channels"]
    if not grey and any(one.mode in GREY_MODES for one in headers):
        notes[0] += ", the grey ones too"
    if any(one.transparent for one in headers):
        notes.append("transparent parts are laid over black")
    bits, told = depth_of(headers)
    notes += told
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
    """What white is in deep grey, where files do not say: the least depth that holds the set; and how to say it.

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
