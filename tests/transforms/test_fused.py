"""Triton's kernels through its interpreter, on the CPU: the bytes of the batched kernels.

tests/test_gpu_transforms.py has the same on a GPU, at real sizes.
"""

import importlib.util

import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError
from augtree.policies import Tree
from augtree.transforms import (
    Chain,
    ColorDistortion,
    Flip,
    GaussianBlur,
    GaussianNoise,
    Invert,
    Normalize,
    PadCrop,
    QuarterTurn,
    RandAugment,
    RandomCrop,
    ResizedCrop,
    Rotate,
    Rotation,
    SamplePairing,
    Sobel,
    VerticalFlip,
    device_draws,
    fused,
    images,
    kernels,
)
from augtree.transforms.base import Identity, Transform
from augtree.transforms.pictures import Work
from support import pillow_reference as pillow

INTERPRETED = importlib.util.find_spec("triton") is not None and not torch.cuda.is_available()
interpreted = pytest.mark.skipif(
    not INTERPRETED, reason="needs Triton (pip install triton==3.9.0), and no GPU: there, see test_gpu*"
)


class Each(Transform):
    """Transform number i for picture i, i + n, ..."""

    def __init__(self, transforms):
        self.transforms = transforms

    def stages(self, key):
        which = key.rows % len(self.transforms)
        yield [(transform, key.take(which == i)) for i, transform in enumerate(self.transforms)]


OPERATIONS = [kind(magnitude) for kind in images.OPERATIONS for magnitude in (0.3, 1.0)]
OTHERS = [
    *(Flip(1.0), VerticalFlip(1.0), QuarterTurn(), QuarterTurn(), QuarterTurn(), Rotation(), PadCrop(2), Identity()),
    *(RandomCrop(), RandomCrop(), *[GaussianBlur((1.0, 3.0))] * 3, GaussianNoise(), Sobel()),
    *(ColorDistortion(jitter_p=1.0, grey_p=0.0), ColorDistortion(jitter_p=0.0, grey_p=1.0)),
]


@pytest.fixture
def on(monkeypatch):
    """Switches the launches on; the draws stay on the CPU."""

    def switch():
        monkeypatch.setattr(fused, "serves", lambda device: True)
        monkeypatch.setattr(device_draws, "ready", lambda *arguments: None)

    return switch


def both(policy, batch, on, seed=3):
    """The batch by the batched kernels, and in launches."""
    kept = batch.clone()
    here = policy(batch, seed=seed)
    on()
    there = policy(batch, seed=seed)
    assert torch.equal(batch, kept)
    assert here.dtype == there.dtype
    return here, there


@interpreted
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 7, 5), (3, 32, 32), (1, 40, 40), (3, 2, 33), (4, 3, 3)], ids=str)
def test_every_operation_has_the_bytes_of_the_batched_kernels(shape, on):
    transforms = OPERATIONS + (OTHERS if shape in ((3, 7, 5), (3, 32, 32), (1, 1, 1)) else [])
    if shape[0] == 4:
        transforms = [transform for transform in transforms if transform.name != "Color"]
    batch = pillow.pictures(*shape)
    batch = batch[torch.arange(len(transforms)) * 7 % len(batch)]
    here, there = both(Each(transforms), batch, on)
    for transform, one, other in zip(transforms, here, there, strict=True):
        assert torch.equal(one, other), transform


@interpreted
def test_paths_of_several_operations(on):
    """Odd and even numbers of steps, none, partners, and a function that is not known, in the middle."""
    tree = (
        Tree().with_node(1, RandAugment(n=3), p=0.8).with_node(2, SamplePairing(1.0), p=0.5).with_node(3, Rotate(1.0))
    )
    unknown = Each([Odd(), Identity(), Invert(1.0)])
    batch = pillow.pictures(3, 9, 8)[::2]
    here, there = both(Chain([tree, (unknown, 0.7), SamplePairing(0.5), (Flip(), 0.5)]), batch, on)
    assert torch.equal(here, there)
    floats = batch.float() / 255
    here, there = both(Chain([(tree, 0.5), SamplePairing(0.5)]), floats, on)
    assert torch.equal(here, there)


