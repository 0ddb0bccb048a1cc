"""The device of a training: its choice, determinism, precision, and pictures in its memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from augtree.errors import ArgumentError, AugtreeError, TaskError

SHARE_OF_DEVICE = 0.5
"""Pictures take at most this share of the free memory of a GPU."""


def device_of(name: str) -> torch.device:
    """A device by its name; `auto` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ArgumentError("device", "must be auto, cpu or cuda", name) from None
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise ArgumentError("device", "must be auto, cpu, or cuda where there is one", name)
    return device


def configure_libraries(device: torch.device, *, deterministic: bool, precision: str, graphs: bool) -> None:
    """Set the environment variables that libraries read on first use, where the user has not."""
    if deterministic and device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is refused
    if graphs and precision == "bfloat16" and device.type == "cpu":
        for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
            os.environ.setdefault(name, "16")  # else kernels for every size of graphs are cached: gigabytes


@contextmanager
def determinism(device: torch.device, deterministic: bool) -> Iterator[None]:
    """On a GPU, allow only operations that repeat to the bit, or else let cuDNN pick the fastest."""
    if device.type == "cpu":
        yield
        return
    if not deterministic:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
            yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, AugtreeError) or "deterministic" not in str(error):
            raise
        raise TaskError(f"deterministic=True allows only operations that repeat to the bit: {error}") from error
    finally:
        torch.use_deterministic_algorithms(before)


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context in which a model runs; `auto` is bfloat16 on a GPU and float32 elsewhere."""
    half = device.type == "cuda" if precision == "auto" else precision == "bfloat16"
    return torch.autocast(device.type, torch.bfloat16) if half else nullcontext()


def pictures_on(pictures: Tensor, device: torch.device) -> Tensor:
    """All pictures on the device, or on the CPU where they would fill too much of it: then batches are moved."""
    if device.type == "cuda" and pictures.nbytes > SHARE_OF_DEVICE * torch.cuda.mem_get_info(device)[0]:
        return pictures
    return pictures.to(device)
