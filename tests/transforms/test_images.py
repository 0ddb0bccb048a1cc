"""The operations as transforms: what they draw, and that what they do with it is Pillow's."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.errors import InputError
from augtree.keys import Key
from augtree.transforms import images, operation
from augtree.transforms.geometry import Geometry
from augtree.transforms.images import OPERATIONS, Color, Cutout, Posterize, SamplePairing, Solarize
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow
from support.draws import drawn


@pytest.mark.parametrize("magnitude", [0.2, 0.4, 0.6, 0.8, 1.0])
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


def test_posterize_never_goes_below_four_bits():
    assert set(drawn(Posterize(1.0))) == {4, 5}
    assert set(drawn(Posterize(0.2))) == {7, 8}


def test_solarize_begins_above_everything():
    assert drawn(Solarize(0.2)).max() <= 256
    assert drawn(Solarize(0.2)).min() >= 204
    assert drawn(Solarize(1.0)).min() >= 0


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
