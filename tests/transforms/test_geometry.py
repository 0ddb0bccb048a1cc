"""The operations that move pixels against Pillow, to the bit."""

import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError
from augtree.transforms import kernels
from augtree.transforms.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY, turned
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow
from support.pillow_reference import SHAPES, same, values


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [0.3, 0.99])
def test_shears(shape, limit):
    pictures = pillow.pictures(*shape)
    amounts = values(len(pictures), -limit, limit, 0.0)
    fill = torch.arange(len(pictures))
    for transform in (ShearX(1.0), ShearY(1.0)):
        table = transform.coefficients(amounts, Shape(len(pictures), *shape))
        done = kernels.warp(pictures, torch.from_numpy(table), fill)
        images = [pillow.image(picture) for picture in pictures]
        theirs = [
            pillow.operate(transform.name, i, v, f) for f, (i, v) in enumerate(zip(images, amounts, strict=True))
        ]
        same(done, theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_translations(shape):
    pictures = pillow.pictures(*shape)
    amounts = values(len(pictures), -1.2, 1.2, 0.0, 0.5, -0.5, 150 / 331)
    fill = torch.full((len(pictures),), 128)
    for transform in (TranslateX(1.0), TranslateY(1.0)):
        table = transform.coefficients(amounts, Shape(len(pictures), *shape))
        done = kernels.warp(pictures, torch.from_numpy(table), fill)
        images = [pillow.image(picture) for picture in pictures]
        theirs = [pillow.operate(transform.name, i, v) for i, v in zip(images, amounts, strict=True)]
        same(done, theirs)


def test_translations_just_beside_half_a_pixel():
    """Pillow rounds translations in doubles, not in its 16.16 numbers, which would move these by a pixel."""
    picture = torch.arange(32, dtype=torch.uint8).view(1, 1, 1, 32)
    for pixels in (0.5 - 2e-6, 0.5, 2.5 - 1e-6, -0.5 + 1e-7, -1.5 - 1e-6):
        table = TranslateX(1.0).coefficients(np.array([pixels / 32]), Shape(1, 1, 1, 32))
        done = kernels.warp(picture, torch.from_numpy(table), torch.tensor([7]))
        same(done, [pillow.operate("TranslateX", pillow.image(picture[0]), pixels / 32, 7)])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [30.0, 135.0])
def test_rotations(shape, limit):
    pictures = pillow.pictures(*shape)
    degrees = values(len(pictures), -limit, limit, 0.0, 90.0, -90.0, 45.0, 180.0, 1e-9)
    table = turned(degrees, Shape(len(pictures), *shape))
    done = kernels.warp(pictures, torch.from_numpy(table), torch.full((len(pictures),), 128))
    images = [pillow.image(picture) for picture in pictures]
    same(done, [pillow.operate("Rotate", i, v) for i, v in zip(images, degrees, strict=True)])


def test_geometry_of_a_large_picture():
    pictures = pillow.pictures(3, 224, 200)[:1]
    for degrees in (-30.0, 12.345, 29.9):
        table = turned(np.array([degrees]), Shape(1, 3, 224, 200))
        done = kernels.warp(pictures, torch.from_numpy(table), torch.tensor([0]))
        same(done, [pillow.operate("Rotate", pillow.image(pictures[0]), degrees, 0)])


def test_fills_are_bytes():
    with pytest.raises(ArgumentError, match="fill must be a whole number from 0 to 255, got 256"):
        Rotate(0.2, fill=256)
