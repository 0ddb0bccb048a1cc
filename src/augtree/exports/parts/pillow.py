"""Operations on one Pillow image, each by a given value: torchvision's own wherever it has the same one."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import torch
from PIL import Image, ImageFilter
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as vision

from augtree.exports.parts.draws import Draws, between
from augtree.exports.parts.sizes import covered_box, random_box, random_quarters, random_turn
from augtree.keys import signed
from augtree.transforms.kernels import add_noise, sobel

# ---- values


def adjust_brightness(picture: Any, factor: float) -> Any:
    """Darker below 1, lighter above."""
    return vision.adjust_brightness(picture, factor)


def adjust_color(picture: Any, factor: float) -> Any:
    """Towards the grey picture below 1, away from it above."""
    return vision.adjust_saturation(picture, factor)


def adjust_contrast(picture: Any, factor: float) -> Any:
    """Towards the mean grey below 1, away from it above."""
    return vision.adjust_contrast(picture, factor)


def adjust_sharpness(picture: Any, factor: float) -> Any:
    """Smoother below 1, sharper above."""
    return vision.adjust_sharpness(picture, factor)


def adjust_hue(picture: Any, turn: float) -> Any:
    """Turn the colour circle by a share of it."""
    return vision.adjust_hue(picture, turn)


def autocontrast(picture: Any) -> Any:
    """Stretch every channel to 0..255."""
    return vision.autocontrast(picture)


def equalize_histogram(picture: Any) -> Any:
    """Flatten every channel's histogram."""
    return vision.equalize(picture)


def solarize_from(picture: Any, threshold: int) -> Any:
    """Turn values from a threshold up into their negatives."""
    return vision.solarize(picture, threshold)


def keep_bits(picture: Any, bits: int) -> Any:
    """Keep the highest bits of every value."""
    return vision.posterize(picture, bits)


def turn_grey(picture: Any) -> Any:
    """The grey picture in every channel."""
    return vision.rgb_to_grayscale(picture, num_output_channels=len(picture.getbands()))


def color_distortion(picture: Any, draws: Draws, strength: float, jitter_p: float, grey_p: float) -> Any:
    """Jitter brightness, contrast, colour and hue in random order; then sometimes grey."""
    if draws.uniform(0) < jitter_p:
        steps = (adjust_brightness, adjust_contrast, adjust_color, adjust_hue)
        reach, circle = 0.8 * strength, 0.2 * strength
        values = [between(1 - reach, 1 + reach, draws.uniform(2 + i)) for i in range(3)]
        values.append(between(-circle, circle, draws.uniform(5)))
        for i in list(permutations(range(4)))[draws.below(24, 6)]:
            picture = steps[i](picture, values[i])
    return turn_grey(picture) if draws.uniform(1) < grey_p else picture


def gaussian_noise(picture: Any, draws: Draws, low: float, high: float) -> Any:
    """Add normal noise whose deviation is a share of 255 between these; torchvision's is for floats alone."""
    deviation = torch.tensor([255 * between(low, high, draws.uniform())])
    noisy = add_noise(vision.pil_to_tensor(picture)[None], torch.tensor([signed(draws.state)]), deviation)
    return vision.to_pil_image(noisy[0])


# ---- neighbourhoods


def edges(picture: Any) -> Any:
    """The length of Sobel's gradient in every channel, which torchvision does not have."""
    return vision.to_pil_image(sobel(vision.pil_to_tensor(picture)[None])[0])


def blur(picture: Any, sigma: float) -> Any:
    """Pillow's Gaussian blur; torchvision's has a kernel of a fixed size."""
    return picture.filter(ImageFilter.GaussianBlur(sigma))


# ---- geometry


def shear_x(picture: Any, slope: float, fill: int) -> Any:
    """Slant sideways."""
    return moved(picture, fill, shear=[math.degrees(math.atan(slope)), 0.0])


def shear_y(picture: Any, slope: float, fill: int) -> Any:
    """Slant up or down."""
    return moved(picture, fill, shear=[0.0, math.degrees(math.atan(slope))])


def translate_x(picture: Any, share: float, fill: int) -> Any:
    """Move sideways by a share of the width."""
    return moved(picture, fill, translate=[-math.floor(share * picture.width + 0.5), 0])


def translate_y(picture: Any, share: float, fill: int) -> Any:
    """Move up or down by a share of the height."""
    return moved(picture, fill, translate=[0, -math.floor(share * picture.height + 0.5)])


def moved(picture: Any, fill: int, translate: Any = (0, 0), shear: Any = (0.0, 0.0)) -> Any:
    """An affine map about the upper left corner; nearest neighbour."""
    nearest = InterpolationMode.NEAREST
    corner = [0.0, 0.0]
    return vision.affine(picture, 0.0, list(translate), 1.0, list(shear), nearest, fill=fill, center=corner)


def rotate(picture: Any, degrees: float, fill: int) -> Any:
    """Turn about the middle; nearest neighbour."""
    return vision.rotate(picture, degrees, InterpolationMode.NEAREST, fill=fill)


def pad_and_crop(picture: Any, draws: Draws, pad: int, fill: int) -> Any:
    """Pad, then crop a random part of the picture's own size."""
    left, top = draws.below(2 * pad + 1, 0), draws.below(2 * pad + 1, 1)
    return vision.crop(vision.pad(picture, [pad], fill=fill), top, left, picture.height, picture.width)


def flip_left_right(picture: Any) -> Any:
    """Left becomes right."""
    return vision.horizontal_flip(picture)


def flip_up_down(picture: Any) -> Any:
    """Top becomes bottom."""
    return vision.vertical_flip(picture)


def quarter_turn(picture: Any, draws: Draws) -> Any:
    """Turn by 0, 90, 180 or 270 degrees."""
    quarters = random_quarters(draws, picture.width, picture.height)
    return vision.rotate(picture, 90.0 * quarters) if quarters else picture


def rotation(picture: Any, draws: Draws) -> Any:
    """Turn by 90, 180 or 270 degrees."""
    return vision.rotate(picture, float(random_turn(draws, picture.width, picture.height)))


def cutout(picture: Any, draws: Draws, share: float, fill: int) -> Any:
    """Cover a square whose side is a share of the shorter side."""
    left, top, right, bottom = covered_box(draws, picture.width, picture.height, share)
    left, top = max(left, 0), max(top, 0)
    right, bottom = min(right, picture.width), min(bottom, picture.height)
    square = torch.full((len(picture.getbands()), bottom - top, right - left), fill, dtype=torch.uint8)
    return vision.erase(picture, top, left, bottom - top, right - left, square)


def random_crop(
    picture: Any,
    draws: Draws,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    size: tuple[int, int] | None = None,
) -> Any:
    """Stretch a random part to a size (height, width); torchvision's would not see beyond the border of the part."""
    box = random_box(draws, picture.width, picture.height, scale, ratio)
    height, width = size or (picture.height, picture.width)
    return picture.resize((width, height), Image.Resampling.BILINEAR, box=box)


def width_of(picture: Any) -> int:
    """The width in pixels."""
    return int(picture.width)


def height_of(picture: Any) -> int:
    """The height in pixels."""
    return int(picture.height)
