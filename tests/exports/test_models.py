"""Finished models as files: the same outputs from uint8 pictures, and from graphs, as in training."""

import importlib.util
import json
import logging

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch_geometric.data import Batch

import augtree as at
from augtree.exports.finished import read_finished
from augtree.exports.models import loading_example, quiet_exporter
from support.blobs import blobs, net, task
from support.contrastive import task as contrastive_task
from support.small_graphs import classifier_task, marked_rings

needs_onnx = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnxscript") is None,
    reason="onnxscript and onnxruntime are not installed (make test-exports)",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Trained runs: (folder, inputs of an exported model, the outputs that they must have)."""
    folder = tmp_path_factory.mktemp("runs")
    data, graphs = blobs(), marked_rings()
    trained = at.train(data, task(model="cnn", steps=3), out=folder / "pictures")
    encoder = at.train(data, contrastive_task(steps=2), out=folder / "encoder").model
    network = at.train(graphs, classifier_task(steps=2), out=folder / "graphs").model
    mean, std = (torch.tensor(each).view(1, -1, 1, 1) for each in (trained.mean, trained.std))
    pictures, batch = data.samples[:7], Batch.from_data_list(list(graphs.samples[:7]))
    normalised = (pictures / 255 - mean) / std
    with torch.no_grad():
        return {
            "pictures": (folder / "pictures", (pictures,), trained.model(normalised)),
            "encoder": (folder / "encoder", (pictures,), encoder.features(normalised)),
            "graphs": (folder / "graphs", (batch.x, batch.edge_index, batch.ptr.diff()), network(batch)),
        }


def loaded(path, target):
    """What the five lines of the loading example define."""
    names = {}
    lines = [line for line in loading_example(path, target).splitlines() if not line.startswith("outputs")]
    assert len(loading_example(path, target).splitlines()) <= 5
    exec("\n".join(lines), names)
    return names


def test_the_model_with_its_normalisation_gives_what_it_gave_in_training(runs):
    for folder, inputs, outputs in runs.values():
        with torch.no_grad():
            torch.testing.assert_close(read_finished(folder).module()(*inputs), outputs, rtol=1e-4, atol=1e-5)


def test_safetensors_are_loaded_by_the_example(runs, tmp_path):
    folder, _, _ = runs["graphs"]
    path = at.export_model(folder, "safetensors", tmp_path / "model.safetensors")
    names = loaded(path, "safetensors")
    assert names["about"]["classes"] == ["0", "1"]
    own, kept = (safetensors.torch.load_file(file) for file in (path, folder / "model.safetensors"))
    assert own.keys() == kept.keys()
    assert all(torch.equal(own[name], kept[name]) for name in own)
    assert {name: tuple(tensor.shape) for name, tensor in names["model"].state_dict().items()} == {
        name: tuple(tensor.shape) for name, tensor in kept.items()
    }


@pytest.mark.parametrize(
    "name", [pytest.param("pictures"), *(pytest.param(n, marks=needs_onnx) for n in ("encoder", "graphs"))]
)
def test_torch_export_gives_the_same_outputs_for_any_number_of_samples(runs, tmp_path, name):
    folder, inputs, outputs = runs[name]
    path = at.export_model(folder, "torch-export", tmp_path / "model.pt2")
    names = loaded(path, "torch-export")
    torch.testing.assert_close(names["model"](*inputs), outputs, rtol=1e-4, atol=1e-5)
    assert names["classes"] == ["0", "1"]
    assert not names["model"](*inputs).requires_grad
    if name == "graphs":
        one = marked_rings().samples[3]
        first = names["model"](one.x, one.edge_index, torch.tensor([one.num_nodes]))
        torch.testing.assert_close(first, outputs[3:4], rtol=1e-4, atol=1e-5)
    else:
        torch.testing.assert_close(names["model"](inputs[0][:1]), outputs[:1], rtol=1e-4, atol=1e-5)


def test_the_exporter_warns_nobody_of_torchvision():
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    with quiet_exporter():
        assert not logger.isEnabledFor(logging.WARNING)
    assert logger.isEnabledFor(logging.WARNING)


@needs_onnx
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["pictures", "encoder", "graphs"])
def test_onnx_gives_the_same_outputs_for_any_number_of_samples(runs, tmp_path, name):
    folder, inputs, outputs = runs[name]
    path = at.export_model(folder, "onnx", tmp_path / "model.onnx")
    names = loaded(path, "onnx")
    keys = ["x", "edge_index", "counts"] if name == "graphs" else ["pictures"]
    assert [each.name for each in names["session"].get_inputs()] == keys
    given = {key: value.numpy() for key, value in zip(keys, inputs, strict=True)}
    np.testing.assert_allclose(names["session"].run(None, given)[0], outputs.numpy(), rtol=1e-4, atol=1e-4)
    if name != "graphs":
        one = names["session"].run(None, {"pictures": inputs[0][:1].numpy()})[0]
        np.testing.assert_allclose(one, outputs[:1].numpy(), rtol=1e-4, atol=1e-4)
    assert names["classes"] == ["0", "1"]


@needs_onnx
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
@pytest.mark.parametrize("name", ["gin", "resgcn"])
def test_every_graph_network_can_be_exported(tmp_path, name, pooling):
    import onnxruntime

    data = marked_rings()
    options = {"layers": 2, "hidden": 4, "pooling": pooling}
    trained = at.train(data, classifier_task(model=name, options=options, steps=2), out=tmp_path / "run")
    batch = Batch.from_data_list(list(data.samples[:5]))
    path = at.export_model(tmp_path / "run", "onnx", tmp_path / "model.onnx")
    given = {"x": batch.x, "edge_index": batch.edge_index, "counts": batch.ptr.diff()}
    session = onnxruntime.InferenceSession(str(path))
    outputs = session.run(None, {key: value.numpy() for key, value in given.items()})[0]
    np.testing.assert_allclose(outputs, trained.model(batch).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_a_model_of_a_users_own_is_given_again(tmp_path):
    trained = at.train(blobs(), task(steps=2), out=tmp_path / "run")
    with pytest.raises(at.errors.ArgumentError, match="model must be given: the run's model is a function"):
        at.export_model(tmp_path / "run", "safetensors", tmp_path / "model.safetensors")
    finished = read_finished(tmp_path / "run", net)
    pictures = blobs().samples[:3]
    mean, std = (torch.tensor(each).view(1, -1, 1, 1) for each in (trained.mean, trained.std))
    with torch.no_grad():
        wanted = trained.model((pictures / 255 - mean) / std)
        torch.testing.assert_close(finished.module()(pictures), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(at.errors.RunError, match="must hold the weights of the run's model"):
        read_finished(tmp_path / "run", lambda: nn.Linear(3, 2))


def test_runs_without_a_model_say_so(runs, tmp_path):
    with pytest.raises(
        at.errors.RunError, match=r"must be the folder of a run with a finished model .* there is none$"
    ):
        at.export_model(tmp_path, "onnx")
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(at.errors.RunError, match="there is none yet: the run is not done"):
        at.export_model(tmp_path, "onnx")
    folder, _, _ = runs["pictures"]
    for name in ("model.safetensors", "training.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    about = json.loads((tmp_path / "training.json").read_text())
    del about["model"]
    (tmp_path / "training.json").write_text(json.dumps(about))
    with pytest.raises(at.errors.RunError, match="damaged, or of an older version of augtree"):
        at.export_model(tmp_path, "safetensors", tmp_path / "out.safetensors")


def test_existing_files_and_unknown_targets_are_refused(runs, tmp_path):
    folder, path = runs["pictures"][0], tmp_path / "model.safetensors"
    path.write_text("mine")
    with pytest.raises(at.errors.ArgumentError, match=r"out must be a new file \(overwrite=True"):
        at.export_model(folder, "safetensors", path)
    assert path.read_text() == "mine"
    at.export_model(folder, "safetensors", path, overwrite=True)
    assert path.stat().st_size > 1000
    with pytest.raises(at.errors.ArgumentError, match=r"to must be one of .* \(did you mean onnx\?\)"):
        at.export_model(folder, "onxx")


class Picky(nn.Module):
    """Branches on its numbers, which no export can follow."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, batch):
        return self.net(batch) if batch.sum() > 0 else self.net(-batch)


@needs_onnx
def test_a_model_that_cannot_be_exported_is_an_error_of_one_line(tmp_path):
    at.train(blobs(), task(model=Picky, steps=2), out=tmp_path / "run")
    with pytest.raises(at.errors.ArgumentError, match=r"model must be one that torch.export can take \(.+\)$"):
        at.export_model(tmp_path / "run", "torch-export", tmp_path / "model.pt2", model=Picky)
    assert not (tmp_path / "model.pt2").exists()
