"""A sheet of pictures: originals on the left, augmented versions beside them, each with its operations."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from augtree.errors import DataError, InputError, need, shown
from augtree.keys import Key
from augtree.report.fonts import drawable
from augtree.transforms import Policy
from augtree.transforms.base import apply_to_pictures

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
SMALLEST_CELL, GAP, LINE, HEAD = 96, 14, 13, 34
LINES = 5
"""Steps that a caption has room for."""
INK, PALE, PAPER, FRAME = (31, 41, 51), (123, 135, 148), (255, 255, 255), (203, 210, 217)
BATCH_BYTES = 1 << 27


class Row(NamedTuple):
    """A picture, its augmented versions and the operations of each."""

    title: str
    original: Tensor
    """uint8 [C,H,W], C 1 or 3."""
    versions: Tensor
    """uint8 [N,C,H,W]."""
    steps: list[tuple[str, ...]]
    """The caption of each version, a line each."""


def pictures_in(folder: Path) -> list[Path]:
    """The pictures in a folder and the folders below it."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())


def read_picture(path: Path, longest: int) -> tuple[Tensor, bool]:
    """A picture as uint8 [C,H,W], C 1 or 3, upright, no longer than `longest`; and whether it was shrunk."""
    image, ops = need("PIL.Image", "train"), need("PIL.ImageOps", "train")
    try:
        with image.open(path) as file:
            picture = as_8_bits(ops.exif_transpose(file))
    except Exception as error:  # Pillow raises many kinds for a broken file
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: must be a picture ({shown(str(reason), 200)[1:-1]})") from error
    shrunk = max(picture.size) > longest
    if shrunk:
        scale = longest / max(picture.size)
        picture = picture.resize([max(1, round(side * scale)) for side in picture.size], image.Resampling.LANCZOS)
    array = np.array(picture)
    return torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy()), shrunk


def as_8_bits(picture: Any) -> Any:
    """A picture of 8 bits, grey or RGB, whatever it was."""
    image = need("PIL.Image", "train")
    if picture.mode.startswith("I;16"):
        return image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    if picture.mode in ("I", "F"):
        raise ValueError(f"its values have no known range, mode {picture.mode}: convert it to 8 or 16 bits")
    if picture.mode in ("1", "L", "LA", "La"):
        return picture.convert("L")
    return (picture.convert("RGBA") if picture.mode == "P" else picture).convert("RGB")


def augmented_rows(policy: Policy, pictures: Sequence[tuple[str, Tensor]], copies: int, seed: int) -> list[Row]:
    """Augment each picture several times.

    Parameters
    ----------
    policy
        A policy on pictures.
    pictures
        Titles and pictures, uint8 [C,H,W]; those of one shape are one batch, so that SamplePairing finds partners.
    copies
        Versions of each picture.
    seed
        Of the versions.

    Examples
    --------
    >>> from augtree.transforms import Invert
    >>> rows = augmented_rows(Invert(), [("black", torch.zeros(3, 8, 8, dtype=torch.uint8))], copies=2, seed=0)
    >>> rows[0].title, rows[0].steps, int(rows[0].versions.min())
    ('black', [('Invert(1)',), ('Invert(1)',)], 255)

    """
    rows: list[Row | None] = [None] * len(pictures)
    for members in batches([picture for _, picture in pictures], copies):
        batch = torch.stack([pictures[i][1] for i in members for _ in range(copies)])
        key = Key.of(seed, [i * copies + j for i in members for j in range(copies)])
        done, steps = apply_to_pictures(policy, batch, key), policy.describe(key)
        if done.dtype != torch.uint8:
            raise InputError("a sheet needs pictures, but the policy makes floats of them: leave Normalize out")
        for place, i in enumerate(members):
            part = slice(place * copies, (place + 1) * copies)
            rows[i] = Row(*pictures[i], done[part], steps[part])
    return [row for row in rows if row is not None]


