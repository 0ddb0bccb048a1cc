"""Operations on one picture as a uint8 tensor [C,H,W], each by a given value: batches of one of augtree's kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import torch
from torch import Tensor

from augtree.exports.parts.draws import Draws, between
from augtree.exports.parts.sizes import covered_box, random_box, random_quarters, random_turn
from augtree.keys import signed
from augtree.transforms.kernels import (
    add_noise,
    auto_contrast,
    brightness,
    color,
    contrast,
    equalize,
    fill_box,
    gaussian_blur,
    grey_out,
    hue,
    pair,
    posterize,
    resize,
    sharpness,
    sobel,
    solarize,
    warp,
)


def on_one(kernel: Callable[..., Tensor], picture: Tensor, *values: float) -> Tensor:
    """A batched operation on one picture, by its values."""
    return kernel(picture[None], *(parameter(picture, [value])[0] for value in values))[0]


def parameter(picture: Tensor, values: list[float] | list[int]) -> Tensor:
    """Values [1,n] of an operation, where the picture is."""
    dtype = torch.int64 if isinstance(values[0], int) else torch.float32
    return torch.tensor([values], dtype=dtype, device=picture.device)


# ---- values


def adjust_brightness(picture: Tensor, factor: float) -> Tensor:
    """Darker below 1, lighter above."""
    return on_one(brightness, picture, factor)


def adjust_color(picture: Tensor, factor: float) -> Tensor:
    """Towards the grey picture below 1, away from it above."""
    return on_one(color, picture, factor)


def adjust_contrast(picture: Tensor, factor: float) -> Tensor:
    """Towards the mean grey below 1, away from it above."""
    return on_one(contrast, picture, factor)


def adjust_sharpness(picture: Tensor, factor: float) -> Tensor:
    """Smoother below 1, sharper above."""
    return on_one(sharpness, picture, factor)


def adjust_hue(picture: Tensor, turn: float) -> Tensor:
    """Turn the colour circle by a share of it."""
    return on_one(hue, picture, math.trunc(turn * 255))


def autocontrast(picture: Tensor) -> Tensor:
    """Stretch every channel to 0..255."""
    return on_one(auto_contrast, picture)


def equalize_histogram(picture: Tensor) -> Tensor:
    """Flatten every channel's histogram."""
    return on_one(equalize, picture)


def solarize_from(picture: Tensor, threshold: int) -> Tensor:
    """Turn values from a threshold up into their negatives."""
    return on_one(solarize, picture, threshold)


def keep_bits(picture: Tensor, bits: int) -> Tensor:
    """Keep the highest bits of every value."""
    return on_one(posterize, picture, bits)


def turn_grey(picture: Tensor) -> Tensor:
    """The grey picture in every channel."""
    return on_one(grey_out, picture)


def color_distortion(picture: Tensor, draws: Draws, strength: float, jitter_p: float, grey_p: float) -> Tensor:
    """Jitter brightness, contrast, colour and hue in random order; then sometimes grey."""
    if draws.uniform(0) < jitter_p:
        steps = (adjust_brightness, adjust_contrast, adjust_color, adjust_hue)
        reach, circle = 0.8 * strength, 0.2 * strength
        values = [between(1 - reach, 1 + reach, draws.uniform(2 + i)) for i in range(3)]
        values.append(between(-circle, circle, draws.uniform(5)))
        for i in list(permutations(range(4)))[draws.below(24, 6)]:
            picture = steps[i](picture, values[i])
    return turn_grey(picture) if draws.uniform(1) < grey_p else picture


def gaussian_noise(picture: Tensor, draws: Draws, low: float, high: float) -> Tensor:
    """Add normal noise whose deviation is a share of 255 between these."""
    states = torch.tensor([signed(draws.state)], device=picture.device)
    deviation = parameter(picture, [255 * between(low, high, draws.uniform())])[0]
    return add_noise(picture[None], states, deviation)[0]


def sample_pairing(picture: Tensor, draws: Draws, weight: float) -> Tensor:
    """Blend with another picture of the same batch, as it came."""
    batch = picture[None] if draws.batch is None else draws.batch
    partner = batch[(draws.row + 1 + draws.below(max(len(batch) - 1, 1), 2)) % len(batch)]
    return pair(picture[None], partner[None], parameter(picture, [weight])[0])[0]


# ---- neighbourhoods


def edges(picture: Tensor) -> Tensor:
    """The length of Sobel's gradient in every channel."""
    return on_one(sobel, picture)


def blur(picture: Tensor, sigma: float) -> Tensor:
    """Gaussian blur by six box blurs, as Pillow does it."""
    return gaussian_blur(picture[None], parameter(picture, blur_weights(sigma)))[0].contiguous()


def blur_weights(sigma: float) -> list[int]:
    """Weights by distance, in 24 bits, of the box blur that Pillow makes of a deviation, in its floats."""
    f = torch.tensor([sigma, 1.0, 2.0, 3.0, 6.0, 1 << 24], dtype=torch.float32)
    deviation, one, two, three, six, unit = f
    variance = deviation * deviation / three
    length = (12.0 * variance.double() + 1.0).sqrt().float()
    whole = ((length.double() - 1.0) / 2.0).floor().float()
    part = (two * whole + one) * (whole * (whole + one) - three * variance)
    part = part / (six * (variance - (whole + one) * (whole + one)))
    radius = whole + part
    inner = int(radius)
    weight = int(unit / (radius * two + one))
    rest = ((1 << 24) - (2 * inner + 1) * weight) // 2
    return [weight] * (inner + 1) + [rest]