class Odd(Transform):
    """A work whose kernel Triton does not know."""

    def draw(self, key, shape):
        return [[Work(odd, key.rows)]]


def odd(pictures):
    return pictures | 1


@interpreted
def test_changes_of_shape_and_type_stand_between_launches(on):
    steps = [(Invert(1.0), 0.5), ResizedCrop(size=6), SamplePairing(1.0), Rotate(1.0), Normalize((0.4,), (0.3,))]
    here, there = both(Chain(steps), pillow.pictures(3, 9, 8)[:9], on)
    assert torch.equal(here, there)


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (0, 1, 1, 1)])
def test_nothing_is_launched_for_empty_batches(shape, on):
    batch = torch.zeros(shape, dtype=torch.uint8)
    assert RandAugment()(batch, seed=0).shape == shape
    on()
    assert RandAugment()(batch, seed=0).shape == shape


def test_nothing_is_launched_where_nothing_is_drawn(on):
    batch = pillow.pictures(3, 5, 5)
    on()
    out = Chain([(Rotate(1.0), 0.0)])(batch, seed=0)
    assert torch.equal(out, batch)
    assert out.data_ptr() != batch.data_ptr()


def test_a_compiler_that_fails_is_named_once_and_replaced(on, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("Failed to find C compiler.\nMore words")

    monkeypatch.setattr(fused, "launch", fail)
    monkeypatch.setattr(fused, "_broken", [])
    batch = pillow.pictures(3, 5, 5)
    expected = Rotate(1.0)(batch, seed=0)
    on()
    with pytest.warns(UserWarning, match=r"do not work here \(Failed to find C compiler\.\): slower ones serve"):
        assert torch.equal(Rotate(1.0)(batch, seed=0), expected)
    assert fused._broken == ["Failed to find C compiler.\nMore words"]


def test_what_serves(monkeypatch):
    monkeypatch.setattr(fused, "installed", lambda: True)
    monkeypatch.delenv("AUGTREE_KERNELS", raising=False)
    assert fused.serves(torch.device("cuda"))
    assert not fused.serves(torch.device("cpu"))
    monkeypatch.setenv("AUGTREE_KERNELS", "eager")
    assert not fused.serves(torch.device("cuda"))
    monkeypatch.setenv("AUGTREE_KERNELS", "fast")
    with pytest.raises(ArgumentError, match="AUGTREE_KERNELS must be one of auto, eager"):
        fused.serves(torch.device("cuda"))
    monkeypatch.setenv("AUGTREE_KERNELS", "auto")
    monkeypatch.setattr(fused, "_broken", ["no compiler"])
    assert not fused.serves(torch.device("cuda"))


def test_operations_stand_in_order_picture_by_picture():
    one = Work(kernels.mirror, np.array([2, 0]))
    two = Work(kernels.solarize, np.array([0, 2]), (np.array([7, 9]),))
    words, first = fused.divided(fused.packed([one, two], torch.Size((4, 3, 5, 6))), 4)
    words = words.view(-1, fused.codes.WORDS)
    assert first.tolist() == [0, 2, 2, 4, 4]
    assert words[:, 0].tolist() == [fused.codes.WARP, fused.codes.SOLARIZE] * 2
    assert words[[1, 3], 1].tolist() == [7, 9]
    assert words[0, 1:7].tolist() == [-65536, 0, 5 * 65536, 0, 65536, 0]


def test_every_kernel_that_works_on_single_pictures_is_known():
    """A kernel that is new in `kernels` must be added to Triton's, or here."""
    whole = {"resize", "normalize"}
    parts = {
        "column",
        "to_bytes",
        "blend",
        "grey",
        "to_hsv",
        "from_hsv",
        "look_up",
        "histogram",
        "smooth",
        "box_blur",
    }
    parts |= {"normal_table", "resample", "bilinear"}
    own = {name for name, value in vars(kernels).items() if getattr(value, "__module__", "") == kernels.__name__}
    assert own - whole - parts == {kernel.__name__ for kernel in fused.PACKERS}
