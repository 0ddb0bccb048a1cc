"""Plans on a CUDA device in one launch, by Triton, where `pictures` would start a few small kernels for each work.

Triton comes with torch's CUDA builds. Without it, or with AUGTREE_KERNELS=eager, and for kernels that are not known
here (functions of one's own, changes of shape or type), the batched kernels of `kernels` serve; the bytes are equal.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import one_of
from augtree.transforms import codes, kernels

if TYPE_CHECKING:
    from augtree.transforms.pictures import Work

Words = NDArray[np.int32]
CHOICES = ("auto", "eager")
SMALL_PLANE = 4096
"""Up to so many pixels, pictures are small."""
SMALL, LARGE = (1024, 4), (2048, 8)
"""Pixels that a program takes at once, and its warps."""
_broken: list[str] = []
"""Why Triton's kernels cannot be compiled here, once that is known."""


def serves(device: torch.device) -> bool:
    """Whether plans on this device are done here."""
    wanted = one_of("AUGTREE_KERNELS", os.environ.get("AUGTREE_KERNELS") or "auto", CHOICES)
    return wanted == "auto" and not _broken and device.type == "cuda" and installed()


@cache
def installed() -> bool:
    """Whether there is Triton, with what the kernels need of it."""
    if find_spec("triton") is None:
        return False
    import triton.language as tl

    return hasattr(tl, "histogram")


def knows(work: Work) -> bool:
    """Whether a work can be part of a launch."""
    return work.kernel in PACKERS and not work.changes


# ---- from works to words ---------------------------------------------------------------------------------------


def bits(floats: NDArray[Any]) -> Words:
    """Floats of 32 bits as the words that hold them."""
    return floats.astype(np.float32, copy=False).view(np.int32)