# ---- geometry


def shear_x(picture: Tensor, slope: float, fill: int) -> Tensor:
    """Slant sideways."""
    return warped(picture, affine(1.0, slope, 0.0, 0.0, 1.0, 0.0), fill)


def shear_y(picture: Tensor, slope: float, fill: int) -> Tensor:
    """Slant up or down."""
    return warped(picture, affine(1.0, 0.0, 0.0, slope, 1.0, 0.0), fill)


def translate_x(picture: Tensor, share: float, fill: int) -> Tensor:
    """Move sideways by a share of the width."""
    return shifted(picture, math.floor(share * picture.shape[2] + 0.5), 0, fill)


def translate_y(picture: Tensor, share: float, fill: int) -> Tensor:
    """Move up or down by a share of the height."""
    return shifted(picture, 0, math.floor(share * picture.shape[1] + 0.5), fill)


def rotate(picture: Tensor, degrees: float, fill: int) -> Tensor:
    """Turn about the middle; nearest neighbour."""
    angle = -math.radians(degrees % 360.0)
    cos, sin = round(math.cos(angle), 15), round(math.sin(angle), 15)
    x, y = picture.shape[2] / 2, picture.shape[1] / 2
    return warped(picture, affine(cos, sin, cos * -x + sin * -y + x, -sin, cos, -sin * -x + cos * -y + y), fill)


def affine(a: float, b: float, c: float, d: float, e: float, f: float) -> list[int]:
    """Pixel (x, y) comes from (ax + by + c, dx + ey + f), at pixel middles, in 16.16 fixed-point numbers."""
    numbers = (a, b, c + a * 0.5 + b * 0.5, d, e, f + d * 0.5 + e * 0.5)
    return [math.floor(number * 65536.0 + 0.5) for number in numbers]


def warped(picture: Tensor, coefficients: list[int], fill: int) -> Tensor:
    """Take each pixel from where an affine map says."""
    return warp(picture[None], parameter(picture, coefficients), parameter(picture, [fill])[0])[0]


def shifted(picture: Tensor, x: int, y: int, fill: int) -> Tensor:
    """Take pixel (i, j) from (i + x, j + y)."""
    return warped(picture, [1 << 16, 0, x << 16, 0, 1 << 16, y << 16], fill)


def pad_and_crop(picture: Tensor, draws: Draws, pad: int, fill: int) -> Tensor:
    """Pad, then crop a random part of the picture's own size."""
    return shifted(picture, draws.below(2 * pad + 1, 0) - pad, draws.below(2 * pad + 1, 1) - pad, fill)


def flip_left_right(picture: Tensor) -> Tensor:
    """Left becomes right."""
    return picture.flip(2)


def flip_up_down(picture: Tensor) -> Tensor:
    """Top becomes bottom."""
    return picture.flip(1)


def quarter_turn(picture: Tensor, draws: Draws) -> Tensor:
    """Turn by 0, 90, 180 or 270 degrees."""
    quarters = random_quarters(draws, picture.shape[2], picture.shape[1])
    return torch.rot90(picture, quarters, (1, 2)).contiguous() if quarters else picture


def rotation(picture: Tensor, draws: Draws) -> Tensor:
    """Turn by 90, 180 or 270 degrees."""
    return rotate(picture, random_turn(draws, picture.shape[2], picture.shape[1]), 0)


def cutout(picture: Tensor, draws: Draws, share: float, fill: int) -> Tensor:
    """Cover a square whose side is a share of the shorter side."""
    box = list(covered_box(draws, picture.shape[2], picture.shape[1], share))
    return fill_box(picture[None], parameter(picture, box), parameter(picture, [fill])[0])[0]


def random_crop(
    picture: Tensor,
    draws: Draws,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    size: tuple[int, int] | None = None,
) -> Tensor:
    """Stretch a random part to a size (height, width), by default the picture's own."""
    _, height, width = picture.shape
    left, top, right, bottom = random_box(draws, width, height, scale, ratio)
    down, across = size or (height, width)
    tables = bilinear(width, left, right, across) + bilinear(height, top, bottom, down)
    return resize(picture[None], *(table[None].to(picture.device) for table in tables))[0].contiguous()


def bilinear(size: int, start: int, stop: int, out: int) -> tuple[Tensor, Tensor]:
    """Pillow's bilinear weights [out,taps] (22 bits) and first sources [out] for stretching [start, stop)."""
    scale = (stop - start) / out
    reach = max(scale, 1.0)
    middle = start + (torch.arange(out, dtype=torch.float64) + 0.5) * scale
    first = (middle - reach + 0.5).long().clamp(min=0)
    count = (middle + reach + 0.5).long().clamp(max=size) - first
    taps = torch.arange(int(count.max()))
    distance = ((taps + first[:, None] - middle[:, None] + 0.5) * (1.0 / reach)).abs()
    weights = torch.where(taps < count[:, None], (1 - distance).clamp(min=0), 0)
    total = weights.cumsum(1)[:, -1:]  # summed in order, as Pillow does
    return first, (weights / total * (1 << 22) + 0.5).long()


def width_of(picture: Tensor) -> int:
    """The width in pixels."""
    return picture.shape[2]


def height_of(picture: Tensor) -> int:
    """The height in pixels."""
    return picture.shape[1]
