"""On a GPU: Triton's kernels give the bytes of the batched ones, at real sizes, and these the bytes of the CPU."""

import numpy as np
import pytest
import torch

import augtree as at
from augtree.keys import Key
from augtree.policies import Tree
from augtree.training.cuda_graph import Recording
from augtree.transforms import (
    AutoAugment,
    Chain,
    ColorDistortion,
    Flip,
    GaussianBlur,
    GaussianNoise,
    Identity,
    OneOf,
    PadCrop,
    QuarterTurn,
    RandAugment,
    RandomCrop,
    ResizedCrop,
    Rotate,
    Rotation,
    SamplePairing,
    Sobel,
    TrivialAugment,
    VerticalFlip,
    device_draws,
    fused,
    images,
    kernels,
)
from augtree.transforms.base import Transform
from augtree.transforms.pictures import Shape, Work

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if not fused.installed():
    pytest.skip("no Triton", allow_module_level=True)

SHAPES = [(4096, 3, 32, 32), (257, 1, 31, 33), (300, 3, 96, 96), (64, 3, 224, 224), (5, 3, 517, 333), (300, 4, 7, 5)]
BASICS = [Flip(1.0), VerticalFlip(1.0), QuarterTurn(), Rotation(), PadCrop(4), Identity()]
CONTRASTIVE = [
    *(RandomCrop(), RandomCrop((0.9, 1.0)), GaussianBlur((0.1, 8.0)), GaussianNoise(), Sobel()),
    *(ColorDistortion(jitter_p=1.0, grey_p=0.0), ColorDistortion(jitter_p=0.0, grey_p=1.0)),
]


@pytest.fixture
def launches(monkeypatch):
    """How often Triton's kernels were launched: each time, whether the draws were made on the GPU, too."""
    monkeypatch.delenv("AUGTREE_KERNELS", raising=False)
    found = []
    transform, draw = fused.transform, device_draws.draw
    monkeypatch.setattr(fused, "transform", lambda *rest, **named: found.append(False) or transform(*rest, **named))
    monkeypatch.setattr(device_draws, "draw", lambda *rest: found.append(True) or draw(*rest))
    return found


class Each(Transform):
    """Transform number i for picture i, i + n, ..."""

    def __init__(self, transforms):
        self.transforms = transforms

    def stages(self, key):
        which = key.rows % len(self.transforms)
        yield [(transform, key.take(which == i)) for i, transform in enumerate(self.transforms)]


def pictures(shape, seed=0):
    """Noise, narrow noise, black, white, dots and ramps in turn, on the GPU."""
    rng = torch.Generator("cuda").manual_seed(seed)
    out = torch.randint(0, 256, shape, generator=rng, device="cuda", dtype=torch.uint8)
    out[1::6] = 100 + out[1::6] % 40
    out[2::6] = 0
    out[3::6] = 255
    out[4::6] = (out[4::6] < 12) * 255
    out[5::6] = (torch.arange(out[5::6].numel(), device="cuda") % 256).to(torch.uint8).view_as(out[5::6])
    return out


def agree(policy, batch, launches, monkeypatch, draws=True):
    """Compare what is drawn and done on the GPU, what is drawn on the CPU, and the batched kernels on the GPU."""
    kept = batch.clone()
    launches.clear()
    there = policy(batch, seed=3)
    assert launches, "nothing was launched"
    assert launches[0] == draws
    assert not fused._broken
    with monkeypatch.context() as patch:
        patch.setattr(device_draws, "ready", lambda *arguments: None)
        launches.clear()
        between = policy(batch, seed=3)
        assert launches
        assert True not in launches
        patch.setenv("AUGTREE_KERNELS", "eager")
        launches.clear()
        here = policy(batch, seed=3)
        assert not launches
    assert torch.equal(batch, kept)
    for name, other in (("all on the GPU", there), ("drawn on the CPU", between)):
        wrong = (here != other).flatten(1).any(1).nonzero().flatten().tolist()
        assert not wrong, f"{name}: pictures {wrong[:10]} of {len(batch)}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_operation(shape, launches, monkeypatch):
    operations = [kind(m) for kind in images.OPERATIONS for m in (0.2, 0.5, 1.0)] + BASICS
    if shape[1] == 4:
        operations = [operation for operation in operations if operation.name != "Color"]
    agree(Each(operations), pictures(shape), launches, monkeypatch, draws=False)
    agree(OneOf(operations), pictures(shape), launches, monkeypatch)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] != 4], ids=str)
