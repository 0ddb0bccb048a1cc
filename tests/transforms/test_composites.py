import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import (
    AutoAugment,
    Brightness,
    Chain,
    DropNodes,
    Flip,
    Identity,
    Invert,
    Normalize,
    RandAugment,
    Rotate,
    SamplePairing,
    TrivialAugment,
    images,
    operation,
)
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.automatic import PALETTE
from augtree.transforms.composites import CHOICE
from support import pillow_reference as pillow


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


def test_a_chain_does_its_steps_in_order():
    picture = torch.full((1, 1, 1), 100, dtype=torch.uint8)
    dim = at.wrap(lambda x: x // 2, name="Halve")
    assert Chain([dim, Invert(1.0)])(picture).item() == 205
    assert Chain([Invert(1.0), dim])(picture).item() == 77


def test_steps_are_taken_independently():
    pictures = torch.zeros(8000, 1, 1, 2, dtype=torch.uint8)
    pictures[..., 0] = 1
    done = Chain([(Flip(1.0), 0.3), (Invert(1.0), 0.6)])(pictures, seed=0).view(-1, 2)
    flipped = (done == torch.tensor([0, 1])).all(1) | (done == torch.tensor([255, 254])).all(1)
    inverted = (done >= 254).all(1)
    assert abs(float(flipped.float().mean()) - 0.3) < 0.02
    assert abs(float(inverted.float().mean()) - 0.6) < 0.02
    assert abs(float((flipped & inverted).float().mean()) - 0.18) < 0.02


def test_equal_steps_draw_anew(noise):
    once, twice = Chain([Rotate(0.6)])(noise, seed=0), Chain([Rotate(0.6), Rotate(0.6)])(noise, seed=0)
    assert not torch.equal(Chain([Identity(), Rotate(0.6)])(noise, seed=0), once)
    assert not torch.equal(once, twice)


def test_a_chain_has_the_properties_of_its_steps():
    assert Chain([Rotate(0.6)]).domain == "image"
    assert Chain([DropNodes(0.2)]).domain == "graph"
    assert Chain([Identity()]).domain == "any"
    assert Chain([Rotate(0.6), SamplePairing(0.2)]).mixes
    assert not Chain([Rotate(0.6)]).mixes
    assert Chain([Flip(), Normalize()]).whole
    assert Chain([(Invert(1.0), 0.5)]).random
    assert not Chain([Invert(1.0)]).random


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Chain("ab"), "steps must be a list"),
        (lambda: Chain([Rotate(0.6)] * 65), "at most 64 steps"),
        (lambda: Chain([42]), "steps/0 must be a transform"),
        (lambda: Chain([(Rotate(0.6), 1.5)]), r"steps/0/p must be a number in \[0, 1\], got 1.5"),
        (lambda: Chain([Rotate(0.6), (Normalize(), 0.5)]), "steps/1/p must be 1: Normalize changes shape or type"),
        (lambda: Chain([Rotate(0.6), DropNodes(0.2)]), "must all work on pictures or all on graphs"),
        (lambda: RandAugment(n=0), "n must be a whole number from 1 to 16"),
        (lambda: RandAugment(m=31), "m must be a whole number from 0 to 30"),
        (lambda: AutoAugment("mnist"), "policy must be one of cifar10, svhn, imagenet, got 'mnist'"),
        (lambda: TrivialAugment(fill=-1), "fill must be"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_brightness_inside_a_chain_matches_itself(noise):
    key = Key.of(0, range(len(noise))).at(0).at(1)
    alone = Brightness(0.6).draw(key, tuple.__new__(at.transforms.pictures.Shape, noise.shape))[0][0].params[0]
    chained = Chain([Brightness(0.6)])(noise, seed=0)
    by_hand = at.transforms.kernels.brightness(noise, torch.from_numpy(np.asarray(alone)))
    assert torch.equal(chained, by_hand)
