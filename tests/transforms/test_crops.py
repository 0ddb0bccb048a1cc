import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import Flip, Normalize, PadCrop, RandomCrop, ResizedCrop
from augtree.transforms.crops import crop_tables
from augtree.transforms.pictures import Shape


def test_flips_are_mirror_images_of_half_the_pictures(noise):
    done = Flip()(noise, seed=1)
    flipped = [torch.equal(a, b.flip(2)) for a, b in zip(done, noise, strict=True)]
    kept = [torch.equal(a, b) for a, b in zip(done, noise, strict=True)]
    assert all(f or k for f, k in zip(flipped, kept, strict=True))
    assert 18 < sum(flipped) < 46
    assert torch.equal(Flip(1.0)(noise, seed=1), noise.flip(3))
    assert torch.equal(Flip(0.0)(noise, seed=1), noise)


def test_a_padded_crop_is_a_crop_of_the_padded_picture(noise):
    done = PadCrop(4, fill=9)(noise, seed=0)
    padded = torch.nn.functional.pad(noise, (4, 4, 4, 4), value=9)
    places = set()
    for picture, around in zip(done, padded, strict=True):
        found = [
            (y, x) for y in range(9) for x in range(9) if torch.equal(around[:, y : y + 32, x : x + 32], picture)
        ]
        assert len(found) == 1
        places.add(found[0])
    assert len(places) > 35


def test_a_random_crop_has_the_area_and_form_it_should():
    transform = RandomCrop(scale=(0.25, 0.25), ratio=(1.0, 1.0))
    first, across, *_ = crop_tables(
        transform.scale, transform.ratio, Key.of(0, range(500)), Shape(500, 1, 40, 40), (40, 40)
    )
    assert np.allclose(across.sum(2), 1 << 22, atol=3)
    widths = first[:, -1] - first[:, 0]  # a part of 20 pixels, stretched to 40
    assert set(widths.tolist()) <= {18, 19, 20}
    assert len(set(first[:, 0].tolist())) > 15


def test_the_four_draws_of_a_crop_are_independent():
    """Recover area, form and place of each part from its tables."""
    shape = Shape(3000, 1, 200, 200)
    left, _, top, _ = crop_tables((0.1, 0.5), (0.8, 1.25), Key.of(0, range(3000)), shape, (200, 200))
    width, height = left[:, -1] - left[:, 0] + 2.0, top[:, -1] - top[:, 0] + 2.0
    area, form = width * height / 40_000, np.log(width / height)
    x, y = left[:, 0] / (200 - width), top[:, 0] / (200 - height)
    assert np.abs(np.corrcoef([area, form, x, y]) - np.eye(4)).max() < 0.06
    for values, low, high in ((area, 0.1, 0.5), (np.exp(form), 0.8, 1.25), (x, 0, 1), (y, 0, 1)):
        assert abs(values.min() - low) < 0.03
        assert abs(values.max() - high) < 0.03


def test_cropping_everything_changes_nothing(noise):
    assert torch.equal(RandomCrop(scale=(1.0, 1.0), ratio=(1.0, 1.0))(noise, seed=0), noise)


def test_resized_crops_have_the_size_asked_for(noise):
    assert ResizedCrop(size=20)(noise, seed=0).shape == (64, 3, 20, 20)
    assert ResizedCrop(size=(10, 50))(noise[0], seed=0).shape == (3, 10, 50)
    assert ResizedCrop(size=(10, 50))(noise.float() / 255, seed=0).shape == (64, 3, 10, 50)


def test_a_transform_of_all_or_none_refuses_a_part():
    key = Key.of(0, range(4)).take(np.array([0, 2]))
    with pytest.raises(InputError, match="must be applied to all samples or none"):
        ResizedCrop(size=8).draw(key, Shape(4, 3, 9, 9))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flip(1.5), r"p must be a number in \[0, 1\], got 1.5"),
        (lambda: PadCrop(-1), "pad must be a whole number"),
        (lambda: RandomCrop(scale=(0.5,)), "scale must be two numbers"),
        (lambda: RandomCrop(scale=(0.9, 0.1)), "scale must be two numbers in order"),
        (lambda: RandomCrop(scale="ab"), "scale must be two numbers"),
        (lambda: RandomCrop(ratio=(0, 1)), "ratio/0 must be a number in"),
        (lambda: ResizedCrop(size=0), "size must be a whole number"),
        (lambda: ResizedCrop(size=(1, 2, 3)), "size must be a number, or height and width"),
        (lambda: Normalize((0.5,), (0.0,)), r"std/0 must be a number in"),
        (lambda: Normalize((0.5, 0.5), (0.5,)), "std must have 2 entries as mean has"),
        (lambda: Normalize(0.5, 0.5), "mean must be a list of numbers"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_normalising_needs_a_mean_for_every_channel(noise):
    with pytest.raises(InputError, match="Normalize has 2 means for pictures of 3 channels"):
        Normalize((0.5, 0.5), (0.5, 0.5))(noise)