def test_contrastive_operations(shape, launches, monkeypatch):
    agree(Each(CONTRASTIVE), pictures(shape), launches, monkeypatch, draws=False)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] != 4], ids=str)
def test_policies(shape, launches, monkeypatch):
    space = at.spaces.images(composites=True)
    tree = Tree()
    for i, candidate in enumerate([space["RandAugment"], *list(space)[1:64:2]][:31], start=1):
        tree = tree.with_node(i, candidate, p=None if i % 2 else 0.4)
    simclr = Chain([(Flip(), 0.5), RandomCrop(), ColorDistortion(), (GaussianBlur(), 0.5)])
    between = Chain(
        [TrivialAugment(), SamplePairing(1.0), ResizedCrop(size=48), RandAugment(n=3), SamplePairing(0.5)]
    )
    basic = Chain([(Flip(), 0.5), PadCrop(4), AutoAugment(), SamplePairing(0.4)])
    for policy in (TrivialAugment(), RandAugment(n=3, m=20), tree, basic):
        agree(policy, pictures(shape), launches, monkeypatch)
    for policy in (simclr, between):
        agree(policy, pictures(shape), launches, monkeypatch, draws=False)


def by_launch(work, batch):
    return fused.launch([work], batch, batch)


def test_factors_contract_nothing(launches):
    """Every value by many factors: a fused multiply and add would round a few of them otherwise."""
    batch = torch.arange(256, dtype=torch.uint8, device="cuda").view(1, 1, 16, 16).repeat(20_000, 3, 1, 1)
    batch[:, 1] = batch[:, 1].flip(1)
    batch[:, 2] = batch[:, 2] // 3
    factors = np.random.default_rng(0).uniform(0, 2, len(batch)).astype(np.float32)
    factors[:512] = np.arange(512, dtype=np.float32) / 256
    rows = np.arange(len(batch))
    for kernel in (kernels.brightness, kernels.contrast, kernels.color, kernels.sharpness):
        done = by_launch(Work(kernel, rows, (factors,)), batch)
        assert torch.equal(done, kernel(batch, torch.from_numpy(factors).cuda())), kernel.__name__


def test_auto_contrast_for_every_pair_of_extremes(launches):
    low, high = torch.triu_indices(256, 256).to(torch.uint8).cuda()
    batch = low[:, None] + ((high - low).float()[:, None] * torch.linspace(0, 1, 32, device="cuda")).to(torch.uint8)
    batch = batch.view(-1, 1, 4, 8)
    done = by_launch(Work(kernels.auto_contrast, np.arange(len(batch))), batch)
    assert torch.equal(done, kernels.auto_contrast(batch))


def test_hue_of_every_colour(launches):
    code = torch.arange(1 << 24, device="cuda")
    batch = torch.stack([code >> 16, (code >> 8) & 255, code & 255]).to(torch.uint8).view(3, 16, 1024, 1024)
    batch = batch.transpose(0, 1).contiguous()
    turns = np.arange(16) * 17 - 51
    done = by_launch(Work(kernels.hue, np.arange(16), (turns,)), batch)
    for picture, turn, ours in zip(batch, turns.tolist(), done, strict=True):
        assert torch.equal(kernels.hue(picture[None], torch.tensor([turn], device="cuda"))[0], ours)


def test_boxes_of_every_size_are_stretched(launches):
    ends = np.array([(i, j) for i in range(40) for j in range(i + 1, 41)])
    other = np.random.default_rng(0).permutation(len(ends))
    box = np.concatenate([ends, ends[other]], axis=1)
    batch = pictures((len(box), 1, 40, 40))
    done = by_launch(Work(kernels.stretch, np.arange(len(box)), (box,)), batch)
    assert torch.equal(done, kernels.stretch(batch, torch.from_numpy(box).cuda()))


