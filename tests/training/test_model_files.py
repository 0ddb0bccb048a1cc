import json

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from augtree import models
from augtree.training.model_files import model_files
from support.blobs import MINE, blobs, task

MEAN, STD = (0.5, 0.25, 1 / 3), (0.1, 0.2, 0.3)
INPUTS = {"cnn": models.Inputs("image", 3, 8, 2), "wrn-10-1": models.Inputs("image", 3, 16, 5)}


def written(folder, model, **about):
    """The folder, with the files of a model."""
    for name, content in model_files(model, task(model="cnn"), blobs(), MEAN, STD, **about).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("name", INPUTS)
def test_a_loaded_model_gives_the_same_logits(tmp_path, name):
    torch.manual_seed(0)
    inputs = INPUTS[name]
    model = models.build(name, inputs)
    pictures = torch.randn(6, 3, inputs.size, inputs.size)
    model.train()(pictures)  # so that the batch norm's statistics are not what they begin with
    torch.manual_seed(1)
    loaded = models.build(name, inputs, weights=written(tmp_path, model) / "model.safetensors")
    assert torch.equal(loaded.eval()(pictures), model.eval()(pictures))


def test_a_trained_model_is_read_back_to_the_last_bit(tmp_path):
    trainer = task(model="cnn").prepare(blobs())
    model = trainer.module(trainer.fit(MINE, 0))
    kept = safetensors.torch.load_file(written(tmp_path, model) / "model.safetensors")
    assert {name: tensor.tolist() for name, tensor in kept.items()} == {
        name: tensor.tolist() for name, tensor in model.state_dict().items()
    }


def test_what_stands_beside_the_weights(tmp_path):
    written(tmp_path, nn.Linear(2, 2), metrics={"val": {"accuracy": 0.5}})
    assert json.loads((tmp_path / "training.json").read_text()) == {
        "metrics": {"val": {"accuracy": 0.5}},
        "mean": list(MEAN),
        "std": list(STD),
        "classes": ["0", "1"],
        "model": {"network": "cnn", "domain": "image", "channels": 3, "size": 8, "outputs": 2, "shape": [3, 8, 8]},
        "task": task(model="cnn").spec(),
    }


def test_the_same_model_gives_the_same_bytes():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    assert model_files(model, task(), blobs(), MEAN, STD) == model_files(model, task(), blobs(), MEAN, STD)


def test_views_of_one_long_vector_are_kept_apart(tmp_path):
    model = nn.Linear(2, 2)
    vector = torch.arange(6.0)
    model.weight.data, model.bias.data = vector[:4].view(2, 2).T, vector[4:]
    kept = safetensors.torch.load_file(written(tmp_path, model) / "model.safetensors")
    assert kept["weight"].tolist() == [[0, 2], [1, 3]]
    assert kept["bias"].tolist() == [4, 5]
    assert (tmp_path / "model.safetensors").stat().st_size < 500  # and not the whole vector twice


def test_numbers_that_json_does_not_have_are_refused():
    with pytest.raises(ValueError, match="Out of range float values"):
        model_files(nn.Linear(1, 1), task(), blobs(), MEAN, STD, metrics={"val": {"loss": float(np.inf)}})
