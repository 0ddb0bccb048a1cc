"""Training and searching on a GPU: the recorded step is the plain one, and deterministic runs repeat to the bit."""

import numpy as np
import pytest
import torch
from torch import nn

import augtree as at
from augtree.errors import TaskError
from augtree.forests.hypergradient import Hypergradient
from augtree.runs.events import silent
from augtree.search import Cooldown, Retrain
from augtree.search.scorers.base import Scored
from augtree.search.trunk_events import CooledDown
from augtree.tasks import Classification
from augtree.transforms import Rotate, SamplePairing

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

SCORERS = {
    CooledDown: Cooldown(looks=(0.3, 0.6), look=0.1, shortest=2, cool=0.2, last=2, renew=2),
    Scored: Retrain(train=0.3, spread=2, repeats=1, sure=0.0),
}
"""By the event that a search reports for each scoring."""


def pictures(count=240):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, count)
    x = rng.integers(0, 120, (count, 3, 16, 16)) + 60 * (y[:, None, None, None] == np.arange(3)[:, None, None])
    return at.data.from_arrays(x.astype(np.uint8), y)


def task(**more):
    return Classification(**{"model": "wrn-10-1", "steps": 20, "batch_size": 32, "device": "cuda", **more})


def tree():
    return at.Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, SamplePairing(1.0), p=0.5)


def same(one, other):
    return all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())


def test_the_recorded_step_is_the_plain_one(monkeypatch):
    recorded = task(deterministic=True).prepare(pictures())
    one = recorded.fit(tree(), 3)
    assert "step" in recorded.recordings
    plain = task(deterministic=True).prepare(pictures())
    monkeypatch.setattr(plain, "run_step", plain.step)
    other = plain.fit(tree(), 3)
    assert not plain.recordings
    weights = one.tensors["weights"], other.tensors["weights"]
    assert torch.allclose(*weights, atol=2e-3, rtol=1e-2)
    assert (weights[0] - recorded.fresh(3).tensors["weights"]).abs().max() > 0.05


def test_it_learns_as_on_the_cpu():
    for device in ("cuda", "cpu"):
        trainer = task(device=device, steps=60).prepare(pictures())
        state = trainer.fit(at.Tree(), 0)
        assert trainer.measures(state, trainer.data.indices("test"))["accuracy"] > 0.9


def test_deterministic_trainings_repeat_to_the_bit_whatever_came_before():
    trainer = task(deterministic=True).prepare(pictures())
    one = trainer.fit(tree(), 3)
    trainer.fit(tree(), 4)
    assert same(one, trainer.fit(tree(), 3))
    assert same(one, task(deterministic=True).prepare(pictures()).fit(tree(), 3))
    assert not same(one, trainer.fit(tree(), 4))


@pytest.mark.parametrize("scored", SCORERS)
def test_a_deterministic_search_resumes_to_the_same_bytes(tmp_path, scored):
    class Stopped(BaseException):
        pass

    def search(name, watch=silent):
        space = [Rotate(0.4), Rotate(0.8), SamplePairing(1.0), at.transforms.Invert(1.0)]
        return at.search_tree(
            pictures(), task(deterministic=True), space, depth=2, scorer=SCORERS[scored],
            probabilities=(0.5, 1.0), out=tmp_path / name, watch=watch, budget=6 if scored is CooledDown else None,
        )  # fmt: skip

    whole = search("whole")
    assert whole.deterministic
    count = 0

    def stop(event):
        nonlocal count
        count += isinstance(event, scored)
        if isinstance(event, scored) and count in (3, 9, 12):
            raise Stopped

    for _ in range(3):
        with pytest.raises(Stopped):
            search("part", stop)
    search("part")
    names = ["tree.json", "tree.svg", *(["model.safetensors"] if scored is CooledDown else [])]
    for name in names:
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    quick = at.search_tree(pictures(), task(), [Rotate(0.4)], depth=1, scorer=SCORERS[scored], check=0)
    assert not quick.deterministic