def batches(pictures: Sequence[Tensor], copies: int) -> Iterator[list[int]]:
    """The numbers of pictures that are of one shape, as many at a time as memory should hold."""
    by_shape: dict[torch.Size, list[int]] = {}
    for i, picture in enumerate(pictures):
        by_shape.setdefault(picture.shape, []).append(i)
    for shape, members in by_shape.items():
        most = max(2, BATCH_BYTES // (copies * shape.numel()))
        yield from (members[start : start + most] for start in range(0, len(members), most))


def draw_sheet(title: str, rows: Sequence[Row]) -> bytes:
    """Draw rows of pictures: originals on the left, their versions beside them, each with its caption.

    Parameters
    ----------
    title
        The line at the top.
    rows
        The rows, from `augmented_rows` for example.

    Returns
    -------
    bytes
        A PNG file.

    Examples
    --------
    >>> black = torch.zeros(3, 8, 8, dtype=torch.uint8)
    >>> draw_sheet("One row", [Row("black", black, black[None], [("Identity",)])])[1:4]
    b'PNG'

    """
    image, draw_module = need("PIL.Image", "train"), need("PIL.ImageDraw", "train")
    cell = max(SMALLEST_CELL, *(max(row.original.shape[1:]) for row in rows))
    thumbnails = [[as_cell(picture, cell) for picture in (row.original, *row.versions)] for row in rows]
    captions = [[(row.title,), *row.steps] for row in rows]
    heights = [
        max(picture.height for picture in pictures) + LINE * max(len(caption(steps)) for steps in texts) + GAP
        for pictures, texts in zip(thumbnails, captions, strict=True)
    ]
    width = GAP + max(len(pictures) for pictures in thumbnails) * (cell + GAP)
    sheet = image.new("RGB", (width, HEAD + GAP + sum(heights)), PAPER)
    draw = draw_module.Draw(sheet)
    write(draw, (GAP, 12), title, width - 2 * GAP, 14, INK)
    top = HEAD
    for pictures, texts, height in zip(thumbnails, captions, heights, strict=True):
        tallest = max(picture.height for picture in pictures)
        for place, (picture, steps) in enumerate(zip(pictures, texts, strict=True)):
            left = GAP + place * (cell + GAP)
            spot = (left + (cell - picture.width) // 2, top + tallest - picture.height)
            sheet.paste(picture, spot)
            corners = [spot[0] - 1, spot[1] - 1, spot[0] + picture.width, spot[1] + picture.height]
            draw.rectangle(corners, outline=FRAME)
            for number, text in enumerate(caption(steps)):
                write(draw, (left, top + tallest + 3 + LINE * number), text, cell, 11, PALE if place else INK)
        top += height
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def caption(steps: tuple[str, ...]) -> list[str]:
    """A caption: a line a step, as far as there is room."""
    if len(steps) > LINES:
        return [*steps[: LINES - 1], f"and {len(steps) - LINES + 1} more"]
    return list(steps) or ["unchanged"]


def as_cell(picture: Tensor, cell: int) -> Any:
    """A picture at the size of a cell: small ones in visible pixels, large ones smoothed."""
    image = need("PIL.Image", "train")
    array = picture.permute(1, 2, 0).numpy()
    out = image.fromarray(array[..., 0] if array.shape[2] == 1 else array).convert("RGB")
    scale = cell / max(out.size)
    filter_ = image.Resampling.NEAREST if scale > 1 else image.Resampling.LANCZOS
    return out.resize([max(1, round(side * scale)) for side in out.size], filter_)


def write(draw: Any, spot: tuple[int, int], text: str, width: float, size: int, colour: tuple[int, int, int]) -> None:
    """Write a line of text, cut to a width, in a font that has its letters."""
    face, text = drawable(text, size)
    draw.text(spot, fitted(text, width, face), fill=colour, font=face)


def fitted(text: str, width: float, face: Any) -> str:
    """Text cut to a width."""
    while text and face.getlength(text) > width:
        text = text[:-2].rstrip("…") + "…" if len(text) > 2 else ""
    return text
