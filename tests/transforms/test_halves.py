"""RandAugment and TrivialAugment with the operations alone that move pixels, or that change values."""

import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.testing import check_transform
from augtree.transforms import (
    RandAugment,
    RandGeometry,
    RandTones,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
    operation,
)
from augtree.transforms.composites import CHOICE
from support import pillow_reference as pillow

MOVES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"]
TONES = ["Identity", "Brightness", "Color", "Contrast", "Sharpness", "Posterize", "Solarize"]
TONES += ["AutoContrast", "Equalize"]
HALVES = [RandGeometry(), RandTones(), TrivialGeometry(), TrivialTones()]


def names_of(policy):
    return MOVES if "Geometry" in policy.name else TONES


@pytest.mark.parametrize("policy", HALVES, ids=str)
def test_only_operations_of_its_kind_are_drawn_and_all_of_them(policy):
    told = policy.describe(Key.of(0, range(3000)))
    assert {word.split()[0] for words in told for word in words} == {*names_of(policy)} - {"Identity"}


@pytest.mark.parametrize("policy", HALVES, ids=str)
def test_operations_are_equally_likely(policy):
    told = policy.describe(Key.of(0, range(6000)))
    places = 2 if isinstance(policy, RandAugment) else 1
    names = [word.split()[0] for words in told for word in words]
    for name in {*names}:
        assert names.count(name) / (6000 * places) == pytest.approx(1 / len(names_of(policy)), abs=0.015)


@pytest.mark.parametrize("policy", [RandGeometry(n=3, m=15), RandTones(n=3, m=15)], ids=str)
def test_rand_halves_are_what_pillow_does_with_the_same_draws(policy):
    pictures, names = pillow.pictures(3, 20, 24).repeat(3, 1, 1, 1), names_of(policy)
    key, done = Key.of(3, range(len(pictures))), policy(pictures, seed=3)
    for row, picture in enumerate(pictures):
        image = pillow.image(picture)
        for place in range(3):
            here = key.at(place)
            name = names[here.below(len(names), CHOICE)[row]]
            if name != "Identity":
                value = pillow.replayed(name, 0.5, operation.signs(here)[row], False, 24, 20)
                image = pillow.operate(name, image, value)
        assert torch.equal(done[row], pillow.tensor(image))


@pytest.mark.parametrize("policy", [TrivialGeometry(), TrivialTones()], ids=str)
def test_trivial_halves_are_what_pillow_does_with_the_same_draws(policy):
    pictures, names = pillow.pictures(3, 20, 24).repeat(6, 1, 1, 1), names_of(policy)
    key, done = Key.of(3, range(len(pictures))), policy(pictures, seed=3)
    which, level, sign = key.below(len(names), CHOICE), key.below(31, operation.LEVEL) / 30, operation.signs(key)
    for row, picture in enumerate(pictures):
        name = names[which[row]]
        value = pillow.replayed(name, level[row], sign[row], True, 24, 20)
        theirs = pillow.image(picture) if name == "Identity" else pillow.operate(name, pillow.image(picture), value)
        assert torch.equal(done[row], pillow.tensor(theirs)), (name, value)


@pytest.mark.parametrize("policy", HALVES, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_they_keep_the_contract(policy, channels, photos):
    check_transform(policy, photos[:, :channels])


def test_moves_work_on_any_number_of_channels_and_tones_on_colours_and_grey_alone():
    pictures = torch.arange(5 * 4 * 64, dtype=torch.int64).remainder(256).to(torch.uint8).view(4, 5, 8, 8)
    for policy in (RandGeometry(), TrivialGeometry()):
        assert policy(pictures, seed=0).shape == pictures.shape
    for policy in (RandTones(), TrivialTones()):
        with pytest.raises(InputError, match=f"{policy.name} needs pictures of 1 or 3 channels, got 5"):
            policy(pictures, seed=0)


def test_moves_invent_no_value_and_tones_leave_a_blank_picture_blank():
    dots = torch.zeros(200, 1, 16, 16, dtype=torch.uint8)
    dots[:, :, 4:12, 4:12] = 255
    for policy in (RandGeometry(m=30, fill=9), TrivialGeometry(fill=9)):
        assert set(policy(dots, seed=0).unique().tolist()) == {0, 9, 255}
    flat = torch.full((200, 1, 9, 9), 100, dtype=torch.uint8)
    for policy in (RandTones(m=30), TrivialTones()):
        assert all(len(picture.unique()) == 1 for picture in policy(flat, seed=0))


@pytest.mark.parametrize("policy", [RandGeometry(3, 14, 7), RandTones(m=14), TrivialGeometry(fill=7), TrivialTones()])
def test_files_keep_them(policy, tmp_path):
    at.save(policy, tmp_path / "policy.json")
    again = at.load(tmp_path / "policy.json")
    assert (again, type(again)) == (policy, type(policy))


def test_a_half_is_not_the_whole():
    assert RandGeometry() != RandAugment() != RandTones()
    assert TrivialGeometry() != TrivialAugment()
    assert len({RandAugment(), RandGeometry(), RandTones(), TrivialAugment(), TrivialGeometry()}) == 5


def test_they_print_as_the_whole_ones_do():
    printed = [str(policy) for policy in (RandGeometry(m=14), RandTones(), TrivialGeometry(fill=3), TrivialTones())]
    assert printed == ["RandGeometry(m=14)", "RandTones", "TrivialGeometry", "TrivialTones"]


@pytest.mark.parametrize("kind", [RandGeometry, RandTones])
def test_bad_arguments_are_refused(kind):
    with pytest.raises(ArgumentError, match="m must be a whole number from 0 to 30, got 31"):
        kind(m=31)
    with pytest.raises(ArgumentError, match="fill must be"):
        kind(fill=256)


def test_a_stronger_half_does_more(photos):
    many = photos.repeat(20, 1, 1, 1)
    for kind in (RandGeometry, RandTones):
        weak, strong = (float((kind(m=m)(many, seed=0).float() - many).abs().mean()) for m in (3, 27))
        assert strong > 1.5 * weak
