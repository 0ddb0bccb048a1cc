import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from scipy import stats

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import Chain, Flip, Normalize, PadCrop, QuarterTurn, RandomCrop, ResizedCrop, VerticalFlip
from augtree.transforms.crops import crop_box
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow


def test_flips_are_mirror_images_of_half_the_pictures(noise):
    done = Flip()(noise, seed=1)
    flipped = [torch.equal(a, b.flip(2)) for a, b in zip(done, noise, strict=True)]
    kept = [torch.equal(a, b) for a, b in zip(done, noise, strict=True)]
    assert all(f or k for f, k in zip(flipped, kept, strict=True))
    assert 18 < sum(flipped) < 46
    assert torch.equal(Flip(1.0)(noise, seed=1), noise.flip(3))
    assert torch.equal(Flip(0.0)(noise, seed=1), noise)


def test_vertical_flips_are_numpy_s_and_pillow_s():
    pictures = pillow.pictures(3, 20, 24)
    done = VerticalFlip(1.0)(pictures, seed=1)
    for picture, other in zip(pictures, done, strict=True):
        assert np.array_equal(other, np.flip(picture.numpy(), 1))
        assert np.array_equal(pillow.image(other), np.flipud(pillow.image(picture)))
        assert torch.equal(other, pillow.tensor(ImageOps.flip(pillow.image(picture))))
    assert torch.equal(VerticalFlip(0.0)(pictures, seed=1), pictures)


def test_a_share_of_the_pictures_is_flipped_up_down(noise):
    many = noise[:1, :, :3, :3].repeat(4000, 1, 1, 1)
    for p in (0.5, 0.2):
        flipped = (VerticalFlip(p)(many, seed=0) == many.flip(2)).flatten(1).all(1)
        kept = (VerticalFlip(p)(many, seed=0) == many).flatten(1).all(1)
        assert torch.equal(flipped, ~kept)
        assert stats.binomtest(int(flipped.sum()), 4000, p).pvalue > 0.01


def test_one_after_the_other_flips_are_drawn_independently(noise):
    many = noise[:1, :1, :3, :3].repeat(4000, 1, 1, 1)
    done = Chain([Flip(), VerticalFlip()])(many, seed=0)
    ways = [(done == many.flip(axes)).flatten(1).all(1).sum().item() for axes in ((), (2,), (3,), (2, 3))]
    assert sum(ways) == 4000
    assert stats.chisquare(ways).pvalue > 0.01


def quarters_of(done, picture):
    """By how many quarters each picture was turned, as numpy turns."""
    ways = [torch.from_numpy(np.rot90(picture.numpy(), k, axes=(1, 2)).copy()) for k in range(4)]
    same = [way.shape == done.shape[1:] and (done == way).flatten(1).all(1) for way in ways]
    return torch.stack([s if isinstance(s, torch.Tensor) else torch.zeros(len(done), dtype=torch.bool) for s in same])


def test_quarter_turns_are_numpy_s_each_equally_likely(noise):
    done = QuarterTurn()(noise[:1].repeat(2000, 1, 1, 1), seed=0)
    found = quarters_of(done, noise[0])
    assert (found.sum(0) == 1).all()
    assert stats.chisquare(found.sum(1)).pvalue > 0.01


@pytest.mark.parametrize("channels", [1, 3])
def test_quarter_turns_are_pillow_s(channels):
    pictures = pillow.pictures(channels, 15, 15)
    kinds = [None, Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270]
    quarters = Key.of(4, range(len(pictures))).below(4)
    for picture, other, k in zip(pictures, QuarterTurn()(pictures, seed=4), quarters, strict=True):
        image = pillow.image(picture)
        assert torch.equal(other, pillow.tensor(image.transpose(kinds[k]) if kinds[k] is not None else image))
    assert set(quarters.tolist()) == {0, 1, 2, 3}


