"""RandAugment, TrivialAugment, AutoAugment, and those that only move pixels or only change values."""

import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.testing import check_transform
from augtree.transforms import (
    AutoAugment,
    RandAugment,
    RandGeometry,
    RandTones,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
    images,
    operation,
)
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.automatic import PALETTE
from augtree.transforms.composites import CHOICE
from support import pillow_reference as pillow

MOVES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"]
TONES = ["Identity", "Brightness", "Color", "Contrast", "Sharpness", "Posterize", "Solarize"]
TONES += ["AutoContrast", "Equalize"]
HALVES = [RandGeometry(), RandTones(), TrivialGeometry(), TrivialTones()]


def names_of(policy):
    return MOVES if "Geometry" in policy.name else TONES


def test_trivial_augment_is_one_operation_at_one_of_31_levels():
    pictures = pillow.pictures(3, 20, 24).repeat(20, 1, 1, 1)
    key = Key.of(3, range(len(pictures)))
    which, level, sign = key.below(14, CHOICE), key.below(31, operation.LEVEL) / 30, operation.signs(key)
    done = TrivialAugment()(pictures, seed=3)
    for row, picture in enumerate(pictures):
        name = PALETTE[which[row]].__name__
        value = pillow.replayed(name, level[row], sign[row], True, 24, 20)
        theirs = pillow.image(picture) if name == "Identity" else pillow.operate(name, pillow.image(picture), value)
        assert torch.equal(done[row], pillow.tensor(theirs)), (name, value)
    assert set(which.tolist()) == set(range(14))


def test_rand_augment_is_n_operations_at_one_magnitude():
    pictures = pillow.pictures(3, 20, 24).repeat(8, 1, 1, 1)
    key = Key.of(3, range(len(pictures)))
    done = RandAugment(n=3, m=15)(pictures, seed=3)
    for row, picture in enumerate(pictures):
        image = pillow.image(picture)
        for place in range(3):
            here = key.at(place)
            name = PALETTE[here.below(14, CHOICE)[row]].__name__
            if name != "Identity":
                image = pillow.operate(
                    name, image, pillow.replayed(name, 0.5, operation.signs(here)[row], False, 24, 20)
                )
        assert torch.equal(done[row], pillow.tensor(image))


def test_auto_augment_is_one_of_25_pairs():
    pictures = pillow.pictures(3, 20, 24).repeat(8, 1, 1, 1)
    for policy, table in POLICIES.items():
        key = Key.of(3, range(len(pictures)))
        pair = key.below(25, CHOICE)
        done = AutoAugment(policy)(pictures, seed=3)
        for row, picture in enumerate(pictures):
            image = pillow.image(picture)
            for place in range(2):
                name, chance, level = table[pair[row]][place]
                here = key.at(place)
                if here.uniform(CHOICE)[row] < chance:
                    value = pillow.replayed(name, (level or 0) / 9, operation.signs(here)[row], False, 24, 20)
                    image = pillow.operate(name, image, value)
            assert torch.equal(done[row], pillow.tensor(image))


def test_composites_refuse_what_one_of_their_operations_could_not_take():
    """Not only when Color happens to be drawn."""
    pictures = torch.zeros(1, 4, 8, 8, dtype=torch.uint8)
    for policy in (TrivialAugment(), RandAugment(), AutoAugment()):
        for seed in range(20):
            with pytest.raises(InputError, match=f"{policy.name} needs pictures of 1 or 3 channels, got 4"):
                policy(pictures, seed=seed)


def test_composites_tell_what_they_drew(noise):
    key = Key.of(0, range(64))
    for policy, count in ((TrivialAugment(), 1), (RandAugment(n=3), 3), (AutoAugment(), 2)):
        told = policy.describe(key)
        assert max(map(len, told)) == count
        touched = (policy(noise, seed=0) != noise).flatten(1).any(1).tolist()
        assert not any(was and not words for was, words in zip(touched, told, strict=True))
    assert any(words[0].startswith("Rotate ") for words in TrivialAugment().describe(key) if words)


def test_the_published_policies_are_whole():
    for policy, table in POLICIES.items():
        assert len(table) == 25, policy
        for name, chance, level in [step for pair in table for step in pair]:
            assert name in {kind.__name__ for kind in images.OPERATIONS}
            assert 0 <= chance <= 1
            assert (level is None) == (name in ("AutoContrast", "Invert", "Equalize"))
    # The first and the last pairs, as printed in the paper's appendix.
    assert POLICIES["cifar10"][0] == (("Invert", 0.1, None), ("Contrast", 0.2, 6))
    assert POLICIES["cifar10"][-1] == (("TranslateY", 0.7, 9), ("AutoContrast", 0.9, None))
    assert POLICIES["svhn"][0] == (("ShearX", 0.9, 4), ("Invert", 0.2, None))
    assert POLICIES["imagenet"][0] == (("Posterize", 0.4, 8), ("Rotate", 0.6, 9))


def test_the_strength_of_rand_augment_is_its_own(noise):
    assert torch.equal(RandAugment(n=1, m=0)(noise, seed=0), noise) is False  # AutoContrast and Equalize remain
    weak, strong = (float((RandAugment(m=m)(noise, seed=0).float() - noise).abs().mean()) for m in (3, 27))
    assert strong > 1.2 * weak


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandAugment(n=0), "n must be a whole number from 1 to 16"),
        (lambda: RandAugment(m=31), "m must be a whole number from 0 to 30"),
        (lambda: AutoAugment("mnist"), "policy must be one of cifar10, svhn, imagenet, got 'mnist'"),
        (lambda: TrivialAugment(fill=-1), "fill must be"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


# ---- the halves: operations that move pixels, or that change values


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
def test_bad_arguments_of_halves_are_refused(kind):
    with pytest.raises(ArgumentError, match="m must be a whole number from 0 to 30, got 31"):
        kind(m=31)
    with pytest.raises(ArgumentError, match="fill must be"):
        kind(fill=256)


def test_a_stronger_half_does_more(photos):
    many = photos.repeat(20, 1, 1, 1)
    for kind in (RandGeometry, RandTones):
        weak, strong = (float((kind(m=m)(many, seed=0).float() - many).abs().mean()) for m in (3, 27))
        assert strong > 1.5 * weak
