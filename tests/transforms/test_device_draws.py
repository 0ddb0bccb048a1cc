"""Programs of policies, through Triton's interpreter: they draw what the CPU draws, operation by operation."""

import importlib.util
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key, signed
from augtree.policies import Forest, Tree
from augtree.transforms import (
    AutoAugment,
    Chain,
    Color,
    Flip,
    Identity,
    OneOf,
    PadCrop,
    Posterize,
    QuarterTurn,
    RandAugment,
    RandomCrop,
    RandTones,
    Rotate,
    Rotation,
    SamplePairing,
    ShearX,
    Solarize,
    TrivialAugment,
    TrivialGeometry,
    VerticalFlip,
    device_draws,
    fused,
    images,
    programs,
    wrap,
)
from augtree.transforms.base import Transform
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow

interpreted = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(),
    reason="needs Triton (pip install triton==3.9.0), and no GPU: there, see test_gpu_transforms.py",
)
CPU = torch.device("cpu")


def full_tree():
    tree = Tree()
    kinds = [*images.OPERATIONS, RandAugment]
    for index in range(1, 16):
        kind = kinds[5 * index % len(kinds)]
        tree = tree.with_node(index, kind() if kind is RandAugment else kind(0.6), p=None if index % 2 else 0.4)
    return tree.with_node(1, tree[1].transform, 0.7).without_node(9)


POLICIES = [
    *(kind(magnitude) for kind in images.OPERATIONS for magnitude in (0.1, 0.6, 1.0)),
    *(Flip(), VerticalFlip(0.3), QuarterTurn(), PadCrop(), PadCrop(0), Rotation()),
    *(TrivialAugment(), TrivialGeometry(fill=3), RandAugment(n=3), RandTones(m=30)),
    *(AutoAugment(policy) for policy in ("cifar10", "svhn", "imagenet")),
    OneOf([Flip(1.0), (RandTones(), 3), Identity(), Rotate(0.3)]),
    Chain([Flip(), (PadCrop(), 0.5), (Identity(), 0.5), (OneOf([Rotate(1.0), full_tree()]), 0.9)]),
    full_tree(),
    Forest({"a": (full_tree(), 0.25), "b": (Tree(), 0.25), "c": (Tree().with_node(1, Flip(), 1.0), 0.5)}),
]


def operations(policy, shape, seed=3, index=0, step=0):
    """The operations of each picture, by the policy's program and by the CPU's draws."""
    values = torch.zeros(shape, dtype=torch.uint8)
    program = device_draws.ready(policy, tuple(shape[1:]), CPU)
    ops, bounds = device_draws.draw(program, values, seed, index, step)
    there = [ops.view(-1, 8)[begin:end] for begin, end in bounds.tolist()]

    place = index if isinstance(index, torch.Tensor) else index + torch.arange(shape[0])
    plan = policy.draw(Key.of(int(seed), place.numpy(), step=step), Shape(*shape))
    works = [work for slot in plan for work in slot if len(work.rows)]
    if not works:
        return there, [ops[0, :0]] * shape[0]
    words, first = fused.divided(fused.packed(works, torch.Size(shape)), shape[0])
    here = [words.view(-1, 8)[begin:end] for begin, end in pairwise(first)]
    return there, here


@interpreted
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy)[:40])
def test_the_draws_are_those_of_the_cpu(policy):
    for shape in ((140, 3, 32, 32), (40, 3, 17, 40)):
        there, here = operations(policy, shape)
        for row, (one, other) in enumerate(zip(there, here, strict=True)):
            assert torch.equal(one, other), (shape, row)


@interpreted
def test_seeds_places_and_steps_of_any_size():
    scattered = torch.from_numpy(np.random.default_rng(0).integers(-(2**62), 2**62, 9))
    for seed, index, step in [
        (0, 0, 0),
        (1, 7, 1),
        (-5, -3, -2),
        (2**63 - 1, 2**40, 2**33),
        (2**64 - 1, scattered, 1),
    ]:
        for given in (seed, torch.tensor([signed(seed)])):
            there, here = operations(TrivialAugment(), (9, 3, 8, 8), given, index, step)
            assert all(torch.equal(one, other) for one, other in zip(there, here, strict=True)), (given, index, step)


