"""A sheet of pictures: originals on the left, augmented versions beside them, each with the path it took."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from augtree.errors import DataError, need, shown
from augtree.keys import Key
from augtree.transforms import Policy
from augtree.transforms.base import apply_to_pictures

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
CELL, GAP, CAPTION, HEAD = 112, 14, 56, 34
INK, PALE, PAPER = (31, 41, 51), (123, 135, 148), (255, 255, 255)


class Row(NamedTuple):
    """A picture, its augmented versions and how each came about."""

    title: str
    original: Tensor
    versions: Tensor
    paths: list[list[str]]


def picture_files(places: Sequence[Path]) -> list[Path]:
    """The files themselves, and the pictures in folders among them."""
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            found = sorted(file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES)
            if not found:
                raise DataError(f"{place}: a folder must have pictures ({', '.join(SUFFIXES)}), got none")
            files += found
        else:
            files.append(place)
    return files


def read_picture(path: Path, longest: int) -> tuple[Tensor, bool]:
    """A picture as uint8 [C,H,W], C 1 or 3, upright, no longer than `longest`; and whether it was shrunk."""
    image, ops = need("PIL.Image", "cli"), need("PIL.ImageOps", "cli")
    try:
        with image.open(path) as file:
            picture = ops.exif_transpose(file)
            if picture.mode.startswith("I;16"):
                picture = image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
            picture = picture.convert("L" if picture.mode in ("1", "L", "LA", "La", "I", "F") else "RGB")
    except Exception as error:  # Pillow raises many kinds for a broken file
        raise DataError(f"{path}: must be a picture, got {shown(str(error), 200)}") from error
    shrunk = max(picture.size) > longest
    if shrunk:
        scale = longest / max(picture.size)
        picture = picture.resize([max(1, round(side * scale)) for side in picture.size], image.Resampling.LANCZOS)
    array = np.array(picture)
    return torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy()), shrunk


def augmented(policy: Policy, pictures: Sequence[tuple[str, Tensor]], copies: int, seed: int) -> list[Row]:
    """Versions of each picture. Pictures of one shape are one batch, so that SamplePairing finds partners."""
    rows: list[Row | None] = [None] * len(pictures)
    by_shape: dict[torch.Size, list[int]] = {}
    for i, (_, picture) in enumerate(pictures):
        by_shape.setdefault(picture.shape, []).append(i)
    for members in by_shape.values():
        batch = torch.stack([pictures[i][1] for i in members for _ in range(copies)])
        key = Key.of(seed, [i * copies + j for i in members for j in range(copies)])
        done, routes = apply_to_pictures(policy, batch, key), policy.route(key)
        for place, i in enumerate(members):
            part = slice(place * copies, (place + 1) * copies)
            rows[i] = Row(*pictures[i], done[part], [[str(step) for step in route] for route in routes[part]])
    return [row for row in rows if row is not None]


def drawn(title: str, rows: Sequence[Row]) -> bytes:
    """The sheet as a PNG file."""
    image, draw_module = need("PIL.Image", "cli"), need("PIL.ImageDraw", "cli")
    copies = max(len(row.versions) for row in rows)
    width = GAP + (copies + 1) * (CELL + GAP)
    sheet = image.new("RGB", (width, HEAD + GAP + len(rows) * (CELL + CAPTION)), PAPER)
    draw = draw_module.Draw(sheet)
    draw.text((GAP, 12), fitted(title, width - 2 * GAP, 14), fill=INK, font=font(14))
    for number, row in enumerate(rows):
        top = HEAD + GAP // 2 + number * (CELL + CAPTION)
        cells = [(row.original, [row.title]), *zip(row.versions, row.paths, strict=True)]
        for place, (picture, caption) in enumerate(cells):
            left = GAP + place * (CELL + GAP)
            thumbnail = as_cell(picture)
            spot = (left + (CELL - thumbnail.width) // 2, top + (CELL - thumbnail.height) // 2)
            sheet.paste(thumbnail, spot)
            corners = [spot[0] - 1, spot[1] - 1, spot[0] + thumbnail.width, spot[1] + thumbnail.height]
            draw.rectangle(corners, outline=(203, 210, 217))
            for line, text in enumerate((caption or ["unchanged"])[:3]):
                ink = INK if place == 0 else PALE
                draw.text((left, top + CELL + 4 + 13 * line), fitted(text, CELL, 11), fill=ink, font=font(11))
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def as_cell(picture: Tensor) -> Any:
    """A picture at the size of a cell: small ones in visible pixels, large ones smoothed."""
    image = need("PIL.Image", "cli")
    array = picture.permute(1, 2, 0).numpy()
    out = image.fromarray(array[..., 0] if array.shape[2] == 1 else array).convert("RGB")
    scale = CELL / max(out.size)
    filter_ = image.Resampling.NEAREST if scale > 1 else image.Resampling.LANCZOS
    return out.resize([max(1, round(side * scale)) for side in out.size], filter_)


def font(size: int) -> Any:
    """Pillow's own font."""
    return need("PIL.ImageFont", "cli").load_default(size)


def fitted(text: str, width: float, size: int) -> str:
    """Text cut to a width."""
    face = font(size)
    while text and face.getlength(text) > width:
        text = text[:-2].rstrip("…") + "…" if len(text) > 2 else ""
    return text
