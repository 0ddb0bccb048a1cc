import pytest
import torch

from augtree.errors import ArgumentError
from support.blobs import blobs, task


@pytest.mark.parametrize("device", ["tpu", "meta", "cuda:", "cuda:x", "cuda:0 ", "", "CPU"])
def test_what_names_no_device_is_refused_where_it_is_given(device):
    with pytest.raises(ArgumentError, match="device must be auto, cpu or cuda .*got "):
        task(device=device)


def test_a_misspelt_device_is_told():
    with pytest.raises(ArgumentError, match=r"is the second GPU\) \(did you mean cuda\?\), got 'cudda'"):
        task(device="cudda")


def test_devices():
    assert task(device="cpu").prepare(blobs()).device.type == "cpu"
    for device in ("auto", "cpu:0", "cuda", "cuda:1"):  # a task may be made on another machine than it is for
        assert task(device=device).device == device
    with pytest.raises(ArgumentError, match="must be auto, cpu, or a GPU of this machine, which has "):
        task(device=f"cuda:{torch.cuda.device_count()}").prepare(blobs())
