"""On a GPU: the same bytes as on the CPU, and nothing that waits for the device."""

import warnings

import pytest
import torch

import augtree as at
from augtree.transforms import BUILT_IN, Chain, Flip, GaussianBlur, Normalize, OneOf, RandAugment, ResizedCrop, images
from augtree.transforms.graphs import GraphTransform
from support import pillow_reference as pillow

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


def instances():
    for name, kind in BUILT_IN.items():
        if issubclass(kind, GraphTransform) or name == "GraphCL":
            continue
        if issubclass(kind, images.Operation):
            yield from (kind(m) for m in (0.2, 0.4, 0.6, 0.8, 1.0))
        elif name == "Chain":
            yield Chain([Flip(), (GaussianBlur(), 0.5)])
        elif name == "OneOf":
            yield OneOf([Flip(), (GaussianBlur(), 2), RandAugment()])
        elif name == "Normalize":
            yield Normalize((0.4,), (0.3,))
        elif name == "ResizedCrop":
            yield ResizedCrop(size=20)
        else:
            yield kind()


def big_tree():
    space = at.spaces.images(composites=True)
    tree = at.Tree()
    for i, candidate in enumerate([space["RandAugment"], *list(space)[1:64:2]][:31], start=1):
        tree = tree.with_node(i, candidate, p=None if i % 2 else 0.4)
    return tree


@pytest.mark.parametrize("transform", [*instances(), big_tree()], ids=str)
def test_pictures_are_the_same_bytes(transform):
    for channels in (1, 3):
        for height, width in [*pillow.SIZES, (96, 96)]:
            batch = pillow.pictures(channels, height, width)
            here, there = transform(batch, seed=3), transform(batch.cuda(), seed=3)
            assert there.is_cuda
            assert torch.equal(here, there.cpu()), (channels, height, width)
    floats = pillow.pictures(3, 32, 32).float() / 255
    assert torch.equal(transform(floats, seed=3), transform(floats.cuda(), seed=3).cpu())


def test_hue_of_every_colour():
    code = torch.arange(1 << 24)
    for part in code.split(1 << 20):
        picture = torch.stack([part >> 16, (part >> 8) & 255, part & 255]).to(torch.uint8).view(1, 3, 1024, 1024)
        turn = torch.tensor([37])
        here = at.transforms.kernels.hue(picture, turn)
        assert torch.equal(here, at.transforms.kernels.hue(picture.cuda(), turn.cuda()).cpu())


def test_nothing_waits_for_the_device():
    batch = torch.randint(0, 256, (128, 3, 32, 32), dtype=torch.uint8, device="cuda")
    policies = [big_tree(), *instances()]
    for policy in policies:  # warm up: tables are made once
        policy(batch, seed=0)
    torch.cuda.synchronize()
    try:
        set_sync_mode("error")
        for policy in policies:
            policy(batch, seed=1)
    finally:
        set_sync_mode("default")


def set_sync_mode(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the mode is a prototype
        torch.cuda.set_sync_debug_mode(mode)


def test_deterministic_mode_is_no_obstacle():
    batch = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8, device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        for policy in [big_tree(), *instances()]:
            assert torch.equal(policy(batch, seed=1), policy(batch, seed=1))
    finally:
        torch.use_deterministic_algorithms(False)


def test_graphs_are_the_same_on_the_gpu():
    from torch_geometric.data import Batch, Data

    graphs = []
    for seed in range(200):
        rng = torch.Generator().manual_seed(seed)
        nodes = int(torch.randint(1, 60, (), generator=rng))
        found = (torch.rand(nodes, nodes, generator=rng) < 0.2).triu(1)
        edge_index = (found | found.t()).nonzero().t().contiguous()
        attributes = torch.arange(edge_index.shape[1]).float()
        graphs.append(Data(x=torch.randn(nodes, 3, generator=rng), edge_index=edge_index, edge_attr=attributes))
    batch = Batch.from_data_list(graphs)
    tree = at.Tree()
    for i, candidate in enumerate(list(at.spaces.graphs())[1::3], start=1):
        tree = tree.with_node(i, candidate, p=None if i % 2 else 0.4)
    for policy in [*list(at.spaces.graphs())[1:], tree]:
        here, there = policy(batch, seed=5), policy(batch.clone().to("cuda"), seed=5)
        assert there.x.is_cuda
        for one, other in zip(here.to_data_list(), there.cpu().to_data_list(), strict=True):
            assert all(torch.equal(one[key], other[key]) for key in one.keys())
