import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError
from augtree.keys import Key
from augtree.transforms import (
    Brightness,
    Chain,
    DropNodes,
    Flip,
    Identity,
    Invert,
    Normalize,
    Rotate,
    SamplePairing,
)


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
