import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from augtree import Tree, wrap
from augtree.data import from_arrays
from augtree.errors import ArgumentError, RunError
from augtree.policies.codec import Reader
from augtree.runs.spec import restore_task
from augtree.tasks import Classification
from augtree.transforms import Chain, Flip, Invert, Rotate
from support.blobs import blobs, net
from support.contrastive import graphs

NAMES = r"must be a name, or a function without arguments that makes a new nn\.Module"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "wrn16", r"must be one of wrn-D-K .* \(did you mean wrn-16-4\?\), got 'wrn16'"),
        ("model", nn.Linear(1, 1), NAMES),
        ("model", 3, NAMES),
        ("epochs", 0, r"must be a number in \(0, 1e\+06\], got 0"),
        ("epochs", math.nan, "must be a number in .* got nan"),
        ("steps", 0, "must be a whole number from 1 to 1000000000, got 0"),
        ("steps", 1.5, "must be a whole number"),
        ("batch_size", 0, "must be a whole number from 1 to 1000000, got 0"),
        ("batch_size", True, "must be a whole number"),
        ("optimizer", "sdg", r"must be one of auto, sgd, adamw \(did you mean sgd\?\), got 'sdg'"),
        ("optimizer", ["sgd"], "must be one of auto, sgd, adamw"),
        ("lr", 0, r"must be a number in \(0, 1000\], got 0"),
        ("weight_decay", -1e-4, r"must be a number in \[0, 1000\], got -0.0001"),
        ("momentum", 1.0, r"must be a number in \[0, 0.9999\], got 1.0"),
        ("schedule", "linear", r"must be one of constant-linear, cosine, constant, got 'linear'"),
        ("warmup", 1.1, r"must be a number in \[0, 1\], got 1.1"),
        ("decay", -0.1, r"must be a number in \[0, 1\], got -0.1"),
        ("label_smoothing", 1, r"must be a number in \[0, 0.9999\], got 1"),
        ("metric", "accurate", r"must be one of accuracy, error, f1, auroc, loss \(did you mean accuracy\?\)"),
        ("preprocess", "flips", 'must be "default", None or a transform, got .flips.'),
        ("preprocess", 3, 'must be "default", None or a transform, got 3'),
        ("device", torch.device("cpu"), "must be a name: auto, cpu or cuda"),
        ("compile", "no", "must be True or False, got 'no'"),
        ("deterministic", 1, "must be True or False, got 1"),
        ("precision", "half", "must be one of auto, float32, bfloat16, got 'half'"),
        ("options", ["width"], "must be a mapping"),
    ],
)
def test_arguments_are_checked(field, value, words):
    with pytest.raises(ArgumentError, match=f"^{field} {words}") as caught:
        Classification(**{field: value})
    assert caught.value.field == field


def test_the_optimizer_suits_the_data_unless_it_is_given():
    for data, optimizer in ((blobs(), "sgd"), (graphs(), "adamw")):
        assert Classification(steps=2).for_data(data) == Classification(steps=2, optimizer=optimizer)
        assert Classification(steps=2).prepare(data).task.optimizer == optimizer
        for given in ("sgd", "adamw"):
            assert Classification(steps=2, optimizer=given).prepare(data).task.optimizer == given


def test_the_defaults_of_each_optimizer():
    sgd, adamw = Classification(), Classification(optimizer="adamw")
    assert (sgd.rate, sgd.effective_weight_decay) == (0.1, 5e-4)
    assert (adamw.rate, adamw.effective_weight_decay) == (2e-3, 0.05)
    own = Classification(lr=0.3, weight_decay=0.0)
    assert (own.rate, own.effective_weight_decay) == (0.3, 0)


@pytest.mark.parametrize(
    ("options", "samples", "steps"),
    [
        ({"epochs": 80, "batch_size": 128}, 4000, 2500),
        ({"epochs": 3, "batch_size": 128}, 50, 3),
        ({"epochs": 0.5, "batch_size": 10}, 100, 5),
        ({"epochs": 0.001, "batch_size": 10}, 100, 1),
        ({"epochs": 80, "steps": 7}, 4000, 7),
    ],
)
def test_total_steps(options, samples, steps):
    assert Classification(**options).total_steps(samples) == steps


def test_rates_rise_in_a_line_and_fall_as_a_cosine():
    half = math.sqrt(0.5)
    plain = Classification(lr=1.0, warmup=0, schedule="cosine")
    assert plain.rates(4) == pytest.approx([1, (1 + half) / 2, 0.5, (1 - half) / 2])
    assert Classification(lr=0.6, warmup=0.5, schedule="cosine").rates(4) == pytest.approx([0.2, 0.4, 0.6, 0.3])
    assert Classification(lr=1.0, warmup=1, schedule="cosine").rates(3) == pytest.approx([0.25, 0.5, 0.75])
    assert plain.rates(1) == [1]
    assert plain.rates(0) == []


