"""Policies exported as transforms of torchvision: the same bytes, since Pillow is behind both."""

import importlib.util

import numpy as np
import pytest
import torch

import augtree as at
from augtree.exports.modules import torchvision_source
from augtree.policies.presets import NAMED
from augtree.transforms import (
    Chain,
    Flip,
    Normalize,
    OneOf,
    QuarterTurn,
    RandAugment,
    ResizedCrop,
    SamplePairing,
    Sharpness,
)
from support import pillow_reference as pillow
from support.benchmarks import benchmark
from support.exported import distribution, expected, noise, random_tree, run

if importlib.util.find_spec("torchvision") is None:
    pytest.skip("torchvision is not installed here (make test-exports)", allow_module_level=True)
BESIDE = benchmark("torchvision_beside_cpu_torch")  # kept, and the schemas with it
BESIDE.prepare()


def policy_of(policy):
    return run(torchvision_source(policy), allowed=("torch", "torchvision", "PIL"))["Policy"]()


def same_as_augtree(policy, pictures):
    ours, theirs = policy_of(policy), policy(pictures, seed=5)
    done = [ours(picture, seed=5, index=i) for i, picture in enumerate(pictures)]
    return all(torch.equal(one, other) for one, other in zip(done, theirs, strict=True))


@pytest.mark.parametrize(("channels", "height", "width"), [(3, 9, 14), (3, 11, 11), (1, 12, 7)])
@pytest.mark.parametrize("space", ["images", "simclr"])
def test_every_candidate_of_the_spaces_gives_the_same_bytes(space, channels, height, width):
    candidates = [c for c in getattr(at.spaces, space)(composites=True, fill=77) if not c.mixes]
    assert same_as_augtree(OneOf(candidates), noise(9 * len(candidates), channels, height, width))


def test_the_default_space_of_searches_and_free_policies_give_the_same_bytes():
    pictures = noise(120, 3, 6, 9)
    space = at.spaces.auto(at.data.from_arrays(pictures, np.arange(120) % 2))
    assert same_as_augtree(Chain([*space.basics, OneOf(list(space))]), pictures)
    for name in NAMED:
        assert "graph" in name or same_as_augtree(NAMED[name](30), pictures[:40])


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_has_exactly_its_distribution(seed):
    tree = random_tree(seed, composites=seed % 2 == 1)
    names = run(torchvision_source(tree), allowed=("torch", "torchvision", "PIL"))
    found, wanted = distribution(names), expected(tree.paths())
    assert found.keys() == wanted.keys()
    assert list(found.values()) == pytest.approx([wanted[calls] for calls in found], abs=1e-12)
    assert same_as_augtree(tree, noise(60, 3, 9, 9))


def test_groups_have_their_trees():
    forest = at.Forest({"a": (random_tree(2), 0.25), "b": (random_tree(5), 0.75)})
    policy, picture = policy_of(forest), noise(1, 3, 9, 9)[0]
    for index in range(40):
        for group in ("a", "b"):
            wanted = forest(picture, groups=group, seed=1, index=index)
            assert torch.equal(policy(picture, group, seed=1, index=index), wanted)
        assert torch.equal(policy(picture, seed=1, index=index), forest(picture, seed=1, index=index))


def test_images_come_back_as_images_and_normalising_gives_floats():
    picture = noise(1, 3, 9, 14)[0]
    image = policy_of(at.transforms.Rotate(0.6))(pillow.image(picture), seed=5)
    assert torch.equal(pillow.tensor(image), at.transforms.Rotate(0.6)(picture, seed=5))
    whole = Chain(
        [Flip(), ResizedCrop((7, 5)), QuarterTurn(), Sharpness(1.0), Normalize((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))]
    )
    for given in (picture, pillow.image(picture)):
        torch.testing.assert_close(policy_of(whole)(given, seed=5), whole(picture, seed=5))


def test_it_stands_in_a_compose_and_draws_anew_each_time():
    from torchvision.transforms import v2

    picture = noise(1, 3, 9, 14)[0]
    transform = v2.Compose([policy_of(RandAugment()), v2.ToDtype(torch.float32, scale=True)])
    assert len({tuple(transform(picture).flatten().tolist()) for _ in range(20)}) > 5


def test_what_it_cannot_take_is_refused():
    policy = policy_of(Flip())
    for given in (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.zeros(3, 8, 8), "picture"):
        with pytest.raises(ValueError, match="a picture must be a Pillow image or a uint8 tensor"):
            policy(given)
    with pytest.raises(ValueError, match="1 or 3 channels, got 4"):
        policy(torch.zeros(4, 8, 8, dtype=torch.uint8))
    with pytest.raises(ValueError, match="mode L or RGB, got RGBA"):
        policy(pillow.image(noise(1, 3, 4, 4)[0]).convert("RGBA"))
    with pytest.raises(at.errors.ArgumentError, match=r"torchvision has, but it has no SamplePairing\(0.4\)"):
        torchvision_source(SamplePairing(0.4))
