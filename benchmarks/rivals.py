"""The same operations, one picture at a time, by Pillow, torchvision v2, kornia and Albumentations.

`operate(name, picture, value)` for each library, with the parameter that augtree's operation of that name has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import augtree as at
from augtree.transforms.automatic import PALETTE
from augtree.transforms.operation import Operation

Operate = Callable[[str, Any, float], Any]
GREY = 128


def drawn(kind: type[Operation], level: float, wide: bool, size: int) -> float:
    """A parameter as augtree draws it, for one picture, in plain Python."""
    sign = random.choice((-1, 1)) if kind.signed else 1
    limit = kind.wide if wide else kind.limit
    if kind.__name__.startswith("Translate"):
        return sign * level * (limit if wide else limit * size)
    if kind.__name__ in ("Brightness", "Color", "Contrast", "Sharpness"):
        return 1 + sign * level * limit
    if kind.__name__ == "Posterize":
        return 8 - round(limit * level)
    if kind.__name__ == "Solarize":
        return int(limit * (1 - level))
    return sign * level * limit


def trivial_augment(operate: Operate, picture: Any, size: int) -> Any:
    """One operation at one magnitude, on one picture."""
    kind = random.choice(PALETTE)
    if not issubclass(kind, Operation):
        return picture
    return operate(kind.__name__, picture, drawn(kind, random.randrange(31) / 30, True, size))


def walk(tree: at.Tree, operate: Operate, picture: Any, size: int) -> Any:
    """One picture through a tree of operations."""
    index = 1
    while index in tree.nodes:
        transform = tree[index].transform
        if (index > 1 or random.random() < tree[1].p) and isinstance(transform, Operation):
            level = max(transform.magnitude - 0.2 * random.random(), 0.0)
            picture = operate(transform.name, picture, drawn(type(transform), level, False, size))
        left = tree.p_left(index)
        if left is None:
            break
        index = 2 * index + (0 if random.random() < left else 1)
    return picture


def pillow(name: str, picture: Any, value: float) -> Any:
    from PIL import Image, ImageEnhance, ImageOps

    fill = (GREY, GREY, GREY)
    matrices = {
        "ShearX": (1, value, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, value, 1, 0),
        "TranslateX": (1, 0, value, 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, value),
    }
    if name in matrices:
        return picture.transform(picture.size, Image.Transform.AFFINE, matrices[name], fillcolor=fill)
    if name == "Rotate":
        return picture.rotate(value, fillcolor=fill)
    if name in ("AutoContrast", "Invert", "Equalize"):
        return getattr(ImageOps, name.lower())(picture)
    if name in ("Solarize", "Posterize"):
        return getattr(ImageOps, name.lower())(picture, int(value))
    return getattr(ImageEnhance, name)(picture).enhance(value)


def torchvision(name: str, picture: Any, value: float) -> Any:
    import math

    from torchvision.transforms.v2 import functional as F

    def affine(shift: tuple[float, float], shear: tuple[float, float]) -> Any:
        angles = [math.degrees(math.atan(amount)) for amount in shear]
        moved = [int(pixels) for pixels in shift]
        return F.affine(picture, 0.0, moved, 1.0, angles, fill=GREY, center=[0, 0] if any(shear) else None)

    match name:
        case "ShearX":
            return affine((0, 0), (value, 0))
        case "ShearY":
            return affine((0, 0), (0, value))
        case "TranslateX":
            return affine((value, 0), (0, 0))
        case "TranslateY":
            return affine((0, value), (0, 0))
        case "Rotate":
            return F.rotate(picture, value, fill=GREY)
        case "AutoContrast":
            return F.autocontrast(picture)
        case "Invert" | "Equalize":
            return getattr(F, name.lower())(picture)
        case "Solarize" | "Posterize":
            return getattr(F, name.lower())(picture, int(value))
        case "Color":
            return F.adjust_saturation(picture, value)
    return getattr(F, f"adjust_{name.lower()}")(picture, value)


def kornia(name: str, picture: Any, value: float) -> Any:
    """Pictures are float [1,C,H,W], as kornia wants them."""
    import kornia.enhance as enhance
    import kornia.geometry.transform as geometry
    import torch

    amount = torch.tensor([value], device=picture.device)
    match name:
        case "ShearX":
            return geometry.shear(picture, torch.tensor([[value, 0.0]], device=picture.device), mode="nearest")
        case "ShearY":
            return geometry.shear(picture, torch.tensor([[0.0, value]], device=picture.device), mode="nearest")
        case "TranslateX":
            return geometry.translate(picture, torch.tensor([[value, 0.0]], device=picture.device), mode="nearest")
        case "TranslateY":
            return geometry.translate(picture, torch.tensor([[0.0, value]], device=picture.device), mode="nearest")
        case "Rotate":
            return geometry.rotate(picture, amount, mode="nearest")
        case "AutoContrast":
            return enhance.normalize_min_max(picture)
        case "Invert":
            return 1 - picture
        case "Equalize":
            return enhance.equalize(picture)
        case "Solarize":
            return enhance.solarize(picture, value / 256)
        case "Posterize":
            return enhance.posterize(picture, int(value))
        case "Color":
            return enhance.adjust_saturation(picture, value)
        case "Brightness":
            return enhance.adjust_brightness(picture, value - 1)
        case "Contrast":
            return enhance.adjust_contrast(picture, value)
    return enhance.sharpness(picture, value)


def albumentations(wide: bool) -> Operate:
    """Its transforms draw their values themselves, up to those of augtree's operations, at level 0.6 unless wide."""
    import math

    import albumentations as A
    import cv2

    cv2.setNumThreads(1)
    nearest: Any = {"interpolation": cv2.INTER_NEAREST, "border_mode": cv2.BORDER_CONSTANT, "fill": GREY, "p": 1.0}
    level = 1.0 if wide else 0.6
    slant = math.degrees(math.atan(0.99 if wide else 0.3 * level))
    turn, factor = (135.0, 0.99) if wide else (30 * level, 0.9 * level)
    shift: Any = ("translate_px", 32) if wide else ("translate_percent", 150 / 331 * level)
    none, one = (0, 0), (1.0, 1.0)

    def jitter(name: str) -> Any:
        still = dict.fromkeys(("brightness", "contrast", "saturation"), one) | {"hue": (0.0, 0.0)}
        return A.ColorJitter(**{**still, name: (1 - factor, 1 + factor)}, p=1.0)

    transforms = {
        "ShearX": A.Affine(shear={"x": (-slant, slant), "y": none}, **nearest),
        "ShearY": A.Affine(shear={"x": none, "y": (-slant, slant)}, **nearest),
        "TranslateX": A.Affine(**{shift[0]: {"x": (-shift[1], shift[1]), "y": none}}, **nearest),
        "TranslateY": A.Affine(**{shift[0]: {"x": none, "y": (-shift[1], shift[1])}}, **nearest),
        "Rotate": A.Rotate(limit=(-turn, turn), **nearest),
        "AutoContrast": A.AutoContrast(method="pil", p=1.0),
        "Invert": A.InvertImg(p=1.0),
        "Equalize": A.Equalize(mode="cv", p=1.0),
        "Solarize": A.Solarize(threshold_range=(1 - level, 1.0), p=1.0),
        "Posterize": A.Posterize(num_bits=(2, 8) if wide else (6, 8), p=1.0),
        "Contrast": jitter("contrast"),
        "Color": jitter("saturation"),
        "Brightness": jitter("brightness"),
        "Sharpness": A.Sharpen(p=1.0),
    }
    return lambda name, picture, _: transforms[name](image=picture)["image"]