@interpreted
def test_calls_have_the_bytes_of_the_cpu(monkeypatch):
    policy = Chain([(full_tree(), 0.8), (SamplePairing(1.0), 0.5)])
    batch = pillow.pictures(3, 5, 4)[::6]
    whole = policy(batch, seed=3, step=2)
    floats = policy(batch.float() / 255, seed=3)
    channels_last = policy(batch.contiguous(memory_format=torch.channels_last), seed=3)
    with monkeypatch.context() as patch:
        patch.setattr(fused, "serves", lambda device: True)
        patch.setattr(policy.__class__, "draw", None)  # the CPU does not draw
        assert torch.equal(policy(batch, seed=3, step=2), whole)
        assert torch.equal(policy(batch, seed=torch.tensor(3), index=torch.arange(4), step=2), whole)
        assert torch.equal(policy(batch.float() / 255, seed=3), floats)
        found = policy(batch.contiguous(memory_format=torch.channels_last), seed=3)
        assert torch.equal(found, channels_last)
        assert found.is_contiguous(memory_format=torch.channels_last)
        assert policy(batch[0], seed=3).shape == (3, 5, 4)
        with pytest.raises(ArgumentError, match="seed must be a whole number"):
            policy(batch, seed=1.5)
        with pytest.raises(ArgumentError, match="index must be"):
            policy(batch, seed=1, index=[1, 2])


class Mine(ShearX):
    """Draws in its own way, so that its parent's instructions are not its own."""

    def values(self, level, sign, limit):
        return 0.5 * super().values(level, sign, limit)


@pytest.mark.parametrize(
    "policy", [Mine(0.5), RandomCrop(), wrap(lambda x: x, name="Same"), Chain([Flip(), Mine(1.0)])]
)
def test_what_has_no_program_is_drawn_on_the_cpu(policy):
    assert device_draws.ready(policy, (3, 8, 8), CPU) is None
    assert device_draws.apply(policy, torch.zeros(2, 3, 8, 8, dtype=torch.uint8), 0, None, 0, False) is None


def test_errors_are_those_of_the_cpu(monkeypatch):
    monkeypatch.setattr(fused, "serves", lambda device: True)
    for policy in (Color(0.5), RandAugment()):
        with pytest.raises(InputError, match="needs pictures of 1 or 3 channels, got 4"):
            policy(torch.zeros(2, 4, 8, 8, dtype=torch.uint8), seed=0)


def test_programs_are_kept_for_equal_policies():
    first, second = (device_draws.ready(Posterize(0.5), (3, 8, 8), CPU) for _ in range(2))
    assert first is second
    others = [(Solarize(0.5), (3, 8, 8)), (Posterize(0.4), (3, 8, 8)), (Posterize(0.5), (3, 8, 9))]
    assert all(device_draws.ready(policy, shape, CPU) is not first for policy, shape in others)


@dataclass
class Unhashable(Transform):
    def draw(self, key, shape):
        return []


def test_what_cannot_be_kept_is_drawn_on_the_cpu():
    assert device_draws.ready(Unhashable(), (3, 8, 8), CPU) is None


def test_a_program_too_large_is_refused():
    deep = Chain([AutoAugment()])
    for _ in range(6):
        deep = Chain([deep, deep])
    assert device_draws.ready(deep, (3, 8, 8), CPU) is None  # more nodes on the way than a path has


def test_instructions_by_hand():
    """A tree of a flip and, to the right, a crop: enter, and follow the exits."""
    tree = Tree().with_node(1, Flip(1.0), 0.5).with_node(3, PadCrop(2), 0.25)
    program = programs.Program(3, 8, 8)
    entry = programs.make(tree, program, (), programs.END)
    whole, reals = program.arrays()
    apply, flip_test, flip, turn, crop = entry, whole[entry, 1], whole[whole[entry, 1], 1], whole[entry, 2], 0
    assert reals[apply, 0] == 0.5
    assert whole[apply, 3:6].tolist() == [64, 1, -1]
    assert reals[flip_test, 0] == 1.0
    assert whole[flip_test, 4:6].tolist() == [1, -1]
    assert whole[flip, 1] == turn
    assert whole[turn, 1:6].tolist() == [programs.END, crop, 65, 1, -1]
    assert reals[turn, 0] == 0.75
    assert whole[crop, 4:6].tolist() == [3, -1]
    assert (program.steps[entry], program.operations[entry]) == (5, 2)
