import pytest

from augtree.errors import ArgumentError
from support.blobs import blobs, task


@pytest.mark.parametrize(
    ("device", "words"),
    [("tpu", "must be auto, cpu or cuda"), ("meta", "must be auto, cpu, or cuda where there is one")],
)
def test_devices(device, words):
    with pytest.raises(ArgumentError, match=f"device {words}"):
        task(device=device).prepare(blobs())
    assert task(device="cpu").prepare(blobs()).device.type == "cpu"
