"""Reads the masks and boxes that index.csv names for its pictures, at the size that the pictures are decoded to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from augtree.data.masks import Masks, Pixels, box_problem, centres, inside, sides
from augtree.data.pictures.cache import Entry
from augtree.data.pictures.decode import header
from augtree.data.pictures.files import Files
from augtree.data.pictures.index import OUTLINES, Table
from augtree.data.pictures.readable import MACHINE, MOST_THREADS, Progress, Readable, reason
from augtree.errors import DataError, shown


def read_masks(
    files: Files, table: Table, found: Readable, of: str, progress: Progress | None = None
) -> Masks | None:
    """The masks of the pictures that could be read; None where index.csv names neither masks nor boxes.

    Where the pictures are kept in the cache, so are their masks.
    """
    if not any(any(table.columns.get(name, ())) for name in OUTLINES) or not len(found.rows):
        return None
    reading = Reading(files, table, found, progress)
    if found.kept is None:
        return Masks(reading.bits(), reading.height, reading.width)
    entry = Entry.of(
        found.kept.parents[1], (of, "masks", found.kept.parent.name), (found.kept.name, *reading.state())
    )
    if entry.read() is None:
        with entry.exclusive():
            bits = reading.bits()[:, None, None]
            entry.write(bits.shape, [bits], dict, tuple)
    kept = entry.read()
    bits = reading.bits() if kept is None else kept[0].numpy().reshape(len(found.rows), -1).copy()
    return Masks(bits, reading.height, reading.width)


@dataclass(frozen=True)
class Reading:
    """The reading of the masks of some pictures."""

    files: Files
    table: Table
    found: Readable
    progress: Progress | None = None

    @property
    def height(self) -> int:
        """The height of the pictures, once decoded."""
        return int(self.found.samples.shape[2])

    @property
    def width(self) -> int:
        """The width of the pictures, once decoded."""
        return int(self.found.samples.shape[3])

    def cell(self, column: str, row: int) -> str:
        """What a column says of a picture."""
        cells = self.table.columns.get(column, ())
        return cells[row] if cells else ""

    def state(self) -> Iterable[str]:
        """Changes with any mask or box."""
        for row in self.found.rows.tolist():
            mask, box = (self.cell(column, row) for column in OUTLINES)
            yield self.files.opener(mask).stamp() if mask else ""
            yield box

    def bits(self) -> NDArray[np.uint8]:
        """The packed masks; a DataError names the first that is wrong."""
        rows = self.found.rows.tolist()
        out = np.zeros((len(rows), -(-self.height * self.width // 8)), np.uint8)
        wrong: list[str] = []
        with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
            for i, pixels in enumerate(pool.map(self.attempt, rows)):
                if isinstance(pixels, str):
                    wrong.append(f"{self.table.place} {self.table.where[rows[i]]}: {pixels}")
                elif pixels is not None:
                    out[i] = np.packbits(pixels)
                if self.progress is not None:
                    self.progress(i + 1, len(rows))
        if wrong:
            raise DataError(wrong[0] + (f" (one of {len(wrong)} such lines)" if len(wrong) > 1 else ""))
        return out

    def attempt(self, row: int) -> Pixels | str | None:
        """The mask of a picture, why it cannot be had, or None where there is none."""
        mask, box = (self.cell(column, row) for column in OUTLINES)
        if not mask and not box:
            return None
        try:
            with self.files.opener(self.table.paths[row])() as file:
                about = header(file)
            if not mask:
                return self.boxed(box, about.height, about.width)
            with self.files.opener(mask)() as file:
                pixels = foreground(file)
        except Exception as error:  # Pillow raises nearly anything on a damaged picture
            what = f"mask {shown(mask, 200)}" if mask else "the picture"
            if isinstance(error, MemoryError) or getattr(error, "errno", None) in MACHINE:
                raise DataError(f"{what}: {reason(error)}; it may be whole, so nothing is kept") from error
            return f"{what}: {reason(error)}"
        if pixels.shape != (about.height, about.width):
            rule = f"must be as large as its picture, {sides(about.width, about.height)}"
            return f"mask {shown(mask, 200)} {rule}, got {sides(pixels.shape[1], pixels.shape[0])}"
        ys, xs = (axis.astype(np.int64) for axis in self.grid(*pixels.shape))
        return pixels[ys[:, None], xs]

    def boxed(self, cell: str, height: int, width: int) -> Pixels | str:
        """The mask of one or more boxes, separated by `;`, in a picture of this size."""
        out, grid = np.zeros((self.height, self.width), bool), self.grid(height, width)
        for part in cell.split(";"):
            try:
                box = [float(number) for number in part.split()]
            except ValueError:
                box = []
            if len(box) != 4:
                return f"box must be four numbers, x0 y0 x1 y1, got {shown(part.strip())}"
            if problem := box_problem(box, height, width):
                return f"box {problem}, got {shown(part.strip())}"
            out |= inside(box, *grid)
        return out

    def grid(self, height: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where in a picture of this size the pixels of the decoded one have their centres: y, x."""
        if (height, width) == (self.height, self.width):
            return centres(height, height), centres(width, width)
        short = min(height, width)
        return centres(height, short, self.height), centres(width, short, self.width)


def foreground(file: BinaryIO) -> Pixels:
    """The pixels of a mask that are not black, whatever its mode; transparency does not count."""
    from PIL import Image, ImageOps

    with Image.open(file) as image:
        turned = ImageOps.exif_transpose(image)
        values = np.asarray(turned)
        colours = [i for i, band in enumerate(turned.getbands()) if band not in ("A", "a")]
    return (values[..., colours].any(-1) if values.ndim == 3 else values != 0).astype(bool)
