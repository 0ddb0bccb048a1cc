"""Contrastive training on a GPU: the recorded step is the plain one, and deterministic ones repeat to the bit."""

import numpy as np
import pytest
import torch

import augtree as at
from augtree.policies.presets import find
from augtree.tasks import Contrastive

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


def pictures(count=240):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, count)
    x = rng.integers(0, 120, (count, 3, 16, 16)) + 60 * (y[:, None, None, None] == np.arange(3)[:, None, None])
    return at.data.from_arrays(x.astype(np.uint8), y)


def task(**more):
    options = {"model": "wrn-10-1", "steps": 20, "batch_size": 32, "device": "cuda", "dim": 16, "deterministic": True}
    return Contrastive(**{**options, **more})


def test_the_recorded_step_is_the_plain_one(monkeypatch):
    recorded = task().prepare(pictures())
    one = recorded.fit(find("simclr"), 3)
    assert "step" in recorded.recordings
    plain = task().prepare(pictures())
    monkeypatch.setattr(plain, "run_step", plain.step)
    other = plain.fit(find("simclr"), 3)
    weights = one.tensors["weights"], other.tensors["weights"]
    assert torch.allclose(*weights, atol=2e-3, rtol=1e-2)
    assert (weights[0] - recorded.fresh(3).tensors["weights"]).abs().max() > 0.01


def test_the_same_bits_again():
    one, two = (task().prepare(pictures()).fit(find("simclr"), 3) for _ in range(2))
    assert all(torch.equal(tensor, two.tensors[name]) for name, tensor in one.tensors.items())


@pytest.mark.parametrize("judge", ["knn", "alignment-uniformity", "contrastive"])
def test_it_is_judged(judge):
    ready = task(judge=judge, deterministic=False).prepare(pictures())
    state = ready.fit(find("simclr"), 0)
    val = ready.data.indices("val")
    assert np.isfinite(ready.calibrated_losses(state, val)).all()
    assert ready.measures(state, ready.data.indices("test"))["accuracy"] > 0.6
