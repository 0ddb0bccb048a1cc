import pytest
import torch
from safetensors.torch import save_file

from augtree.errors import ArgumentError
from augtree.models import Inputs, build
from augtree.tasks.contrastive import Projection

TINY = Inputs("image", 1, 8, 3)


def saved(path, state):
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, path)
    return path


def different(one, other):
    return {key for key, tensor in one.state_dict().items() if not torch.equal(tensor, other.state_dict()[key])}


@pytest.fixture
def cnn():
    """A small network whose norms have seen data."""
    model = build("cnn", TINY, width=2)
    model(torch.rand(4, 1, 8, 8))
    return model


@pytest.mark.parametrize("name", ["wrn-10-1", "cnn", "gin", "resgcn"])
def test_what_is_saved_is_loaded(name, tmp_path):
    inputs = Inputs("graph", 2, 0, 3) if name in ("gin", "resgcn") else TINY
    first = build(name, inputs)
    path = saved(tmp_path / "a.safetensors", first.state_dict())
    assert different(first, build(name, inputs)) != set()
    again = build(name, inputs, weights=path)
    assert different(first, again) == set()
    assert again.weights_note == "a.safetensors: all"


def test_counters_of_batches_are_loaded_too(cnn, tmp_path):
    again = build("cnn", TINY, width=2, weights=str(saved(tmp_path / "a.safetensors", cnn.state_dict())))
    assert again.bn1.num_batches_tracked == 1
    assert torch.equal(again.bn1.running_mean, cnn.bn1.running_mean)


def test_without_weights_there_is_nothing_to_note():
    assert build("cnn", TINY).weights_note == build("cnn", TINY, weights=None).weights_note == ""


def test_another_stem_and_other_classes_stay_random(tmp_path):
    first = build("resnet18", Inputs("image", 3, 96, 5))
    path = saved(tmp_path / "r.safetensors", first.state_dict())
    torch.manual_seed(3)
    fresh = build("resnet18", Inputs("image", 3, 32, 7))
    torch.manual_seed(3)
    model = build("resnet18", Inputs("image", 3, 32, 7), weights=path)
    assert model.weights_note == "r.safetensors: all but conv1 and fc, left at random"
    assert different(model, fresh).isdisjoint({"conv1.weight", "fc.weight", "fc.bias"})
    assert different(model, first) == {"conv1.weight", "fc.weight", "fc.bias"}


def test_a_file_without_a_classifier_leaves_it_random(cnn, tmp_path):
    path = saved(tmp_path / "a.safetensors", {k: v for k, v in cnn.state_dict().items() if not k.startswith("fc.")})
    model = build("cnn", TINY, width=2, weights=path)
    assert model.weights_note == "a.safetensors: all but fc, left at random"
    assert different(model, cnn) == {"fc.weight", "fc.bias"}


def test_the_projection_of_a_contrastive_training_is_left_out(cnn, tmp_path):
    fc, cnn.fc = cnn.fc, Projection(cnn.fc.in_features, 8)
    path = saved(tmp_path / "a.safetensors", cnn.state_dict())
    model = build("cnn", TINY, width=2, weights=path)
    assert model.weights_note == "a.safetensors: all but fc, left at random"
    cnn.fc = fc
    assert different(model, cnn) == {"fc.weight", "fc.bias"}


def test_only_below_fc_may_there_be_more(cnn, tmp_path):
    more = {"fc2.weight": torch.zeros(1), "conv1.more": torch.zeros(1), "fc.more": torch.zeros(1)}
    path = saved(tmp_path / "a.safetensors", cnn.state_dict() | more)
    with pytest.raises(ArgumentError, match=r"tensors: 2 unknown \(conv1.more, fc2.weight\), got"):
        build("cnn", TINY, width=2, weights=path)


def test_old_files_have_no_counters(cnn, tmp_path):
    state = {key: tensor for key, tensor in cnn.state_dict().items() if "num_batches" not in key}
    model = build("cnn", TINY, width=2, weights=saved(tmp_path / "a.safetensors", state))
    assert model.weights_note == "a.safetensors: all"
    assert torch.equal(model.conv3.weight, cnn.conv3.weight)


def test_half_precision_is_widened(cnn, tmp_path):
    model = build("cnn", TINY, width=2, weights=saved(tmp_path / "a.safetensors", cnn.half().state_dict()))
    assert model.conv1.weight.dtype == torch.float32
    assert torch.equal(model.conv1.weight.half(), cnn.conv1.weight)


def test_every_misfit_is_in_one_error(cnn, tmp_path):
    state = cnn.state_dict()
    del state["conv2.weight"]
    state |= {"head\x1b": torch.zeros(1), "bn1.weight": torch.zeros(3), "bn2.weight": state["bn2.weight"].int()}
    path = saved(tmp_path / "a.safetensors", state)
    with pytest.raises(ArgumentError) as caught:
        build("cnn", TINY, width=2, weights=path)
    message = str(caught.value)
    assert message.startswith(
        "weights must hold this model's tensors: 1 missing (conv2.weight), 1 unknown (head\\x1b), "
        "2 of another shape or type (bn1.weight, bn2.weight), got "
    )


def test_the_first_convolution_must_be_there(cnn, tmp_path):
    path = saved(tmp_path / "a.safetensors", {k: v for k, v in cnn.state_dict().items() if k != "conv1.weight"})
    with pytest.raises(ArgumentError, match=r"1 missing \(conv1.weight\), got"):
        build("cnn", TINY, width=2, weights=path)


def test_long_lists_are_cut(cnn, tmp_path):
    path = saved(tmp_path / "a.safetensors", cnn.state_dict())
    with pytest.raises(ArgumentError, match=r"\d\d missing \(bn.bias, bn.running_mean, bn.running_var, \.\.\.\)"):
        build("wrn-10-1", TINY, weights=path)


@pytest.mark.parametrize("content", [None, b"", b"no weights", b"\xff" * 64])
def test_a_file_that_is_none(content, tmp_path):
    path = tmp_path / "a.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"weights must be a safetensors file \(.*\), got"):
        build("cnn", TINY, weights=path)


@pytest.mark.parametrize("path", [3, ".", "a\0b"])
def test_a_path_that_is_none(path):
    with pytest.raises(ArgumentError, match="weights must be a safetensors file"):
        build("cnn", TINY, weights=path)
