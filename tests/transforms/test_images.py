"""The operations as transforms: what they draw, and that what they do with it is Pillow's."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import images, operation
from augtree.transforms.geometry import Geometry, Rotate
from augtree.transforms.images import OPERATIONS, Color, Cutout, Posterize, SamplePairing, Solarize
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow

MAGNITUDES = (0.2, 0.4, 0.6, 0.8, 1.0)


def drawn(transform, count=4000, shape=(3, 32, 32), seed=0):
    """The parameters that a transform draws."""
    key = Key.of(seed, range(count))
    level = transform.magnitude - min(operation.BIN, transform.magnitude) * key.uniform(operation.LEVEL)
    return transform.values(level, operation.signs(key), transform.limit)


@pytest.mark.parametrize("magnitude", MAGNITUDES)
@pytest.mark.parametrize("kind", [kind for kind in OPERATIONS if kind.__name__ not in ("Cutout", "SamplePairing")])
def test_a_transform_does_what_pillow_does_with_the_parameter_drawn(kind, magnitude):
    transform = kind(magnitude)
    for channels in (1, 3):
        pictures = pillow.pictures(channels, 24, 20, seed=7)
        key = Key.of(5, range(len(pictures)))
        level = np.maximum(magnitude - operation.BIN * key.uniform(operation.LEVEL), 0)
        parameters = transform.values(level, operation.signs(key), transform.limit)
        done = transform(pictures, seed=5)
        for picture, value, ours in zip(pictures, parameters, done, strict=True):
            theirs = pillow.operate(transform.name, pillow.image(picture), float(value))
            assert torch.equal(ours, pillow.tensor(theirs))


@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_levels_are_uniform_in_their_bin(magnitude):
    degrees = np.abs(drawn(Rotate(magnitude)))
    low, high = 30 * (magnitude - 0.2), 30 * magnitude
    assert low < degrees.min() < low + 0.1
    assert high - 0.1 < degrees.max() <= high
    counts = np.histogram(degrees, bins=10, range=(low, high))[0]
    assert counts.min() > 330


def test_both_signs_occur_equally_often():
    for kind in OPERATIONS:
        if kind.signed:
            values = drawn(kind(0.6)) - (1 if issubclass(kind, images.Enhancement) else 0)
            assert 1850 < (values > 0).sum() < 2150


def test_magnitudes_that_are_no_multiple_of_the_bin_work():
    degrees = np.abs(drawn(Rotate(0.1)))
    assert degrees.max() <= 3
    assert np.histogram(degrees, bins=10, range=(0, 3))[0].min() > 330


def test_posterize_never_goes_below_four_bits():
    assert set(drawn(Posterize(1.0))) == {4, 5}
    assert set(drawn(Posterize(0.2))) == {7, 8}


def test_solarize_begins_above_everything():
    assert drawn(Solarize(0.2)).max() <= 256
    assert drawn(Solarize(0.2)).min() >= 204
    assert drawn(Solarize(1.0)).min() >= 0


def test_candidates_share_their_draws():
    """Rotate and Brightness at one key have the same level and the same sign."""
    turned, lit = drawn(Rotate(0.6)) / 30, (drawn(images.Brightness(0.6)) - 1) / 0.9
    assert np.allclose(turned, lit)


def test_cutout_covers_a_square_around_any_pixel():
    pictures = torch.full((3000, 1, 20, 30), 10, dtype=torch.uint8)
    done = Cutout(1.0, fill=200, share=0.5)(pictures, seed=0)
    covered = (done == 200).view(3000, 20, 30)
    heights, widths = covered.any(2).sum(1), covered.any(1).sum(1)
    assert bool((covered.sum((1, 2)) == heights * widths).all())  # a full rectangle
    assert int(heights.max()) == 10
    assert int(widths.max()) == 10
    assert int(heights.min()) < 6  # cut off at the border
    assert bool(covered.any(0).all())  # anywhere


def test_cutout_covers_at_least_a_pixel():
    done = Cutout(0.2)(torch.zeros(50, 3, 1, 1, dtype=torch.uint8), seed=0)
    assert bool((done == 128).all())


def test_sample_pairing_blends_with_another_picture_as_it_came(noise):
    transform = SamplePairing(1.0)
    key = Key.of(2, range(len(noise)))
    work = transform.draw(key, Shape(*noise.shape))[0][0]
    assert work.partners is not None
    assert bool((work.partners != key.rows).all())
    away = (work.partners - key.rows) % len(noise)
    assert len(set(away.tolist())) > 32  # any other picture, not the next one
    done = transform(noise, seed=2)
    for row, partner, weight in zip(key.rows, work.partners, work.params[0], strict=True):
        theirs = Image.blend(pillow.image(noise[row]), pillow.image(noise[partner]), float(weight))
        assert torch.equal(done[row], pillow.tensor(theirs))


def test_sample_pairing_alone_does_nothing(noise):
    assert torch.equal(SamplePairing(1.0)(noise[:1], seed=0), noise[:1])


@pytest.mark.parametrize("kind", OPERATIONS)
@pytest.mark.parametrize("magnitude", [0, -0.2, 1.2, "0.2", None, float("nan")])
def test_magnitudes_outside_their_range_are_refused(kind, magnitude):
    with pytest.raises(ArgumentError, match=r"magnitude must be a number in \(0, 1\]"):
        kind(magnitude)


def test_fills_are_bytes():
    with pytest.raises(ArgumentError, match="fill must be a whole number from 0 to 255, got 256"):
        Rotate(0.2, fill=256)


@pytest.mark.parametrize("channels", [2, 4, 7])
def test_other_channel_counts_work_where_they_have_a_meaning(channels):
    pictures = torch.randint(0, 256, (5, channels, 9, 8), dtype=torch.uint8)
    for kind in OPERATIONS:
        if kind is Color:
            with pytest.raises(InputError, match=f"Color needs pictures of 1 or 3 channels, got {channels}"):
                kind(0.6)(pictures)
        else:
            done = kind(0.6)(pictures, seed=0)
            assert done.shape == pictures.shape
            if issubclass(kind, Geometry | images.Plain):  # these treat channels alike
                single = torch.stack([kind(0.6)(pictures[:, c : c + 1], seed=0)[:, 0] for c in range(channels)], 1)
                assert torch.equal(done, single)


def test_the_table_in_the_documentation_is_true():
    text = (Path(__file__).parents[2] / "docs" / "transforms.md").read_text()
    section = text.partition("## The sixteen")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", section, flags=re.MULTILINE))
    assert list(rows) == [kind.__name__ for kind in OPERATIONS]
    for kind in OPERATIONS:
        limit, wide, sides, fill = [cell.strip() for cell in rows[kind.__name__].split("|")[1:5]]
        if issubclass(kind, images.Plain):
            assert (limit, wide) == ("", "")
            continue
        expected = kind.limit if kind is not Cutout else Cutout(1.0).share
        assert eval(limit, {}) == pytest.approx(expected), kind
        assert float(wide or 0) == kind.wide
        assert (sides == "yes") == kind.signed
        assert fill == (str(operation.FILL) if issubclass(kind, Geometry | Cutout) else "")