def plain(code: int) -> Callable[..., Words]:
    """An operation without a parameter."""

    def pack(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
        return _words(len(work.rows), code)

    return pack


def by_factor(code: int) -> Callable[..., Words]:
    """An operation with a factor; the partner's row after it, where there is one."""

    def pack(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
        words = _words(len(work.rows), code, bits(work.params[0]))
        if work.partners is not None:
            words[:, 2] = work.partners
        return words

    return pack


def by_numbers(code: int) -> Callable[..., Words]:
    """An operation with whole numbers, in the order of the kernel's parameters."""

    def pack(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
        return _words(len(work.rows), code, *work.params)

    return pack


def turned_by(x: Sequence[int], y: Sequence[int]) -> Callable[..., Words]:
    """A flip as a warp: pixel (i, j) from (x0 i + x1 j + x2 (width - 1), y0 i + y1 j + y2 (height - 1))."""

    def pack(work: Work, shape: torch.Size) -> Words:
        return _words(len(work.rows), codes.WARP, _turn(x, y, shape))

    return pack


def _turn(x: Sequence[int], y: Sequence[int], shape: torch.Size) -> Words:
    height, width = shape[2:]
    return np.array([[*x[:2], x[2] * (width - 1), *y[:2], y[2] * (height - 1)]], np.int32) << 16


QUARTERS = (((1, 0, 0), (0, 1, 0)), ((0, -1, 1), (1, 0, 0)), ((-1, 0, 1), (0, -1, 1)), ((0, 1, 0), (-1, 0, 1)))
"""Where the pixels of a square come from after 0 to 3 quarters counterclockwise."""


def quarters(work: Work, shape: torch.Size) -> Words:
    """Each picture by its own number of quarters."""
    table = np.concatenate([_turn(x, y, shape) for x, y in QUARTERS])
    return _words(len(work.rows), codes.WARP, table[work.params[0]])


def posterized(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
    """The bits that are kept, as a mask."""
    return _words(len(work.rows), codes.POSTERIZE, 256 - 2 ** (8 - work.params[0]))


def greyed(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
    """Grey is colour by a factor of 0."""
    return _words(len(work.rows), codes.COLOR)


def hued(work: Work, shape: torch.Size) -> Words:
    """The steps; pictures of one channel stay, as they do by a colour factor of 1."""
    if shape[1] == 1:
        return _words(len(work.rows), codes.COLOR, bits(np.ones(len(work.rows))))
    return _words(len(work.rows), codes.HUE, *work.params)


def noised(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
    """The deviation, and the state in two words."""
    states, sigma = work.params
    return _words(len(work.rows), codes.NOISE, bits(sigma), states.view(np.int32).reshape(-1, 2))


def blurred(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
    """Three passes across and three down: the weight within, that at both ends, and how far those are."""
    (weights,) = work.params
    reach = np.maximum((weights != 0).sum(1) - 1, 0)
    ends = np.take_along_axis(weights, reach[:, None], axis=1)
    passes = [_words(len(weights), codes.BLUR, weights[:, 0], ends, reach, np.array([across])) for across in (1, 0)]
    return np.concatenate([passes[0]] * 3 + [passes[1]] * 3)


def stretched(work: Work, shape: torch.Size) -> Words:  # noqa: ARG001
    """A pass across and one down, each with the ends of the part."""
    (box,) = work.params
    sides = ((box[:, :2], 1), (box[:, 2:], 0))
    return np.concatenate([_words(len(box), codes.STRETCH, ends, np.array([across])) for ends, across in sides])


def _words(count: int, code: int, *columns: NDArray[Any]) -> Words:
    words = np.zeros((count, codes.WORDS), np.int32)
    words[:, 0] = code
    start = 1
    for values in columns:
        width = values.shape[1] if values.ndim > 1 else 1
        words[:, start : start + width] = values.reshape(-1, width)
        start += width
    return words


PACKERS: dict[Any, Callable[[Work, torch.Size], Words]] = {
    kernels.warp: by_numbers(codes.WARP),
    kernels.mirror: turned_by((-1, 0, 1), (0, 1, 0)),
    kernels.upend: turned_by((1, 0, 0), (0, -1, 1)),
    kernels.half_turn: turned_by((-1, 0, 1), (0, -1, 1)),
    kernels.quarter_turn: quarters,
    kernels.fill_box: by_numbers(codes.BOX),
    kernels.pair: by_factor(codes.PAIR),
    kernels.sharpness: by_factor(codes.SHARPNESS),
    kernels.color: by_factor(codes.COLOR),
    kernels.grey_out: greyed,
    kernels.solarize: by_numbers(codes.SOLARIZE),
    kernels.posterize: posterized,
    kernels.brightness: by_factor(codes.BRIGHTNESS),
    kernels.contrast: by_factor(codes.CONTRAST),
    kernels.auto_contrast: plain(codes.AUTO_CONTRAST),
    kernels.equalize: plain(codes.EQUALIZE),
    kernels.hue: hued,
    kernels.sobel: plain(codes.SOBEL),
    kernels.add_noise: noised,
    kernels.gaussian_blur: blurred,
    kernels.stretch: stretched,
}


def packed(works: Sequence[Work], shape: torch.Size, pinned: bool = False) -> Tensor:
    """In one piece: the operations [k * WORDS], picture by picture in order, and where each picture's begin [n+1]."""
    count = shape[0]
    parts = [PACKERS[work.kernel](work, shape) for work in works]
    passes = (len(part) // len(work.rows) for work, part in zip(works, parts, strict=True))
    rows = np.concatenate([work.rows for work, times in zip(works, passes, strict=True) for _ in range(times)])
    narrow = rows.astype(np.uint16) if count <= 1 << 16 else rows  # numpy sorts 16 bits by radix, many times faster
    memory = torch.empty(len(rows) * codes.WORDS + count + 1, dtype=torch.int32, pin_memory=pinned)
    ops, first = divided(memory.numpy(), count)
    order = np.argsort(narrow, kind="stable")
    np.take(np.concatenate(parts), order, axis=0, out=ops.reshape(-1, codes.WORDS), mode="clip")
    first[0] = 0
    np.cumsum(np.bincount(rows, minlength=count), out=first[1:])
    return memory


def divided(memory: Any, count: int) -> tuple[Any, Any]:
    """The two parts of what `packed` gives, for so many pictures."""
    return memory[: -count - 1], memory[-count - 1 :]


# ---- the launch ------------------------------------------------------------------------------------------------


def attempt(function: Callable[..., Tensor], *arguments: Any) -> Tensor | None:
    """What the function gives; None where Triton cannot compile, which is said once."""
    try:
        return function(*arguments)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # no C compiler, no driver, an old Triton: whatever it is, there is another way
        _broken.append(str(error))
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        warnings.warn(f"Triton's kernels do not work here ({reason}): slower ones serve", stacklevel=2)
        return None


def run(works: Sequence[Work], values: Tensor, source: Tensor) -> Tensor | None:
    """The pictures after the works, as new ones; None where Triton cannot compile."""
    return attempt(launch, works, values, source)


def launch(works: Sequence[Work], values: Tensor, source: Tensor) -> Tensor:
    """The pictures after the works, as new ones."""
    memory = packed(works, values.shape, pinned=values.is_cuda)
    words, begins = divided(memory.numpy(), len(values))
    found = words[:: codes.WORDS]
    contrastive = bool(((found >= codes.FIRST_CONTRASTIVE) & (found < codes.FIRST_TABLE)).any())
    ops, bounds = divided(memory.to(values.device, non_blocking=True), len(values))
    return transform(values, source, ops, bounds, 1, int(np.diff(begins).max()), contrastive)


def transform(
    values: Tensor, source: Tensor, ops: Tensor, bounds: Tensor, stride: int, most: int, contrastive: bool
) -> Tensor:
    """The pictures after operations that are on the device: picture i's from bounds[stride * i], `most` or fewer."""
    from augtree.transforms import triton_kernels

    count, channels, height, width = values.shape
    normal = kernels.normal_table(values.device) if contrastive else values  # not used without
    buffers = torch.empty((min(most, 2), *values.shape), dtype=torch.uint8, device=values.device)
    tables = torch.empty((count, max(256, 16 * max(height, width))), dtype=torch.uint8, device=values.device)
    block, warps = SMALL if height * width <= SMALL_PLANE else LARGE
    with torch.cuda.device_of(values):
        triton_kernels.transform[(count,)](
            *(values, source, buffers, tables, normal, bounds, ops),
            *(values.numel(), values[0].numel(), height * width, channels, height, width, tables.shape[1], stride),
            BLOCK=block,
            CONTRASTIVE=contrastive,
            num_warps=warps,
            enable_fp_fusion=False,
        )
    return buffers[0]
