"""Pictures to try operations on, and Pillow's way of doing them."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

SIZES = [(32, 32), (1, 1), (1, 7), (5, 1), (2, 2), (3, 3), (17, 40), (64, 48)]
KINDS = 6


def pictures(channels: int, height: int, width: int, seed: int = 0) -> torch.Tensor:
    """Four each of: noise, almost flat, black, white, sparse dots, a ramp."""
    rng = torch.Generator().manual_seed(seed)
    shape = (4, channels, height, width)
    count = 4 * channels * height * width
    kinds = [
        torch.randint(0, 256, shape, generator=rng),
        torch.randint(100, 103, shape, generator=rng),
        torch.zeros(shape),
        torch.full(shape, 255),
        (torch.rand(shape, generator=rng) < 0.05) * 255,
        (torch.arange(count) % 256).view(shape),
    ]
    return torch.cat([kind.to(torch.uint8) for kind in kinds])


def image(picture: torch.Tensor) -> Image.Image:
    array = picture.numpy()
    return Image.fromarray(array[0]) if len(array) == 1 else Image.fromarray(array.transpose(1, 2, 0).copy())


def tensor(picture: Image.Image) -> torch.Tensor:
    array = np.array(picture)
    return torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy())


def colour(picture: Image.Image, value: int) -> int | tuple[int, ...]:
    return value if picture.mode == "L" else (value,) * 3


def affine(picture: Image.Image, matrix: tuple[float, ...], fill: int) -> Image.Image:
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, fillcolor=colour(picture, fill))


def operate(name: str, picture: Image.Image, value: float, fill: int = 128) -> Image.Image:
    """The operation with its parameter, as Pillow does it."""
    match name:
        case "ShearX":
            return affine(picture, (1, value, 0, 0, 1, 0), fill)
        case "ShearY":
            return affine(picture, (1, 0, 0, value, 1, 0), fill)
        case "TranslateX":
            return affine(picture, (1, 0, value * picture.width, 0, 1, 0), fill)
        case "TranslateY":
            return affine(picture, (1, 0, 0, 0, 1, value * picture.height), fill)
        case "Rotate":
            return picture.rotate(value, fillcolor=colour(picture, fill))
        case "AutoContrast":
            return ImageOps.autocontrast(picture)
        case "Invert":
            return ImageOps.invert(picture)
        case "Equalize":
            return ImageOps.equalize(picture)
        case "Solarize":
            return ImageOps.solarize(picture, int(value))
        case "Posterize":
            return ImageOps.posterize(picture, int(value))
        case "Contrast" | "Color" | "Brightness" | "Sharpness":
            return getattr(ImageEnhance, name)(picture).enhance(value)
        case "GaussianBlur":
            return picture.filter(ImageFilter.GaussianBlur(float(value)))
    raise ValueError(name)


def replayed(name, level, sign, wide, width, height):
    """The parameter that RandAugment or TrivialAugment means, from the papers' tables."""
    limits = {"ShearX": (0.3, 0.99), "ShearY": (0.3, 0.99), "Rotate": (30, 135)}
    limits |= {"TranslateX": (150 / 331, 32 / width), "TranslateY": (150 / 331, 32 / height)}
    if name in limits:
        return sign * level * limits[name][wide]
    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
        return 1 + sign * level * (0.99 if wide else 0.9)
    if name == "Posterize":
        return 8 - round(level * (6 if wide else 4))
    if name == "Solarize":
        return int((255 if wide else 256) * (1 - level))
    return 0.0


SHAPES = [(channels, *size) for channels in (1, 3) for size in SIZES]


def same(ours, theirs):
    assert ours.dtype == torch.uint8
    for row, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert torch.equal(one, tensor(other)), f"picture {row}"


def values(count, low, high, *extra):
    """Numbers over a range, its ends and special ones among them."""
    rng = np.random.default_rng(count)
    given = np.array([low, high, *extra], dtype=float)
    return np.concatenate([given, rng.uniform(low, high, count - len(given))])
