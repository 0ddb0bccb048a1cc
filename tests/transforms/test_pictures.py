import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError, InputError
from augtree.policies import Tree
from augtree.transforms import (
    Brightness,
    Chain,
    Flip,
    GaussianBlur,
    Identity,
    Invert,
    Normalize,
    RandomCrop,
    Rotate,
    TrivialAugment,
    kernels,
    pictures,
)
from augtree.transforms.pictures import Pictures, Work, merged


def test_the_same_bytes_whatever_the_batch_is_split_into(noise):
    policy = TrivialAugment()
    whole = policy(noise, seed=3)
    for cut in (1, 7, 63):
        parts = [policy(noise[:cut], seed=3), policy(noise[cut:], seed=3, index=cut)]
        assert torch.equal(whole, torch.cat(parts))
    order = torch.randperm(64)
    assert torch.equal(policy(noise[order], seed=3, index=order), whole[order])
    assert torch.equal(policy(noise[9], seed=3, index=9), whole[9])


def test_the_size_of_the_parts_changes_nothing(noise, monkeypatch):
    whole = TrivialAugment()(noise, seed=3)
    monkeypatch.setattr(pictures, "CHUNK_BYTES", 5000)
    assert torch.equal(TrivialAugment()(noise, seed=3), whole)


def test_steps_are_passes_over_the_data(noise):
    policy = Rotate(0.6)
    assert torch.equal(policy(noise, seed=3, step=1), policy(noise, seed=3, step=1))
    assert not torch.equal(policy(noise, seed=3, step=1), policy(noise, seed=3, step=2))


def test_unseeded_calls_follow_torchs_generator(noise):
    policy = Rotate(0.6)
    torch.manual_seed(1)
    first, second = policy(noise), policy(noise)
    torch.manual_seed(1)
    assert torch.equal(policy(noise), first)
    assert not torch.equal(first, second)


def test_the_input_is_not_touched(noise):
    for batch in (noise.clone(), noise.float() / 255, noise.contiguous(memory_format=torch.channels_last)):
        before = batch.clone()
        Invert(1.0)(batch, seed=0)
        assert torch.equal(batch, before)


def test_nothing_to_do_returns_the_same_values(noise):
    assert torch.equal(Identity()(noise, seed=0), noise)
    odd = torch.rand(4, 3, 5, 5)
    assert torch.equal(Identity()(odd, seed=0), odd)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floats_come_back_as_floats(noise, dtype):
    floats = (noise.double() / 255).to(dtype)
    done = Rotate(0.6)(floats, seed=3)
    assert done.dtype == dtype
    as_bytes = Rotate(0.6)((floats.float() * 255).round().to(torch.uint8), seed=3)
    assert torch.equal(done, as_bytes.to(dtype) / torch.tensor(255, dtype=dtype))


def test_floats_that_no_transform_touches_keep_every_bit():
    floats = torch.rand(200, 1, 4, 4)
    done = Flip(0.5)(floats, seed=1)
    touched = (done != floats).flatten(1).any(1)
    flipped = Flip(0.5)((floats * 255).round().to(torch.uint8), seed=1).float() / 255
    assert 60 < int(touched.sum()) < 140
    assert torch.equal(done[~touched], floats[~touched])
    assert torch.allclose(done[touched], flipped[touched])


def test_floats_outside_the_unit_interval_are_refused_with_the_remedy():
    for bad in (torch.randn(2, 3, 4, 4), torch.rand(2, 3, 4, 4) * 255, torch.full((1, 1, 2, 2), torch.nan)):
        with pytest.raises(InputError, match=r"must lie in \[0, 1\].*apply the policy before normalising"):
            Rotate(0.6)(bad)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            torch.zeros(4, 4, dtype=torch.uint8),
            r"must be \[B,C,H,W\] or \[C,H,W\], got shape \[4, 4\] \(add the channel",
        ),
        (torch.zeros(1, 2, 3, 4, 4, dtype=torch.uint8), r"got shape \[1, 2, 3, 4, 4\]"),
        (torch.zeros(3, 4, 4, dtype=torch.int64), "must be uint8 or float, got torch.int64"),
        (torch.zeros(3, 0, 4, dtype=torch.uint8), "sides from 1 to 8192"),
        (torch.zeros(1, 1, 9000, dtype=torch.uint8), "sides from 1 to 8192"),
        ([1, 2], "takes a tensor of pictures or a PyG Data or Batch, got builtins.list"),
        (np.zeros((3, 4, 4), np.uint8), "got numpy.ndarray"),
    ],
)
def test_what_is_no_picture_is_refused(batch, message):
    with pytest.raises(InputError, match=message):
        Rotate(0.6)(batch)


