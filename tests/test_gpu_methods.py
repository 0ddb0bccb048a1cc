"""Every method on a GPU: deterministic runs repeat to the bit, and what they learn is near that of a CPU."""

from dataclasses import replace

import pytest
import torch

from support.blobs import same
from support.methods import TRAINED, fitting, quick

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


@pytest.mark.parametrize(("name", "setting"), TRAINED)
def test_a_method_repeats_to_the_bit(name, setting):
    method = quick(name)
    asked, data = fitting(method, setting)
    asked = replace(asked, device="cuda", deterministic=True)
    (one, row), (other, again) = (method.fit(asked.prepare(data), 1) for _ in range(2))
    assert one.is_finite
    assert same(one, other)
    assert row == again


@pytest.mark.parametrize("name", ["mixup", "cutmix", "lisa", "group-dro", "scale"])
def test_a_method_is_near_that_of_a_cpu(name):
    method = quick(name)
    asked, data = fitting(method)
    asked = replace(asked, steps=2, precision="float32", deterministic=True)
    ends = [weights(method, replace(asked, device=device), data) for device in ("cpu", "cuda")]
    for name, value in ends[0].items():
        assert torch.allclose(value, ends[1][name], atol=1e-3), name


def weights(method, task, data):
    """The model's parameters by name: in the vector of all, their order differs with the device."""
    trainer = task.prepare(data)
    trainer.load(method.fit(trainer, 1)[0])
    return {name: value.detach().cpu() for name, value in trainer.model.named_parameters()}
