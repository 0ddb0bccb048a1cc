import pytest
import torch

from augtree.models import Inputs, build


@pytest.fixture(scope="module")
def names():
    """The names and shapes of both networks' tensors, without their values."""
    with torch.device("meta"):
        made = {name: build(name, Inputs("image", 3, 224, 1000)) for name in ("resnet18", "resnet50")}
    return {name: {key: list(t.shape) for key, t in model.state_dict().items()} for name, model in made.items()}


def test_torchvision_names_and_shapes(names):
    """From the published files resnet18-f37072fd.pth and resnet50-0676ba61.pth."""
    assert len(names["resnet18"]) == 122
    assert len(names["resnet50"]) == 320
    for name, key, shape in [
        ("resnet18", "conv1.weight", [64, 3, 7, 7]),
        ("resnet18", "bn1.running_mean", [64]),
        ("resnet18", "layer1.0.conv1.weight", [64, 64, 3, 3]),
        ("resnet18", "layer2.0.downsample.0.weight", [128, 64, 1, 1]),
        ("resnet18", "layer2.0.downsample.1.num_batches_tracked", []),
        ("resnet18", "layer4.1.bn2.bias", [512]),
        ("resnet18", "fc.weight", [1000, 512]),
        ("resnet50", "layer1.0.conv1.weight", [64, 64, 1, 1]),
        ("resnet50", "layer1.0.downsample.0.weight", [256, 64, 1, 1]),
        ("resnet50", "layer3.5.conv3.weight", [1024, 256, 1, 1]),
        ("resnet50", "layer4.0.conv2.weight", [512, 512, 3, 3]),
        ("resnet50", "fc.bias", [1000]),
    ]:
        assert names[name][key] == shape, key
    assert "layer1.0.downsample.0.weight" not in names["resnet18"]
    assert "layer2.1.downsample.0.weight" not in names["resnet50"]


@pytest.mark.parametrize(
    ("size", "stem", "kernel"), [(64, "auto", 3), (65, "auto", 7), (32, "large", 7), (96, "small", 3)]
)
def test_the_stem_fits_the_size(size, stem, kernel):
    with torch.device("meta"):
        model = build("resnet18", Inputs("image", 3, size, 2), stem=stem)
    assert model.conv1.kernel_size == (kernel, kernel)


@pytest.mark.parametrize(("stem", "side"), [("small", 32), ("large", 8)])
def test_the_large_stem_divides_the_size_by_four(stem, side):
    model = build("resnet18", Inputs("image", 3, 32, 2), stem=stem).eval()
    seen = []
    model.layer1.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    model(torch.rand(1, 3, 32, 32))
    assert seen == [(1, 64, side, side)]


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_a_block_adds_to_its_input(name):
    block = build(name, Inputs("image", 3, 32, 2)).layer1[1].eval()
    last = block.bn2 if name == "resnet18" else block.bn3
    torch.nn.init.zeros_(last.weight)
    x = torch.rand(1, last.num_features, 4, 4)
    assert torch.equal(block(x), x)
