"""Operations on pictures that gradients go through, each the identity at value 0, with a value for each picture.

Pictures are floats within 0..255. Unlike the transforms, warps are bilinear and nothing is rounded.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.transforms import (
    Brightness,
    Color,
    Contrast,
    Rotate,
    Sharpness,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
)

GEOMETRY = (ShearX, ShearY, TranslateX, TranslateY, Rotate)
TONES = (Brightness, Contrast, Color, Sharpness)
NAMES = tuple(kind.__name__ for kind in (*GEOMETRY, *TONES))
LIMITS = tuple(kind.limit for kind in (*GEOMETRY, *TONES))
"""The largest value of each: slants, shares of the side, degrees, and differences of a factor from 1."""
LUMA = (0.299, 0.587, 0.114)


def compose(pictures: Tensor, values: Tensor, fill: float) -> Tensor:
    """All operations in the order of NAMES; `values` is [pictures, operations]."""
    shear_x, shear_y, across, down, degrees, brightness, contrast, color, sharpness = values.unbind(1)
    out = warp(pictures, affine(shear_x, shear_y, degrees), torch.stack([across, down], 1), fill)
    out = out * factor(brightness)
    out = away(out, grey(out).mean((1, 2, 3), keepdim=True), contrast)
    out = away(out, grey(out), color)
    return away(out, smooth(out), sharpness).clamp(0, 255)


def factor(value: Tensor) -> Tensor:
    """1 + value, shaped to meet pictures."""
    return (1 + value).view(-1, 1, 1, 1)


def away(pictures: Tensor, poorer: Tensor, value: Tensor) -> Tensor:
    """Pictures moved away from something poorer, or towards it."""
    return poorer + (pictures - poorer) * factor(value)


def grey(pictures: Tensor) -> Tensor:
    """One channel: by luminance for RGB, else the mean."""
    if pictures.shape[1] != 3:
        return pictures.mean(1, keepdim=True)
    return (pictures * pictures.new_tensor(LUMA).view(1, 3, 1, 1)).sum(1, keepdim=True)


def smooth(pictures: Tensor) -> Tensor:
    """Pillow's SMOOTH filter, the border continued."""
    kernel = pictures.new_tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    wide = torch.cat([pictures[..., :1], pictures, pictures[..., -1:]], -1)  # F.pad has no deterministic backward
    framed = torch.cat([wide[..., :1, :], wide, wide[..., -1:, :]], -2)
    return F.conv2d(framed.flatten(0, 1)[:, None], kernel[None, None]).view_as(pictures)


def affine(shear_x: Tensor, shear_y: Tensor, degrees: Tensor) -> Tensor:
    """The matrices [n, 2, 2] that slant sideways, then down, then turn; the transforms slant about a corner."""
    one, zero, angle = torch.ones_like(degrees), torch.zeros_like(degrees), degrees * (math.pi / 180)
    turn = [torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)]
    entries = ([one, shear_x, zero, one], [one, zero, shear_y, one], turn)
    sideways, downwards, turned = (torch.stack(each, 1).view(-1, 2, 2) for each in entries)
    return turned @ downwards @ sideways


def warp(pictures: Tensor, matrices: Tensor, shifts: Tensor, fill: float) -> Tensor:
    """Take each pixel from where the matrix about the middle, and the shift in shares of the side, say."""
    height, width = pictures.shape[2:]
    middle = pictures.new_tensor([(width - 1) / 2, (height - 1) / 2])
    xs, ys = (torch.arange(side, device=pictures.device, dtype=pictures.dtype) for side in (width, height))
    grid = torch.stack([xs.expand(height, width), ys[:, None].expand(height, width)], -1).view(1, -1, 2) - middle
    source = grid @ matrices.transpose(1, 2) + (shifts * pictures.new_tensor([width, height]))[:, None] + middle
    return bilinear(pictures, source[..., 0], source[..., 1], fill)


def bilinear(pictures: Tensor, x: Tensor, y: Tensor, fill: float) -> Tensor:
    """The values at places [n, pixels] within pictures, which a frame of the fill surrounds.

    By gathering from pictures that need no gradient themselves: torch's grid_sample has no deterministic backward.
    """
    height, width = pictures.shape[2:]
    framed = F.pad(pictures, (1, 1, 1, 1), value=fill).flatten(2)
    x, y = x.clamp(-1, width), y.clamp(-1, height)
    left, top = x.detach().floor().clamp(max=width - 1), y.detach().floor().clamp(max=height - 1)
    right_share, low_share = x - left, y - top
    out = torch.zeros_like(pictures).flatten(2)
    for down, row_share in ((1, 1 - low_share), (2, low_share)):
        for across, column_share in ((1, 1 - right_share), (2, right_share)):
            place = ((top + down) * (width + 2) + left + across).long()
            found = framed.gather(2, place[:, None].expand(-1, pictures.shape[1], -1))
            out = out + found * (row_share * column_share)[:, None]
    return out.view_as(pictures)