def test_pictures_that_are_not_square_are_turned_by_a_half(noise):
    oblong = noise[:1, :, :20]
    done = QuarterTurn()(oblong.repeat(2000, 1, 1, 1), seed=0)
    found = quarters_of(done, oblong[0]).sum(1).tolist()
    assert found[1] == found[3] == 0
    assert found[0] + found[2] == 2000
    assert stats.binomtest(found[0], 2000).pvalue > 0.01


def test_a_turn_is_that_of_floats_too(noise):
    floats = noise.float() / 255
    assert torch.equal(QuarterTurn()(floats, seed=0), QuarterTurn()(noise, seed=0).float() / 255)
    assert torch.equal(VerticalFlip()(floats, seed=0), VerticalFlip()(noise, seed=0).float() / 255)


@pytest.mark.parametrize("pad", [0, 1, 5])
def test_a_padded_crop_is_numpy_s_and_pillow_s(pad):
    pictures = pillow.pictures(3, 10, 14)
    key, done = Key.of(2, range(len(pictures))), PadCrop(pad, fill=77)(pictures, seed=2)
    left, top = (key.below(2 * pad + 1, counter).tolist() for counter in range(2))
    for row, (picture, x, y) in enumerate(zip(pictures, left, top, strict=True)):
        around = np.pad(picture.numpy(), ((0, 0), (pad, pad), (pad, pad)), constant_values=77)
        assert np.array_equal(done[row], around[:, y : y + 10, x : x + 14])
        image = ImageOps.expand(pillow.image(picture), pad, (77, 77, 77)).crop((x, y, x + 14, y + 10))
        assert torch.equal(done[row], pillow.tensor(image))


def test_every_place_of_a_padded_crop_is_equally_likely():
    dot = torch.zeros(5000, 1, 5, 5, dtype=torch.uint8)
    dot[:, :, 2, 2] = 1
    counts = PadCrop(2)(dot, seed=0).long().sum(0).flatten()
    assert counts.sum() == 5000
    assert stats.chisquare(counts).pvalue > 0.01


def test_a_padded_crop_may_leave_nothing_of_a_small_picture():
    done = PadCrop(40, fill=9)(torch.zeros(500, 1, 2, 2, dtype=torch.uint8), seed=0)
    assert set(done.unique().tolist()) == {0, 9}


@pytest.mark.parametrize("transform", [VerticalFlip(0.3), QuarterTurn(), PadCrop(3, 5)])
def test_draws_do_not_depend_on_the_batch(transform, noise):
    whole = transform(noise, seed=7)
    assert torch.equal(torch.cat([transform(noise[:5], seed=7), transform(noise[5:], seed=7, index=5)]), whole)
    assert torch.equal(transform(noise[11], seed=7, index=11), whole[11])
    assert not torch.equal(transform(noise, seed=8), whole)


def test_they_print_in_short():
    assert [str(t) for t in (Flip(), VerticalFlip(), QuarterTurn(), PadCrop(2, fill=9))] == [
        "Flip",
        "VerticalFlip",
        "QuarterTurn",
        "PadCrop(2)",
    ]
    assert str(VerticalFlip(0.25)) == "VerticalFlip(p=0.25)"


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
    left, right, top, bottom = crop_box(
        transform.scale, transform.ratio, Key.of(0, range(500)), Shape(500, 1, 40, 40)
    )
    assert set((right - left).tolist()) == set((bottom - top).tolist()) == {20}
    assert left.min() == top.min() == 0
    assert right.max() == bottom.max() == 40
    assert len(set(left.tolist())) > 15


def test_the_four_draws_of_a_crop_are_independent():
    shape = Shape(3000, 1, 200, 200)
    left, right, top, bottom = crop_box((0.1, 0.5), (0.8, 1.25), Key.of(0, range(3000)), shape)
    width, height = right - left, bottom - top
    area, form = width * height / 40_000, np.log(width / height)
    x, y = left / (200 - width), top / (200 - height)
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
        (lambda: VerticalFlip(-0.1), r"p must be a number in \[0, 1\], got -0.1"),
        (lambda: PadCrop(-1), "pad must be a whole number"),
        (lambda: PadCrop(2, fill=256), "fill must be a whole number from 0 to 255, got 256"),
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
