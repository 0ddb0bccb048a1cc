"""How a batch of pictures is transformed: first everything is drawn, then everything is done.

A transform draws a *plan* on the CPU: slots in order, each slot a list of *works*, each work a kernel, the
rows it acts on and the kernel's parameters for each row. Plans of different candidates for different rows
are merged slot by slot, and works of the same kernel become one, so a batch in which every picture has its own
operation and magnitude costs a few kernel calls. Doing a plan never waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import InputError
from augtree.transforms import fused, kernels
from augtree.transforms.cpu import Parts

Array = NDArray[Any]
Kernel = Callable[..., Tensor]
"""kernel(pictures uint8 [n,C,H,W], *parameters [n, ...]) -> pictures; works on each row by itself."""

LARGEST_SIDE = 8192
"""Geometry is exact (16.16 fixed-point numbers, as in Pillow) up to here."""
FEW_CHANNELS = 4
"""More than these in a picture by itself, or before a last dimension that has no more, is taken for a mistake."""


class Shape(NamedTuple):
    """The shape of a batch of pictures."""

    batch: int
    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class Work:
    """One kernel on some rows."""

    kernel: Kernel
    rows: NDArray[np.int64]
    params: tuple[Array, ...] = ()
    """int64 or float32, one entry a row."""
    partners: NDArray[np.int64] | None = None
    """For kernels that mix pictures: the row each is mixed with, in the batch as it came."""
    changes: Literal["", "shape", "type"] = ""
    """What the kernel changes besides values, so that it must act on the whole batch at once."""


Plan = list[list[Work]]


def merged(plans: Iterable[Plan]) -> Plan:
    """Plans for different rows, side by side: in each slot one work a kernel and form of its parameters."""
    out: Plan = []
    for slots in zip_longest(*plans, fillvalue=[]):
        alike: dict[tuple[Any, ...], list[Work]] = {}
        for work in (work for slot in slots for work in slot):
            alike.setdefault((work.kernel, *(param.shape[1:] for param in work.params)), []).append(work)
        out.append([joined(works) for works in alike.values()])
    return out


def joined(works: list[Work]) -> Work:
    """Works of the same kernel as one."""
    first = works[0]
    if len(works) == 1:
        return first
    rows = np.concatenate([work.rows for work in works])
    params = tuple(np.concatenate(column) for column in zip(*(work.params for work in works), strict=True))
    partners = None
    if first.partners is not None:
        partners = np.concatenate([work.partners for work in works if work.partners is not None])
    return Work(first.kernel, rows, params, partners)


def uploaded(arrays: list[Array], device: torch.device) -> list[Tensor]:
    """All the arrays on the device, in one copy for each type."""
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    out: list[Tensor | None] = [None] * len(arrays)
    for dtype in {array.dtype for array in arrays}:
        which = [i for i, array in enumerate(arrays) if array.dtype == dtype]
        flat = torch.from_numpy(np.concatenate([arrays[i].reshape(-1) for i in which]))
        parts = flat.to(device, non_blocking=True).split([arrays[i].size for i in which])
        for i, part in zip(which, parts, strict=True):
            out[i] = part.view(arrays[i].shape)
    return [tensor for tensor in out if tensor is not None]


class Pictures:
    """A batch that a plan is applied to."""

    def __init__(self, batch: Tensor) -> None:
        self.original = batch
        self.values = as_bytes(batch)
        self.source = self.values  # what mixing kernels take their partners from
        self.touched = np.zeros(len(batch), bool)

    def do(self, plan: Plan) -> Tensor:
        """Run the plan; the batch it was made from stays as it is."""
        works = [work for slot in plan for work in slot if len(work.rows) or work.changes]
        mixing = any(work.partners is not None for work in works)
        at_once = len(self.values) > 0 and fused.serves(self.values.device)
        for known, group in groupby(works, lambda work: at_once and fused.knows(work)):
            part = list(group)
            done = fused.run(part, self.values, self.source) if known else None
            if done is None:
                self.one_by_one(part, mixing)
            else:
                self.values = done
                self.touched[np.concatenate([work.rows for work in part])] = True
        if self.values is self.original:
            self.values = self.values.clone()
        return self.result()

    def one_by_one(self, works: list[Work], mixing: bool) -> None:
        """Run the works in place, kernel by kernel."""
        # What must not be written to: the batch that came, and what partners are taken from.
        parts = self.parts(self.values is self.original or (mixing and self.values is self.source))
        arrays = [
            array
            for work in works
            for array in (work.rows, *work.params, *([] if work.partners is None else [work.partners]))
        ]
        tensors = iter(uploaded(arrays, self.values.device))
        for work in works:
            rows = next(tensors)
            params = [next(tensors) for _ in work.params]
            if work.partners is not None:
                params.insert(0, self.source.index_select(0, next(tensors)))
            if work.changes:
                self.values = parts.finish()
                pictures = self.values if work.changes == "shape" else self.result()
                self.source = work.kernel(pictures, *params).contiguous()
                self.values = self.source
                parts = self.parts(mixing)
            else:
                parts.add(work.kernel, rows, params)
            self.touched[work.rows] = True
        self.values = parts.finish()

    def parts(self, keep: bool) -> Parts | OnDevice:
        """What does works on the values, which are kept as they are where that is asked for."""
        return (Parts if self.values.device.type == "cpu" else OnDevice)(self.values, keep)

    def result(self) -> Tensor:
        """The pictures in the type they came in; what no kernel touched comes back to the bit."""
        if not self.original.is_floating_point() or self.values.is_floating_point():
            return in_order_of(self.original, self.values)
        # By a tensor, not by a number: the same bits on every device.
        floats = self.values.to(self.original.dtype) / self.original.new_full((), 255)
        if not self.touched.all() and floats.shape == self.original.shape:
            spared = torch.from_numpy(np.flatnonzero(~self.touched)).to(floats.device, non_blocking=True)
            floats.index_copy_(0, spared, self.original.index_select(0, spared))
        return in_order_of(self.original, floats)


def in_order_of(original: Tensor, pictures: Tensor) -> Tensor:
    """Pictures in the memory order that a batch has."""
    if original.is_contiguous() or not original.is_contiguous(memory_format=torch.channels_last):
        return pictures
    return pictures.contiguous(memory_format=torch.channels_last)


class OnDevice:
    """Works on one batch that lies on an accelerator."""

    def __init__(self, source: Tensor, keep: bool) -> None:
        self.values = source.clone() if keep else source

    def add(self, kernel: Kernel, rows: Tensor, params: list[Tensor]) -> None:
        """Do a kernel on some rows."""
        done = kernel(self.values.index_select(0, rows), *params)
        if self.values[0].numel() % 8:
            self.values.index_copy_(0, rows, done)
        else:  # at the speed of memory: torch's own indexing moves byte by byte
            words = (tensor.contiguous().view(len(tensor), -1).view(torch.int64) for tensor in (self.values, done))
            next(words).index_copy_(0, rows, next(words))

    def finish(self) -> Tensor:
        """The batch, with all that was added done."""
        return self.values


def check_pictures(batch: Tensor) -> Tensor:
    """A batch of pictures that a policy can take, or an error with the remedy."""
    shape = list(batch.shape)
    if batch.ndim not in (3, 4):
        remedy = ": add the channel, x[None]" if batch.ndim == 2 else ""
        raise InputError(f"pictures must be [B,C,H,W] or [C,H,W], got shape {shape}{remedy}")
    if batch.dtype != torch.uint8 and not batch.is_floating_point():
        raise InputError(f"pictures must be uint8 or float, got {batch.dtype}")
    if min(shape[-3:]) < 1 or max(shape[-2:]) > LARGEST_SIDE:
        raise InputError(f"pictures must have a channel and sides from 1 to {LARGEST_SIDE} pixels, got shape {shape}")
    if shape[-3] > FEW_CHANNELS >= shape[-1]:
        raise InputError(
            f"pictures must be [B,C,H,W] or [C,H,W], got shape {shape}, which looks like channels last: "
            f"x.permute({'2, 0, 1' if batch.ndim == 3 else '0, 3, 1, 2'})"
        )
    if batch.ndim == 3 and shape[0] > FEW_CHANNELS:
        raise InputError(
            f"a picture by itself must have at most {FEW_CHANNELS} channels, got shape {shape}: "
            "a batch of grey pictures is x[:, None], one picture of many channels x[None]"
        )
    if batch.is_floating_point() and batch.numel():
        low, high = float(batch.detach().amin()), float(batch.detach().amax())
        if not (low >= 0 and high <= 1):  # NaN is neither
            raise InputError(
                f"float pictures must lie in [0, 1], got values from {low:.9g} to {high:.9g}: "
                "apply the policy before normalising (or divide 0..255 floats by 255)"
            )
    return batch.detach() if batch.requires_grad else batch


def as_bytes(batch: Tensor) -> Tensor:
    """The pictures in 256 steps, rounded."""
    if batch.dtype == torch.uint8:
        return batch.contiguous()
    return kernels.to_bytes((batch.float() * 255).add_(0.5)).contiguous()
