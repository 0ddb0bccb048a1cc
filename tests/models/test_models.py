"""What holds for all models, and how they are built by name."""

import pytest
import torch
from torch import nn

from augtree.errors import ArgumentError, TaskError
from augtree.models import Inputs, Model, build

PICTURES = Inputs("image", 3, 32, 10)
GRAPHS = Inputs("graph", 4, 0, 2)
OF_GRAPHS = ("gin", "resgcn")


def count(name, inputs, **options):
    with torch.device("meta"):
        return sum(p.numel() for p in build(name, inputs, **options).parameters())


@pytest.mark.parametrize("name", ["wrn-10-1", "resnet18", "resnet50", "cnn"])
def test_logits_for_pictures_of_all_sizes(name):
    for size, channels in [(8, 1), (28, 1), (32, 3), (96, 3)]:
        model = build(name, Inputs("image", channels, size, 7))
        logits = model(torch.rand(2, channels, size, size + 3))
        assert logits.shape == (2, 7)
        assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", ["wrn-10-1", "resnet18", "cnn"])
def test_logits_are_the_classifier_of_the_features(name):
    model = build(name, PICTURES).eval()
    assert isinstance(model, Model)
    pictures = torch.rand(2, 3, 32, 32)
    assert torch.equal(model(pictures), model.fc(model.features(pictures)))


@pytest.mark.parametrize("name", ["wrn-10-1", "resnet18", "cnn", "gin", "resgcn"])
def test_weights_depend_on_the_seed_alone(name):
    inputs = GRAPHS if name in OF_GRAPHS else PICTURES
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(build(name, inputs).state_dict())
    assert all(torch.equal(made[0][key], made[1][key]) for key in made[0])
    assert not torch.equal(made[0]["fc.weight"], made[2]["fc.weight"])


def test_sizes_that_are_published():
    assert count("wrn-16-4", PICTURES) == 2_748_890
    assert count("wrn-28-10", PICTURES) == 36_479_194
    assert count("resnet18", Inputs("image", 3, 224, 1000)) == 11_689_512
    assert count("resnet50", Inputs("image", 3, 224, 1000)) == 25_557_032


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "resnet19",
            r"model must be one of wrn-D-K .*resnet50, gin, resgcn \(did you mean resnet18\?\), got 'resnet19'",
        ),
        ("wrn-16", r"model must be one of wrn-D-K \(such as wrn-16-4\)"),
        ("wrn-15-4", r"depth must be 6n \+ 4 .*, got 15"),
        ("wrn-4-4", "depth must be a whole number from 10 to 1000, got 4"),
        ("wrn-16-0", "width must be a whole number from 1 to 64, got 0"),
        ("", "model must be one of"),
    ],
)
def test_a_name_that_is_none(name, message):
    with pytest.raises(ArgumentError, match=message):
        build(name, PICTURES)


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("gin", PICTURES, "inputs/domain must be 'graph' for gin, got 'image'"),
        ("resgcn", PICTURES, "inputs/domain must be 'graph' for resgcn, got 'image'"),
        ("cnn", GRAPHS, "inputs/domain must be 'image' for cnn, got 'graph'"),
        ("wrn-16-4", PICTURES._replace(size=7), "inputs/size must be at least 8 pixels for wrn-16-4, got 7"),
        ("cnn", PICTURES._replace(channels=0), "inputs/channels must be a whole number from 1"),
        ("gin", GRAPHS._replace(outputs=0), "inputs/outputs must be a whole number from 1"),
    ],
)
def test_inputs_that_the_model_is_not_for(name, inputs, message):
    with pytest.raises(ArgumentError, match=message):
        build(name, inputs)


def test_an_option_that_the_model_does_not_have():
    with pytest.raises(
        ArgumentError, match=r"widht must be an option of cnn, which has width, weights \(did you mea"
    ):
        build("cnn", PICTURES, widht=8)
    with pytest.raises(ArgumentError, match="stem must be an option of wrn-16-4, which has weights, got 'small'"):
        build("wrn-16-4", PICTURES, stem="small")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("cnn", "width", 0),
        ("resnet18", "stem", "tiny"),
        ("gin", "layers", 0),
        ("gin", "hidden", 1.5),
        ("gin", "pooling", 3),
        ("resgcn", "layers", 65),
        ("resgcn", "hidden", 0),
        ("resgcn", "pooling", "median"),
    ],
)
def test_an_option_out_of_its_range(name, option, value):
    with pytest.raises(ArgumentError, match=f"{option} must be"):
        build(name, GRAPHS if name in OF_GRAPHS else PICTURES, **{option: value})


def test_a_function_makes_the_model():
    assert isinstance(build(lambda: nn.Linear(2, 3), PICTURES), nn.Linear)
    assert isinstance(build(nn.Identity, GRAPHS), nn.Identity)


@pytest.mark.parametrize("model", [nn.Linear(2, 3), 3, None, lambda: "cnn"])
def test_what_makes_no_model(model):
    with pytest.raises(ArgumentError, match="model must be a name, or a function without arguments"):
        build(model, PICTURES)


def test_a_function_takes_no_options():
    with pytest.raises(ArgumentError, match=r"model must be a name where there are options \(width\)"):
        build(nn.Identity, PICTURES, width=3)


@pytest.mark.parametrize("layer", [nn.LazyLinear(2), nn.LazyBatchNorm1d(affine=False)], ids=["weights", "buffers"])
def test_lazy_layers_are_refused_with_what_to_do(layer):
    with pytest.raises(TaskError, match=r"weights exist, but 1\.\w+.* have no shape yet: give the layers their"):
        build(lambda: nn.Sequential(nn.Flatten(), layer), PICTURES)


def test_a_lazy_layer_that_has_seen_a_batch_is_an_ordinary_one():
    def made():
        model = nn.Sequential(nn.Flatten(), nn.LazyLinear(2))
        model(torch.zeros(1, 3, 32, 32))
        return model

    assert build(made, PICTURES)[1].weight.shape == (2, 3072)