def test_an_operation_without_a_deterministic_form_is_refused_by_name():
    def model():
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))

    with pytest.raises(TaskError, match="(?s)repeat to the bit.*adaptive_max_pool2d"):
        task(model=model, deterministic=True).prepare(pictures()).fit(at.Tree(), 0)
    trainer = task().prepare(pictures())
    assert np.isfinite(trainer.losses(trainer.fit(at.Tree(), 0), trainer.data.indices("val"))).all()


def test_a_training_hardly_waits_for_python():
    trainer = task(steps=200, model="wrn-16-2").prepare(pictures())
    trainer.fit(at.Tree(), 0, steps=5)
    waited = []
    for steps in (5, 105):
        state = trainer.fresh(0)
        with torch.profiler.profile(acc_events=True) as seen:
            trainer.train(state, at.Tree(), [0.01] * steps, 0)
        syncs = [event for event in seen.key_averages() if event.key == "cudaStreamSynchronize"]
        waited.append(sum(event.count for event in syncs))
    assert waited[1] - waited[0] < 50


def grouped():
    data = pictures()
    number = iter(range(len(data)))
    return at.data.group(data, lambda _: f"part {next(number) % 2}")


def test_a_forest_trains_on_the_gpu_and_repeats_to_the_bit(tmp_path):
    trees = {"part 0": tree(), "part 1": at.Tree()}
    options = {"alpha": 5, "eta": 0.5, "plain": False}
    found = [
        at.fit_forest(grouped(), task(deterministic=True), trees, out=tmp_path / str(i), **options) for i in range(2)
    ]
    assert found[0].weights == found[1].weights
    assert (tmp_path / "0" / "model.safetensors").read_bytes() == (tmp_path / "1" / "model.safetensors").read_bytes()
    assert not any(row["skipped"] for row in found[0].history)
    on_cpu = at.fit_forest(grouped(), task(device="cpu"), trees, **options)
    for group, weight in on_cpu.weights.items():
        assert abs(weight - found[0].weights[group]) < 0.05


def test_a_recorded_look_is_the_plain_one():
    """The direction in which the weights move, from a graph of kernels and from Python."""
    data = grouped()
    forest = at.Forest({"part 0": (tree(), 0.5), "part 1": (at.Tree(), 0.5)})
    even, found = np.array([0.5, 0.5]), []
    for recorded in (True, False):
        ready = task(deterministic=True).prepare(data)
        state = ready.fit(tree(), 3)
        look = Hypergradient(ready, forest, at.Weighting(damping=1.0), 0)
        if not recorded:
            ready.replay = lambda name, function, inputs: function(*inputs)
        found.append([look.estimate(state, even, even, t, "gauss-newton") for t in (0, 1, 0)])
        assert any(name[0] == "look" for name in ready.recordings) == recorded
    for one, other in zip(*found, strict=True):
        assert np.abs(other.d).max() > 0
        assert np.allclose(one.d, other.d, rtol=0.05, atol=0.02 * np.abs(other.d).max())
        assert np.allclose(one.outer_losses, other.outer_losses, rtol=1e-3)
        assert one.solution.iterations == other.solution.iterations
    assert found[0][0].d.tolist() == found[0][2].d.tolist()
    assert found[0][0].d.tolist() != found[0][1].d.tolist()


def test_pictures_that_stay_on_the_cpu_give_the_same_training(monkeypatch):
    found = []
    for share in (0.5, 0.0):
        monkeypatch.setattr("augtree.training.device.SHARE_OF_DEVICE", share)
        ready = task(deterministic=True).prepare(pictures())
        found.append((ready.samples.device.type, ready.fit(tree(), 3)))
    assert [device for device, _ in found] == ["cuda", "cpu"]
    assert same(found[0][1], found[1][1])