def test_rates_are_constant_and_end_with_a_line_to_zero_unless_another_schedule_is_asked_for():
    rates = Classification(lr=0.5).rates(20)
    assert rates == pytest.approx([0.25, *[0.5] * 14, *(0.5 * left / 6 for left in range(5, 0, -1))])
    assert Classification(lr=0.6, warmup=0.5, decay=0.25).rates(8) == pytest.approx(
        [0.12, 0.24, 0.36, 0.48, 0.6, 0.6, 0.6, 0.3]
    )
    assert Classification(lr=0.5, schedule="constant").rates(3) == [0.5] * 3


@pytest.mark.parametrize(
    ("side", "device", "name"),
    [
        (8, "cuda", "cnn"),
        (16, "cuda", "cnn"),
        (17, "cuda", "wrn-16-4"),
        (64, "cuda", "wrn-16-4"),
        (65, "cuda", "resnet18"),
        (17, "cpu", "cnn"),
        (64, "cpu", "cnn"),
        (65, "cpu", "resnet18"),
    ],
)
def test_the_model_goes_by_the_shorter_side_and_the_device(side, device, name, monkeypatch):
    monkeypatch.setattr("augtree.tasks.base.device_of", lambda _: torch.device(device))
    data = from_arrays(np.zeros((2, side, side + 60), np.uint8), [0, 1], split=["train", "val"])
    assert Classification().model_for(data) == name
    assert Classification(model=net).model_for(data) is net


def test_the_model_for_graphs():
    graphs = [Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2) for _ in range(2)]
    data = from_arrays(graphs, [0, 1], split=["train", "val"])
    assert Classification().model_for(data) == "gin"


def again(task, *transforms):
    """The task out of a file's text."""
    return restore_task(json.loads(json.dumps(task.spec(), allow_nan=False)), Reader(Path("spec.json"), transforms))


@pytest.mark.parametrize(
    "task",
    [
        Classification(),
        Classification(
            "resnet18", steps=9, lr=0.2, metric="auroc", preprocess=None, options={"weights": "w.safetensors"}
        ),
        Classification(optimizer="adamw", preprocess=Rotate(0.6), deterministic=True),
        Classification(precision="bfloat16"),
        Classification(preprocess=Chain([Flip(), (Rotate(0.2), 0.5)])),
        Classification(preprocess=Tree().with_node(1, Invert(1.0), p=0.5)),
    ],
)
def test_a_task_comes_back_from_its_specification(task):
    assert task.spec()["task"] == "classification"
    assert again(task) == task
    assert again(task).spec() == task.spec()


def test_the_precision_is_in_the_specification_where_it_was_asked_for():
    """So that a run which was begun before there was a choice is the same as one with none."""
    assert "precision" not in Classification().spec()
    assert Classification(precision="float32").spec()["precision"] == "float32"


def test_numbers_of_numpy_and_paths_become_plain():
    task = Classification("cnn", epochs=np.float32(2), batch_size=np.int64(4), options={"weights": Path("a/b")})
    found = again(task)
    assert (found.epochs, found.batch_size, found.options) == (2, 4, {"weights": "a/b"})
    assert type(found.epochs) is float


def fog(picture):
    """A transform of the user's own."""
    return picture


def test_a_preprocessing_of_ones_own_comes_back_with_its_function():
    mine = wrap(fog, name="Fog")
    task = Classification(preprocess=mine)
    assert again(task, mine) == task


class Maker:
    def __call__(self):
        return net()


@pytest.mark.parametrize(
    ("model", "name"),
    [(net, "support.blobs.net"), (functools.partial(net, 2), "functools.partial"), (Maker(), f"{__name__}.Maker")],
)
def test_a_function_stands_there_by_its_name_and_must_be_given_again(model, name):
    task = Classification(model=model, steps=1, device="cpu")
    assert task.spec()["model"] == {"function": name}
    with pytest.raises(RunError, match=rf"the run's model is a function \({name}\): give the task again, task="):
        again(task)
    task.prepare(blobs()).fit(Tree(), 0)


def test_options_are_for_named_models():
    with pytest.raises(ArgumentError, match=r"model must be a name where there are options \(width\)"):
        Classification(net, options={"width": 3}, device="cpu")
    with pytest.raises(ArgumentError, match=r"widht must be an option of cnn, .* \(did you mean width\?\), got 3"):
        Classification("cnn", options={"widht": 3})
    with pytest.raises(ArgumentError, match="wide must be an option of resnet50, which has stem, weights, got 3"):
        Classification("resnet50", options={"wide": 3})
    assert Classification("cnn", options={"width": 3}, device="cpu").prepare(blobs()).model.fc.in_features == 6
