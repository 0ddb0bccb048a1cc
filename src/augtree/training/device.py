"""The device of a training: its choice, determinism, precision, and pictures in its memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from augtree.errors import ArgumentError, AugtreeError, TaskError, nearest

SHARE_OF_DEVICE = 0.5
"""Pictures take at most this share of the free memory of a GPU."""


def device_of(name: str) -> torch.device:
    """A device by its name; `auto` is the GPU where there is one."""
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        there = torch.cuda.device_count()
        raise ArgumentError("device", f"must be auto, cpu, or a GPU of this machine, which has {there}", name)
    return device


def check_device(name: object) -> None:
    """Raise for what names no device, on whatever machine."""
    if not isinstance(name, str):
        raise ArgumentError("device", "must be a name: auto, cpu or cuda", name)
    if not re.fullmatch("auto|(cpu|cuda)(:[0-9]{1,3})?", name):
        rule = f"must be auto, cpu or cuda (cuda:1 is the second GPU){nearest(name, ('auto', 'cpu', 'cuda'))}"
        raise ArgumentError("device", rule, name)


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