def test_a_pillow_image_is_refused_with_the_remedy():
    from PIL import Image

    with pytest.raises(InputError, match=r"PILToTensor"):
        Rotate(0.6)(Image.new("RGB", (4, 4)))


def test_an_empty_batch_stays_empty():
    assert TrivialAugment()(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), seed=0).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("index", [[1, 2], 0.5, [True], torch.zeros(3)])
def test_indices_must_fit_the_batch(noise, index):
    with pytest.raises(ArgumentError, match="index must be"):
        Rotate(0.6)(noise[:4], seed=0, index=index)


def test_works_of_one_kernel_become_one():
    one = Work(kernels.brightness, np.array([0, 2]), (np.array([0.5, 0.6], np.float32),))
    other = Work(kernels.brightness, np.array([1]), (np.array([0.7], np.float32),))
    third = Work(kernels.mirror, np.array([3]))
    plan = merged([[[one]], [[other], [third]]])
    assert [[work.kernel for work in slot] for slot in plan] == [[kernels.brightness], [kernels.mirror]]
    assert plan[0][0].rows.tolist() == [0, 2, 1]
    assert plan[0][0].params[0].tolist() == pytest.approx([0.5, 0.6, 0.7])


def test_parameters_of_different_forms_stay_apart(noise):
    """Two blurs of different reach, two crops with different numbers of taps: side by side in one tree."""
    for one, other in (
        (GaussianBlur((0.1, 1.0)), GaussianBlur((0.1, 9.0))),
        (RandomCrop((1.0, 1.0), (1.0, 1.0)), RandomCrop((0.1, 0.3))),
    ):
        tree = Tree().with_node(1, Flip(), p=0.5).with_node(2, one, p=0.5).with_node(3, other)
        assert tree(noise, seed=0).shape == noise.shape


def test_a_plan_is_done_slot_by_slot():
    batch = torch.full((2, 1, 1, 1), 100, dtype=torch.uint8)
    halve = Work(kernels.brightness, np.array([1]), (np.array([0.5], np.float32),))
    invert = Work(kernels.solarize, np.array([0, 1]), (np.array([0, 0]),))
    assert Pictures(batch).do([[halve], [invert]]).view(-1).tolist() == [155, 205]
    assert Pictures(batch).do([[invert], [halve]]).view(-1).tolist() == [155, 77]


def test_rows_of_odd_sizes_are_written_back_whole():
    batch = torch.arange(2 * 3 * 5 * 7, dtype=torch.uint8).view(2, 3, 5, 7)
    assert torch.equal(Invert(1.0)(batch, seed=0), 255 - batch)


def test_normalising_ends_a_chain():
    batch = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    chain = Chain([Brightness(0.2), Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))])
    bright = Brightness(0.2)(batch, seed=4)
    done = Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))(batch)
    assert done.view(-1).tolist() == pytest.approx([-2.0, -1.2, 2.0])
    assert chain(batch, seed=4).shape == bright.shape
    assert chain(batch, seed=4).dtype == torch.float32


def test_normalising_floats_does_not_round_them():
    floats = torch.rand(5, 1, 3, 3)
    done = Normalize((0.4,), (0.2,))(floats)
    assert torch.allclose(done, (floats - 0.4) / 0.2, atol=1e-6)
    chain = Chain([Identity(), Normalize((0.4,), (0.2,))])
    assert torch.allclose(chain(floats, seed=1), (floats - 0.4) / 0.2, atol=1e-6)
