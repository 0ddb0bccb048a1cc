"""Every kernel against Pillow, to the bit, on random and degenerate pictures of all sizes."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter, ImageOps

from augtree.transforms import kernels
from augtree.transforms.crops import bilinear
from augtree.transforms.geometry import shifted
from augtree.transforms.simclr import blur_weights
from support import pillow_reference as pillow
from support.pillow_reference import SHAPES, same, values


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["Brightness", "Contrast", "Color", "Sharpness"])
def test_enhancements(name, shape):
    pictures = pillow.pictures(*shape)
    factors = values(len(pictures), 0.0, 2.0, 1.0, 0.1, 1.9)
    kernel = getattr(kernels, name.lower())
    done = kernel(pictures, torch.from_numpy(factors.astype(np.float32)))
    images = [pillow.image(picture) for picture in pictures]
    same(done, [pillow.operate(name, image, factor) for image, factor in zip(images, factors, strict=True)])


@pytest.mark.parametrize("shape", SHAPES)
def test_solarize_at_every_threshold(shape):
    pictures = pillow.pictures(*shape)
    for start in range(0, 257, len(pictures)):
        thresholds = torch.arange(start, start + len(pictures)).clamp(max=256)
        images = [pillow.image(picture) for picture in pictures]
        theirs = [ImageOps.solarize(i, int(t)) for i, t in zip(images, thresholds, strict=True)]
        same(kernels.solarize(pictures, thresholds), theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_posterize_at_all_bits(shape):
    pictures = pillow.pictures(*shape)
    bits = torch.arange(len(pictures)) % 8 + 1
    images = [pillow.image(picture) for picture in pictures]
    theirs = [ImageOps.posterize(i, int(b)) for i, b in zip(images, bits, strict=True)]
    same(kernels.posterize(pictures, bits), theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_operations_without_a_parameter(shape):
    pictures = pillow.pictures(*shape)
    images = [pillow.image(picture) for picture in pictures]
    same(kernels.auto_contrast(pictures), [ImageOps.autocontrast(image) for image in images])
    same(kernels.equalize(pictures), [ImageOps.equalize(image) for image in images])
    none = torch.zeros(len(pictures), dtype=torch.long)
    same(kernels.solarize(pictures, none), [ImageOps.invert(image) for image in images])


def test_auto_contrast_for_every_pair_of_extremes():
    low, high = torch.triu_indices(256, 256).to(torch.uint8)
    pictures = torch.stack([low, high, (low.int() + (high.int() - low.int()) // 3).to(torch.uint8)], dim=1)
    pictures = pictures.view(-1, 1, 1, 3)
    done = kernels.auto_contrast(pictures)
    for row in range(0, len(pictures), 97):
        assert torch.equal(done[row], pillow.tensor(ImageOps.autocontrast(pillow.image(pictures[row])))), row


@pytest.mark.parametrize("shape", SHAPES)
def test_blending_two_pictures(shape):
    pictures = pillow.pictures(*shape)
    partners = pictures.flip(0)
    weights = values(len(pictures), 0.0, 0.4, 0.2)
    done = kernels.pair(pictures, partners, torch.from_numpy(weights.astype(np.float32)))
    images = [pillow.image(picture) for picture in pictures]
    same(done, [Image.blend(a, b, w) for a, b, w in zip(images, images[::-1], weights, strict=True)])


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_blur(shape):
    pictures = pillow.pictures(*shape)
    sigma = values(len(pictures), 0.1, 2.0, 1.0, 5.0)
    done = kernels.gaussian_blur(pictures, torch.from_numpy(blur_weights(sigma)))
    images = [pillow.image(picture) for picture in pictures]
    same(done, [i.filter(ImageFilter.GaussianBlur(float(s))) for i, s in zip(images, sigma, strict=True)])


@pytest.mark.parametrize("shape", SHAPES)
def test_resized_crops(shape):
    _, height, width = shape
    pictures = pillow.pictures(*shape)
    rng = np.random.default_rng(0)
    part_width, part_height = rng.integers(1, width + 1, len(pictures)), rng.integers(1, height + 1, len(pictures))
    left, top = rng.integers(0, width - part_width + 1), rng.integers(0, height - part_height + 1)
    images = [pillow.image(picture) for picture in pictures]
    boxes = np.stack([left, top, left + part_width, top + part_height], axis=1).tolist()
    for out_height, out_width in ((height, width), (height + 5, width + 5), (2 * height, 2 * width)):
        tables = bilinear(width, left, left + part_width, out_width)
        tables += bilinear(height, top, top + part_height, out_height)
        done = kernels.resize(pictures, *(torch.from_numpy(table) for table in tables))
        size = (out_width, out_height)
        same(done, [i.resize(size, Image.Resampling.BILINEAR, box=b) for i, b in zip(images, boxes, strict=True)])


def test_shrinking_crops():
    pictures = pillow.pictures(3, 40, 40)
    images = [pillow.image(picture) for picture in pictures]
    edges = np.full(len(pictures), 3), np.full(len(pictures), 38)
    tables = bilinear(40, *edges, 16) * 2
    done = kernels.resize(pictures, *(torch.from_numpy(table) for table in tables))
    same(done, [i.resize((16, 16), Image.Resampling.BILINEAR, box=(3, 3, 38, 38)) for i in images])


def test_grey_is_pillows():
    pictures = pillow.pictures(3, 32, 32)
    ours = kernels.grey_out(pictures)
    same(ours, [pillow.image(p).convert("L").convert("RGB") for p in pictures])


def test_hue_is_pillows_hsv_both_ways():
    """A picture of 65,536 colours spread over all of them, turned by every step."""
    code = (torch.arange(65_536) * 257 + 13) % (1 << 24)
    picture = torch.stack([code >> 16, (code >> 8) & 255, code & 255]).to(torch.uint8).view(1, 3, 256, 256)
    hsv = np.asarray(pillow.image(picture[0]).convert("HSV"))
    ours = torch.stack(kernels.to_hsv(picture), dim=-1)[0].to(torch.uint8)
    assert torch.equal(ours, torch.from_numpy(hsv.copy()))
    for turn in (-51, -1, 0, 1, 17, 51, 255):
        moved = hsv.copy()
        moved[..., 0] += np.uint8(turn % 256)
        theirs = Image.frombytes("HSV", (256, 256), moved.tobytes()).convert("RGB")
        same(kernels.hue(picture, torch.tensor([turn])), [theirs])


def test_hue_leaves_grey_pictures_alone():
    picture = pillow.pictures(1, 5, 5)
    assert torch.equal(kernels.hue(picture, torch.full((len(picture),), 40)), picture)


def test_mirror_is_pillows():
    pictures = pillow.pictures(3, 5, 8)
    same(kernels.mirror(pictures), [ImageOps.mirror(pillow.image(picture)) for picture in pictures])


def test_sobel_by_hand():
    picture = torch.tensor([[0, 0, 10], [0, 0, 10], [0, 0, 10]], dtype=torch.uint8).view(1, 1, 3, 3)
    assert kernels.sobel(picture).view(3, 3).tolist() == [[0, 40, 40]] * 3
    slope = torch.tensor([[0, 3], [4, 7]], dtype=torch.uint8).view(1, 1, 2, 2)
    assert kernels.sobel(slope).view(2, 2).tolist() == [[20, 20]] * 2  # 12 across, 16 down


def test_boxes_by_hand():
    picture = torch.arange(12, dtype=torch.uint8).view(1, 1, 3, 4)
    done = kernels.fill_box(picture, torch.tensor([[1, -1, 3, 2]]), torch.tensor([200]))
    assert done.view(3, 4).tolist() == [[0, 200, 200, 3], [4, 200, 200, 7], [8, 9, 10, 11]]


def test_noise_is_normal():
    picture = torch.full((1, 1, 200, 200), 128, dtype=torch.uint8)
    noise = kernels.add_noise(picture, torch.tensor([99]), torch.tensor([12.0])).double() - 128
    assert abs(float(noise.mean())) < 0.2
    assert abs(float(noise.std()) - 12) < 0.2
    inside = float((noise.abs() <= 12).double().mean())
    assert abs(inside - 0.702) < 0.01  # P(|N| < 12.5/12)


def test_integer_shifts_move_whole_pixels():
    picture = torch.arange(9, dtype=torch.uint8).view(1, 1, 3, 3)
    table = torch.from_numpy(shifted(np.array([1]), np.array([-1])))
    done = kernels.warp(picture, table, torch.tensor([50]))
    assert done.view(3, 3).tolist() == [[50, 50, 50], [1, 2, 50], [4, 5, 50]]


def test_grey_of_other_channel_counts_is_the_rounded_mean():
    pixels = torch.tensor([[0, 1], [10, 11], [5, 6], [250, 251]], dtype=torch.uint8).t().reshape(2, 4, 1, 1)
    assert kernels.grey(pixels).view(-1).tolist() == [66, 67]  # 265 / 4 = 66.25, 269 / 4 = 67.25
