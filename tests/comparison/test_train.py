import json

import pytest
import safetensors.torch
import torch
from torch import nn

from augtree import models
from augtree.comparison import train
from augtree.errors import ArgumentError, TaskError
from augtree.runs.events import Planned, Stepped
from augtree.transforms import DropNodes, Flip
from support.blobs import MINE, blobs, by_hand, net, task


def test_a_trained_model_is_kept_and_loads_again(tmp_path):
    data, asked = blobs(), task(model="cnn", preprocess=Flip())
    events = []
    found = train(data, asked, MINE, seed=3, out=tmp_path / "a" / "b", watch=events.append)
    began, *others, finished = events
    assert others == [Planned(others[0].notes, steps=6), *map(Stepped, range(1, 7))]
    assert (began.spec["kind"], began.data, finished.policy) == ("train", data, MINE)
    assert finished.results["test/accuracy"] == found.metrics["test"]["accuracy"]
    folder = tmp_path / "a" / "b"
    results, run = {"model.safetensors", "policy.json", "training.json"}, {"spec.json", "run.sqlite", "lock.sqlite"}
    assert {path.name for path in folder.iterdir()} == {*results, *run, "checkpoints"}
    pictures = by_hand(data.samples, data)
    model = models.build("cnn", models.Inputs("image", 3, 8, 2), weights=folder / "model.safetensors").eval()
    with torch.no_grad():
        assert torch.equal(model(pictures), found.model(pictures))
    about = json.loads((folder / "training.json").read_text())
    assert about["metrics"] == found.metrics
    assert (about["mean"], about["std"], about["classes"]) == (list(found.mean), list(found.std), ["0", "1"])
    assert about["task"]["model"] == "cnn"
    assert (folder / "policy.json").read_text() == (
        MINE.save(tmp_path / "x.json") or (tmp_path / "x.json").read_text()
    )
    ready = asked.prepare(data)
    state = ready.fit(MINE, 3)
    assert found.metrics == {s: ready.measures(state, data.indices(s)) for s in ("val", "test")}


class Tied(nn.Module):
    """The same weight at two places."""

    def __init__(self):
        super().__init__()
        self.net, self.one = net(2), nn.Linear(2, 2, bias=False)
        self.other = nn.Linear(2, 2, bias=False)
        self.other.weight = self.one.weight

    def forward(self, batch):
        return self.other(self.one(self.net(batch)))


def test_tied_weights_are_kept_twice(tmp_path):
    found = train(blobs(), task(model=Tied), out=tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert torch.equal(kept["one.weight"], kept["other.weight"])
    assert kept.keys() == found.model.state_dict().keys()


def test_a_training_without_a_folder():
    found = train(blobs(test=0), task(), "trivialaugment")
    assert set(found.metrics) == {"val"}
    assert not found.model.training


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"policy": 3}, ArgumentError, "policy must be a policy, a name, a file or None"),
        ({"policy": DropNodes(0.2)}, ArgumentError, "policy must work on images"),
        ({"seed": -1}, ArgumentError, "seed must be a whole number"),
        ({"task": task(model=lambda: net(3))}, TaskError, r"here \[16, 2\], got \[16, 3\]"),
        ({"task": task(lr=1e3, steps=30, weight_decay=1e3)}, TaskError, "the training diverged"),
    ],
)
def test_a_training_that_fails_leaves_nothing(tmp_path, more, error, words):
    with pytest.raises(error, match=words):
        train(**{"data": blobs(), "task": task(), **more}, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_before_the_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="--out must be a folder that can be made"):
        train(blobs(), task(), out=tmp_path / "file", watch=lambda _: pytest.fail("it was trained"))