def test_batched_kernels_have_the_bytes_of_the_cpu(monkeypatch):
    monkeypatch.setenv("AUGTREE_KERNELS", "eager")
    operations = [kind(m) for kind in images.OPERATIONS for m in (0.2, 0.5, 1.0)]
    for transforms in (operations, BASICS + CONTRASTIVE):
        for shape in ((120, 3, 32, 32), (60, 1, 17, 40), (60, 3, 96, 96)):
            batch = pictures(shape)
            policy = Each(transforms)
            assert torch.equal(policy(batch, seed=3).cpu(), policy(batch.cpu(), seed=3))


def test_more_bytes_than_32_bits_count(launches):
    """Offsets beyond 2^31, and pictures one after the other: 2.3 GB."""
    batch = torch.zeros((15_300, 3, 224, 224), dtype=torch.uint8, device="cuda")
    batch[-6:] = pictures((6, 3, 224, 224))
    done = Chain([RandAugment(), RandAugment()])(batch, seed=0, index=0)
    last = Chain([RandAugment(), RandAugment()])(batch[-6:].clone(), seed=0, index=len(batch) - 6)
    assert torch.equal(done[-6:], last)


def test_a_second_stream_sees_its_own_work(launches):
    """Memory of one launch must not be given to another before it has run."""
    batch = pictures((2048, 3, 32, 32))
    policy = RandAugment(n=3)
    expected = [policy(batch, seed=seed) for seed in range(4)]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(4)]
    done = []
    for seed, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            done.append(policy(batch, seed=seed))
    torch.cuda.synchronize()
    assert all(torch.equal(one, other) for one, other in zip(done, expected, strict=True))


def test_one_launch_a_policy(launches):
    tree = Tree().with_node(1, RandAugment(), p=0.5).with_node(2, TrivialAugment()).with_node(4, SamplePairing(1.0))
    tree(pictures((64, 3, 32, 32)), seed=0)
    assert launches == [True, False]


def test_millions_of_draws_are_those_of_the_cpu():
    """Every kind of draw, the rare values of sines among them."""
    operations = OneOf([kind(m) for kind in images.OPERATIONS for m in (0.1, 1.0)] + [Rotate(1.0)] * 8)
    count = 1 << 20
    for side in (32, 225):
        values = torch.zeros((1, 3, side, side), dtype=torch.uint8, device="cuda").expand(count, -1, -1, -1)
        program = device_draws.ready(operations, (3, side, side), values.device)
        ops, bounds = device_draws.draw(program, values, 11, 5, 0)
        assert torch.equal(bounds[:, 1] - bounds[:, 0], torch.ones(count, dtype=torch.int32, device="cuda"))
        plan = operations.draw(Key.of(11, 5 + np.arange(count)), Shape(count, 3, side, side))
        words, _ = fused.divided(fused.packed([work for slot in plan for work in slot], values.shape), count)
        assert torch.equal(ops.view(count, -1).cpu(), words.view(count, -1))


def test_a_policy_in_a_recorded_graph(launches):
    """A CUDA graph with the policy in it: new pictures, seeds and places give what a call gives."""
    batch = pictures((512, 3, 32, 32))
    policy = Chain([(Flip(), 0.5), PadCrop(4), RandAugment(), SamplePairing(0.4)])

    def step(batch, seed, index):
        return policy(batch, seed=seed, index=index)

    seed, index = torch.tensor([1], device="cuda"), torch.arange(512, device="cuda")
    recording = Recording(step, (batch, seed, index))
    for round_ in range(5):
        batch = pictures(batch.shape, seed=round_)
        index = torch.randperm(50_000, device="cuda")[:512]
        done = recording((batch, torch.tensor([round_ - 2], device="cuda"), index))
        assert torch.equal(done, policy(batch, seed=round_ - 2, index=index.cpu()))


def test_pictures_in_other_memory(launches, monkeypatch):
    """Slices that begin anywhere, channels last, floats."""
    whole = pictures((101, 3, 31, 31))
    unaligned = torch.empty(64 * 3 * 32 * 32 + 1, dtype=torch.uint8, device="cuda")[1:].view(64, 3, 32, 32)
    unaligned.copy_(pictures((64, 3, 32, 32)))
    agree(RandAugment(n=3), unaligned, launches, monkeypatch)
    for batch in (whole[1:], whole.contiguous(memory_format=torch.channels_last), whole.float() / 255, whole[:, :1]):
        agree(RandAugment(), batch, launches, monkeypatch)
