"""Whole policies on a CUDA device: two launches, one that draws (`triton_draws`) and one that transforms.

Nothing is computed for single pictures on the CPU and nothing waits for the device, so a call can also be recorded
in a CUDA graph, with the seed and the index in tensors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from augtree.keys import FOLD, GOLDEN, MASK, as_int, fold_word, hash_role, signed
from augtree.transforms import codes, fused, programs, turns
from augtree.transforms.pictures import as_bytes, in_order_of

if TYPE_CHECKING:
    from augtree.transforms.base import Policy

BLOCK = 64
"""Pictures that one program of a launch draws for."""
KEPT = 256
"""Programs that are kept, for policies and shapes."""


class Ready:
    """A policy's program on a device."""

    def __init__(self, policy: Policy, shape: tuple[int, ...], device: torch.device) -> None:
        channels, height, width = shape
        program = programs.Program(channels, height, width)
        self.entry = programs.make(policy, program, (), programs.END)
        if self.entry == programs.END:
            raise programs.NoProgramError
        self.steps, self.most = program.steps[self.entry], program.operations[self.entry]
        whole, reals = program.arrays()
        arrays = (whole, reals, turns.NUMBERS)
        self.whole, self.reals, self.numbers = (uploaded(torch.from_numpy(array), device) for array in arrays)


@lru_cache(maxsize=KEPT)
def _ready(policy: Policy, shape: tuple[int, ...], device: torch.device) -> Ready | None:
    try:
        return Ready(policy, shape, device)
    except programs.NoProgramError:
        return None


def ready(policy: Policy, shape: tuple[int, ...], device: torch.device) -> Ready | None:
    """The program of a policy for pictures of a shape [C,H,W]; None where it has none."""
    try:
        hash(policy)
    except TypeError:  # a transform of one's own
        return None
    return _ready(policy, shape, device)


def apply(policy: Policy, pictures: Tensor, seed: int | Tensor, index: Any, step: int, single: bool) -> Tensor | None:
    """The batch transformed; None where the CPU must draw."""
    device, count = pictures.device, len(pictures)
    program = ready(policy, tuple(pictures.shape[1:]), device)
    if program is None or not program.most:
        return None
    if not lies_on(device, seed, 1):
        seed = as_int("seed", seed)
    if not lies_on(device, index, count):
        index = places(index, count, single, device)
    return fused.attempt(run, program, pictures, seed, index, as_int("step", step))


def lies_on(device: torch.device, given: Any, count: int) -> bool:
    """Whether something is a tensor of so many whole numbers on the device, which need not come to the CPU."""
    if not isinstance(given, Tensor) or given.device != device or given.dtype != torch.int64:
        return False
    return given.numel() == count and given.is_contiguous()


def places(index: Any, count: int, single: bool, device: torch.device) -> int | Tensor:
    """The samples' places in their data set, or that of the first."""
    from augtree.transforms.base import indices

    if index is None or (type(index) is int and abs(index) < 1 << 62):
        return index or 0
    return uploaded(torch.from_numpy(indices(index, count, single)), device)


def uploaded(values: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on the device, without waiting."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values


def run(program: Ready, pictures: Tensor, seed: int | Tensor, index: int | Tensor, step: int) -> Tensor:
    """The batch by a program, in the type and memory order that it came in."""
    values = as_bytes(pictures)
    ops, bounds = draw(program, values, seed, index, step)
    out = fused.transform(values, values, ops, bounds, 2, program.most, contrastive=False)
    if pictures.is_floating_point():
        floats = out.to(pictures.dtype) / pictures.new_full((), 255)
        untouched = (bounds[:, 0] == bounds[:, 1]).view(-1, 1, 1, 1)
        out = torch.where(untouched, pictures, floats)
    return in_order_of(pictures, out)


def draw(program: Ready, values: Tensor, seed: int | Tensor, index: int | Tensor, step: int) -> tuple[Tensor, Tensor]:
    """Each picture's operations [n,most,WORDS], and where they begin and end [n,2] among those of all."""
    from augtree.transforms import triton_draws

    count, _, height, width = values.shape
    start, offset = hash_role("apply"), 0 if isinstance(index, Tensor) else index * GOLDEN & MASK
    if not isinstance(seed, Tensor):
        start = fold_word(fold_word(hash_role("apply"), seed, FOLD), step, FOLD) + offset
        offset = 0  # a number that is always small or always large compiles once
    ops = torch.empty((count, program.most, codes.WORDS), dtype=torch.int32, device=values.device)
    bounds = torch.empty((count, 2), dtype=torch.int32, device=values.device)
    where = [tensor if isinstance(tensor, Tensor) else bounds for tensor in (seed, index)]  # not read where a number
    with torch.cuda.device_of(values):
        triton_draws.walk[(-(-count // BLOCK),)](
            *(program.whole, program.reals, program.numbers, ops, bounds, *where),
            *(signed(start), signed(offset), step, program.entry, program.steps, program.most, count, height, width),
            BLOCK=BLOCK,
            SEEDED=isinstance(seed, Tensor),
            INDEXED=isinstance(index, Tensor),
            num_warps=BLOCK // 32,
            enable_fp_fusion=False,
        )
    return ops, bounds
