import torch
import torch.nn.functional as F

from augtree.models import Inputs, build
from augtree.models.wide_resnet import Block


def test_sizes_by_hand():
    """A 3x3 convolution a -> b has 9ab parameters, a norm 2a; the shortcut of a wider block has ab."""
    blocks = [(16, 32), (32, 64), (64, 128)]  # depth 10, width 2: one block a stage
    by_hand = sum(2 * a + 9 * a * b + 2 * b + 9 * b * b + a * b for a, b in blocks)
    by_hand += 9 * 1 * 16 + 2 * 128 + 128 * 5 + 5
    assert sum(p.numel() for p in build("wrn-10-2", Inputs("image", 1, 8, 5)).parameters()) == by_hand


def test_a_block_of_equal_width_adds_to_its_input():
    block = Block(4, 4, 1).eval()
    assert block.shortcut is None
    torch.nn.init.zeros_(block.conv2.weight)
    x = torch.randn(1, 4, 5, 5)
    assert torch.equal(block(x), x)


def test_the_shortcut_of_a_wider_block_sees_norm_and_relu():
    block = Block(4, 8, 2).eval()
    torch.nn.init.zeros_(block.conv2.weight)
    x = torch.randn(1, 4, 6, 6)
    expected = F.conv2d(F.relu(block.bn1(x)), block.shortcut.weight, stride=2)
    assert torch.equal(block(x), expected)


def test_two_of_three_stages_halve_the_maps():
    model = build("wrn-16-1", Inputs("image", 3, 32, 2))
    assert [len(stage) for stage in (model.layer1, model.layer2, model.layer3)] == [2, 2, 2]
    maps = model.layer3(model.layer2(model.layer1(model.conv1(torch.rand(1, 3, 32, 32)))))
    assert maps.shape == (1, 64, 8, 8)


def test_initial_weights_keep_the_variance_going_back():
    torch.manual_seed(0)
    weight = build("wrn-10-4", Inputs("image", 3, 32, 10)).layer3[0].conv1.weight  # 128 -> 256
    assert abs(weight.std().item() / (2 / (9 * 256)) ** 0.5 - 1) < 0.01
