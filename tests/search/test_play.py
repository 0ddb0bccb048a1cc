"""What is in play, and the mixture of it."""

from pathlib import Path

import numpy as np
import pytest
import torch

import augtree as at
from augtree.search.play import HALF, Play, factor_in_words, one_of
from augtree.transforms import (
    Chain,
    Cutout,
    Flip,
    Identity,
    OneOf,
    PadCrop,
    Posterize,
    RandAugment,
    RandGeometry,
    Space,
    TrivialAugment,
    VerticalFlip,
)
from augtree.transforms.traits import EVERY_SAMPLE, GEOMETRY, TONES
from support.searches import CORNERS, INVERT, corners

GOLDEN = Path(__file__).parents[1] / "golden"
FLIP, UPSIDE = CORNERS.basics
PLAY = Play(CORNERS)
PICTURES = corners(40, 8).samples[:40]


def bright(picture):
    return 255 - picture


FOG = at.wrap(bright, name="Fog")


def test_factors_are_basics_traits_and_leaving_none_alone():
    space = Space([RandAugment(), Cutout(0.5)], basics=[FLIP, UPSIDE])
    assert set(Play(space).factors) == {"Flip", "VerticalFlip", TONES, GEOMETRY, "Cutout", EVERY_SAMPLE}
    assert Play(space).basic_factors == ("Flip", "VerticalFlip")
    assert set(Play(space + [FOG]).factors) >= {"Fog"} if space.combines else True


def test_own_transforms_are_asked_for_like_basics():
    space = Space([RandAugment(), FOG], basics=[FLIP], own=[FOG])
    assert Play(space).basic_factors == ("Flip", "Fog")
    assert Play(space).own == (FOG,)
    assert Play(space).without(["Fog"]).own == ()
    assert FOG not in Play(space).without(["Fog"]).styles


def test_a_trait_of_few_candidates_is_not_asked_for():
    many = [RandAugment(m=m) for m in range(1, 12)]
    assert "Cutout" not in Play(Space([*many, Cutout(0.5)])).factors
    assert "Cutout" in Play(Space([*many[:9], Cutout(0.5)])).factors


def test_what_is_out_is_in_no_policy_and_identity_stays():
    less = PLAY.without(["Flip"]).without([TONES])
    assert less.out == {"Flip", TONES}
    assert less.basics == (UPSIDE,)
    assert less.styles == (Identity(),)
    assert set(less.factors) == {"VerticalFlip", EVERY_SAMPLE}
    assert PLAY.out == frozenset()
    assert less.mixture() == at.Tree().with_node(1, Chain([(UPSIDE, HALF)]), 1.0)


def test_a_style_is_out_with_any_of_its_traits():
    space = Space([RandAugment(), INVERT, Cutout(0.5)])
    assert Play(space).without([GEOMETRY]).styles == (Identity(), INVERT, Cutout(0.5))
    assert Play(space).without([TONES]).styles == (Identity(), Cutout(0.5))


def test_the_mixture_is_every_basic_or_not_and_any_style():
    space = Space([Posterize(0.2), FOG], basics=[FLIP, UPSIDE], own=[FOG])
    steps = [(FLIP, HALF), (UPSIDE, HALF), (OneOf([Identity(), Posterize(0.2), FOG]), 1.0), (FOG, HALF)]
    assert Play(space).mixture() == at.Tree().with_node(1, Chain(steps), 1.0)


def test_half_of_the_samples_can_be_left_alone():
    less = PLAY.without([EVERY_SAMPLE])
    assert less.augmented_share == HALF
    assert less.mixture()[1].p == HALF
    assert EVERY_SAMPLE not in less.factors
    assert less.over_basics(RandAugment())[1].p == HALF


def test_with_nothing_in_play_the_mixture_is_the_empty_tree():
    space = Space([INVERT], basics=[FLIP])
    assert Play(space).without(["Flip", TONES]).mixture() == at.Tree()


def test_a_style_over_the_basics():
    style = RandAugment()
    assert PLAY.over_basics(style) == at.Tree().with_node(1, Chain([FLIP, UPSIDE, style]), 1.0)
    assert PLAY.without(["Flip", "VerticalFlip"]).over_basics(style) == at.Tree().with_node(1, style, 1.0)
    assert PLAY.over_basics(Identity()) == at.Tree().with_node(1, Chain([FLIP, UPSIDE]), 1.0)


def test_mixtures_share_their_draws():
    """The mixture without a flip gives each picture as the whole mixture does, but for the flip."""
    index = np.arange(len(PICTURES))
    whole = PLAY.mixture_with_shared_draws()(PICTURES, seed=3, index=index)
    less = PLAY.without(["Flip"]).mixture_with_shared_draws()(PICTURES, seed=3, index=index)
    same = [torch.equal(a, b) for a, b in zip(whole, less, strict=True)]
    mirrored = [torch.equal(a, b.flip(-1)) for a, b in zip(whole, less, strict=True)]
    assert all(a or b for a, b in zip(same, mirrored, strict=True))
    assert 5 < sum(same) < 35


def test_drawn_alike_or_not_it_is_the_same_mixture():
    assert PLAY.mixture_with_shared_draws() == PLAY.mixture()
    less = PLAY.without(["Flip", TONES])
    one = less.mixture_with_shared_draws()(PICTURES, seed=3, index=np.arange(40))
    changed = [not torch.equal(a, b) for a, b in zip(one, PICTURES, strict=True)]
    upside = [torch.equal(a, b.flip(-2)) for a, b in zip(one, PICTURES, strict=True)]
    assert changed == upside
    assert 5 < sum(changed) < 35


def test_the_mixture_is_a_policy_that_can_be_kept_and_read(tmp_path):
    space = Space([Posterize(0.2), RandAugment()], basics=[Flip(), VerticalFlip()])
    mixture = Play(space).without(["VerticalFlip"]).mixture()
    mixture.save(tmp_path / "mixture.json")
    assert at.load(tmp_path / "mixture.json") == mixture
    assert all(name in str(mixture) for name in ("Flip", "Posterize(0.2)", "RandAugment"))
    assert sum(p for p, _ in mixture.paths()) == pytest.approx(1)


def test_mixtures_of_today_are_those_of_the_golden_file(tmp_path):
    """Files of searches that are done must be read for ever, and the same search must give the same file."""
    styles = [RandAugment(), TrivialAugment(), RandGeometry(m=5)]
    mixture = Play(Space(styles, basics=[Flip(1.0), PadCrop(pad=2)])).without([EVERY_SAMPLE]).mixture()
    assert at.load(GOLDEN / "mixture.json") == mixture
    mixture.save(tmp_path / "mixture.json")
    assert (tmp_path / "mixture.json").read_text() == (GOLDEN / "mixture.json").read_text()


def test_one_of_one_is_that_one():
    assert one_of([INVERT]) == INVERT
    assert one_of([INVERT, FLIP]) == OneOf([INVERT, FLIP])


def test_factors_in_words():
    assert factor_in_words("Flip") == "flips left-right"
    assert factor_in_words("Fog") == "Fog"
