import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.policies import Tree
from augtree.transforms import (
    Brightness,
    Chain,
    Cutout,
    Flip,
    GaussianBlur,
    Identity,
    Invert,
    Normalize,
    RandomCrop,
    ResizedCrop,
    Rotate,
    Rotation,
    SamplePairing,
    TrivialAugment,
    cpu,
    kernels,
)
from augtree.transforms.pictures import Pictures, Shape, Work, merged


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
    monkeypatch.setattr(cpu, "CHUNK_BYTES", 5000)
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
            r"must be \[B,C,H,W\] or \[C,H,W\], got shape \[4, 4\]: add the channel, x\[None\]",
        ),
        (torch.zeros(1, 2, 3, 4, 4, dtype=torch.uint8), r"got shape \[1, 2, 3, 4, 4\]"),
        (torch.zeros(3, 4, 4, dtype=torch.int64), "must be uint8 or float, got torch.int64"),
        (torch.zeros(3, 0, 4, dtype=torch.uint8), "sides from 1 to 8192"),
        (torch.zeros(1, 1, 9000, dtype=torch.uint8), "sides from 1 to 8192"),
        ([1, 2], "takes a tensor of pictures or a PyG Data or Batch, got list"),
        (
            np.zeros((3, 4, 4), np.uint8),
            r"got numpy.ndarray: make it a tensor first, torch.from_numpy\(a\).permute\(2, 0, 1\)",
        ),
        (torch.zeros(5, 32, 48, 3, dtype=torch.uint8), r"looks like channels last: x.permute\(0, 3, 1, 2\)"),
        (torch.zeros(32, 48, 3, dtype=torch.uint8), r"looks like channels last: x.permute\(2, 0, 1\)"),
        (torch.zeros(64, 16, 16, dtype=torch.uint8), r"a batch of grey pictures is x\[:, None\]"),
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


@pytest.mark.parametrize("index", [[1, 2], 0.5, [True] * 4, torch.zeros(4), ["a"] * 4, "a", 2**64, [2**70] * 4])
def test_indices_must_fit_the_batch(noise, index):
    with pytest.raises(ArgumentError, match="index must be"):
        Rotate(0.6)(noise[:4], seed=0, index=index)


def test_numbers_of_all_kinds_are_numbers(noise):
    plain = Rotate(0.6)(noise, seed=3, index=5, step=2)
    assert torch.equal(Rotate(0.6)(noise, seed=np.int64(3), index=np.int32(5), step=torch.tensor(2)), plain)
    assert torch.equal(Rotate(0.6)(noise, seed=3, index=torch.tensor(5), step=2), plain)
    assert torch.equal(Rotate(0.6)(noise, seed=3, index=np.arange(5, 69), step=2), plain)
    assert Rotate(0.6)(noise[:0], seed=3, index=[]).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("where", [{"index": 3}, {"step": 1}])
def test_places_without_a_seed_are_refused(noise, where):
    with pytest.raises(ArgumentError, match="seed must be given where index or step are"):
        Rotate(0.6)(noise, **where)


def test_many_channels_are_fine_in_a_batch():
    assert Rotate(0.6)(torch.zeros(1, 13, 8, 8, dtype=torch.uint8), seed=0).shape == (1, 13, 8, 8)


def test_the_memory_order_stays(noise):
    last = noise.contiguous(memory_format=torch.channels_last)
    for batch in (last, last.float() / 255):
        done = Rotate(0.6)(batch, seed=0)
        assert done.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(Rotate(0.6)(last, seed=0), Rotate(0.6)(noise, seed=0))


def test_partners_are_the_pictures_as_they_came_whatever_form_they_came_in(noise):
    chain = Chain([Invert(1.0), SamplePairing(1.0)])
    plain = chain(noise, seed=1)
    assert torch.equal((chain(noise.float() / 255, seed=1) * 255).round().to(torch.uint8), plain)
    assert torch.equal(chain(noise.transpose(2, 3).contiguous().transpose(2, 3), seed=1), plain)
    assert torch.equal(chain(noise.contiguous(memory_format=torch.channels_last), seed=1), plain)


def test_steps_after_a_change_of_size_see_the_new_size():
    white = torch.full((300, 1, 16, 16), 255, dtype=torch.uint8)
    holes = Chain([ResizedCrop(64), Cutout(1.0, fill=0, share=0.5)])(white, seed=0) == 0
    assert bool(holes.any(0).all())  # anywhere in 64 x 64
    assert int(holes.flatten(1).sum(1).max()) == 32 * 32
    assert bool((Chain([ResizedCrop(8), Rotation()])(white, seed=0) == 255).all())
    assert Chain([ResizedCrop((20, 30)), RandomCrop(), Chain([ResizedCrop(9)]), RandomCrop()])(white).shape[2:] == (
        9,
        9,
    )
    turned = Chain([ResizedCrop(33, scale=(1, 1), ratio=(1, 1)), Rotate(1.0, fill=0)])(white, seed=0)
    assert bool((turned[:, 0, 16, 16] == 255).all())  # turned about the middle


def test_partners_after_a_change_of_size_have_the_new_size(noise):
    paired = Chain([ResizedCrop(20, scale=(1, 1), ratio=(1, 1)), Invert(), SamplePairing(1.0)])(noise, seed=0)
    small = ResizedCrop(20, scale=(1, 1), ratio=(1, 1))(noise, seed=0)
    key = Key.of(0, range(64)).at(2).at(1)
    work = SamplePairing(1.0).draw(key, Shape(64, 3, 20, 20))[0][0]
    by_hand = kernels.pair(255 - small, small[work.partners], torch.from_numpy(work.params[0]))
    assert torch.equal(paired, by_hand)


def test_nothing_comes_after_normalising():
    for steps in ([Normalize(), Rotate(1.0)], [Chain([Normalize()]), Invert()]):
        with pytest.raises(ArgumentError, match="steps/0 must be the last step: it makes floats"):
            Chain(steps)


def test_an_empty_batch_has_the_form_of_a_full_one():
    none = torch.zeros(0, 3, 16, 16, dtype=torch.uint8)
    assert ResizedCrop(8)(none).shape == (0, 3, 8, 8)
    assert Normalize()(none).dtype == torch.float32
    assert Chain([Flip(), ResizedCrop(8), Normalize()])(none).shape == (0, 3, 8, 8)


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
