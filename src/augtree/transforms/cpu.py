"""How works are done on a CPU: in parts that stay in the cache, on as many threads as torch may use.

Parts of works on different pictures do not depend on each other, so they run side by side until a work comes that
needs one of their pictures. Each part writes its own rows: the bytes do not depend on the number of threads. Kernels
that a CPU can do in a shorter way than other devices have a second form here, of the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Barrier, Lock

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from torch import Tensor

from augtree.transforms import kernels

Task = Callable[[], None]
Kernel = Callable[..., Tensor]
CHUNK_BYTES = 1 << 19
"""Parts are as long as this, or one picture."""
FEW_BYTES = 1 << 15
"""Up to here torch itself uses one thread."""


class Parts:
    """Works on one batch, in parts that may run while others are added."""

    def __init__(self, source: Tensor, keep: bool) -> None:
        """Where the source is to be kept, its rows are copied when they are first written to."""
        plain = type(source) is Tensor
        self.source = source
        self.values = (torch.empty_like(source) if plain else source.clone()) if keep else source
        self.written = np.full(len(source), not (keep and plain))
        self.running = Running(source)
        self.taken = np.zeros(len(source), bool)

    def add(self, kernel: Kernel, rows: Tensor, params: Sequence[Tensor]) -> None:
        """Do a kernel on some rows, at once or by the time of `finish`."""
        own = kernel.__module__ == kernels.__name__  # a user's function may not bear other threads
        which = rows.numpy()
        if not own or self.taken[which].any():
            self.wait()
        begin = self.running.begin if own else at_once
        size = rows_of(self.values)
        for form, some in forms(kernel, params):
            count = len(rows) if some is None else len(some)
            for part in (slice(start, start + size) for start in range(0, count, size)):
                piece = part if some is None else some[part]
                fresh = ~self.written[which[piece]]
                begin(partial(act, self.source, self.values, fresh, form, rows[piece], [p[piece] for p in params]))
        self.taken[which] = self.written[which] = True

    def wait(self) -> None:
        """Wait for all that runs."""
        self.running.wait()
        self.taken[:] = False

    def finish(self) -> Tensor:
        """The batch, with all that was added done."""
        rest, part = np.flatnonzero(~self.written), rows_of(self.values)
        for start in range(0, len(rest), part):
            self.running.begin(partial(copy, self.source, self.values, rest[start : start + part]))
        self.written[:] = True
        self.wait()
        return self.values


def rows_of(pictures: Tensor) -> int:
    """How many pictures are a part."""
    return max(1, CHUNK_BYTES // max(1, pictures[:1].numel()))


def act(
    source: Tensor, values: Tensor, fresh: NDArray[np.bool_], kernel: Kernel, rows: Tensor, params: Sequence[Tensor]
) -> None:
    """One kernel on some rows of the batch; those that are fresh come from its source.

    All is written by way of numpy: another thread is not in the caller's inference mode and may not write to its
    tensors, and torch's own indexing moves byte by byte.
    """
    which = rows.numpy()
    if len(which) == 1:
        origin = source if fresh[0] else values
        done = kernel(torch.from_numpy(origin.numpy()[which[0]][None]), *params)
        torch.from_numpy(values.numpy()[which[0]][None]).copy_(done)
        return
    if not fresh.all():
        copy(source, values, which[fresh])
        source = values
    values.numpy()[which] = kernel(source.index_select(0, rows), *params).numpy()


def copy(source: Tensor, values: Tensor, rows: NDArray[np.int64]) -> None:
    """Copy rows of the source."""
    for row in rows.tolist():
        values.numpy()[row] = source.numpy()[row]


# ---- threads


class Running:
    """Tasks that do not depend on each other, each on one thread; one after the other where there is little to do.

    Not on the caller's thread: torch would use its own threads there, which spin for milliseconds after every kernel.
    """

    def __init__(self, pictures: Tensor) -> None:
        self.futures: list[Future[None]] = []
        threads = torch.get_num_threads()
        self.threads = threads if pictures.numel() > FEW_BYTES and torch.backends.openmp.is_available() else 1

    def begin(self, task: Task) -> None:
        """Do a task, at once or soon."""
        if self.threads > 1:
            try:
                self.futures.append(workers(self.threads).submit(task))
                return
            except RuntimeError:  # the interpreter is about to end, or there can be no more threads
                self.threads = 1
        task()

    def wait(self) -> None:
        """Wait for all tasks, and raise what one has raised."""
        wait(self.futures)
        done, self.futures = self.futures, []
        for future in done:
            future.result()


def at_once(task: Task) -> None:
    """Do a task here."""
    task()


def workers(count: int) -> ThreadPoolExecutor:
    """The process's threads, so many; in each, torch uses that thread alone."""
    global _WORKERS
    with _LOCK:
        if _WORKERS is None or _WORKERS[1] != count:
            pool = ThreadPoolExecutor(count, "augtree")
            ready = Barrier(count + 1)
            before = torch.get_num_threads()
            try:
                for _ in range(count):
                    pool.submit(begin, ready)
                ready.wait()
            except BaseException:
                ready.abort()
                raise
            finally:
                torch.set_num_threads(before)  # what a thread sets for itself is also what later threads begin with
            _WORKERS = (pool, count)
        return _WORKERS[0]


def begin(ready: Barrier) -> None:
    """What a worker does first."""
    torch.get_num_threads()  # now, since the first call gives a thread the process's number
    torch.set_num_threads(1)
    ready.wait()


def forget_workers() -> None:
    """In a forked process there are no threads but one."""
    global _WORKERS, _LOCK
    _WORKERS, _LOCK = None, Lock()


_WORKERS: tuple[ThreadPoolExecutor, int] | None = None
_LOCK = Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_workers)


# ---- kernels


def forms(kernel: Kernel, params: Sequence[Tensor]) -> list[tuple[Kernel, NDArray[np.int64] | None]]:
    """In which form a kernel is done on which of its rows, or on all."""
    if kernel is not kernels.warp:
        return [(FASTER.get(kernel, kernel), None)]
    a, b, c, d, e, _ = params[0].numpy().T
    upright = (a == 1 << 16) & (e == 1 << 16)
    lines = upright & (d == 0)
    columns = upright & ~lines & (b == 0) & (c >> 16 == 0)
    masks = {move_lines: lines, move_columns: columns, kernels.warp: ~lines & ~columns}
    return [(form, np.flatnonzero(mask)) for form, mask in masks.items() if mask.any()]


def move_lines(pictures: Tensor, coefficients: Tensor, fill: Tensor) -> Tensor:
    """`kernels.warp` where pixel (x, y) comes from (x + (by + c >> 16), y + (f >> 16)): copies of whole lines."""
    count, channels, height, width = pictures.shape
    _, b, c, _, _, f = (each[:, None] for each in coefficients.numpy().T)
    ys = np.arange(height)
    shift = np.clip((b * ys + c) >> 16, -width, width)
    left, right = max(0, -int(shift.min())), max(0, int(shift.max()))
    # Each plane has one more line, of the fill colour, for what comes from above or below.
    canvas = framed(pictures, fill, (0, 1), (left, right))
    source = ys + (f >> 16)
    source = np.where((source >= 0) & (source < height), source, height)
    planes = np.arange(count * channels).reshape(count, channels, 1) * (height + 1)
    starts = (planes + source[:, None]) * canvas.shape[3] + (shift + left)[:, None]
    windows = as_strided(canvas.reshape(-1), (canvas.size - width + 1, width), (1, 1), writeable=False)
    return torch.from_numpy(windows[starts])


def move_columns(pictures: Tensor, coefficients: Tensor, fill: Tensor) -> Tensor:
    """`kernels.warp` where pixel (x, y) comes from (x, y + (dx + f >> 16))."""
    count, channels, height, width = pictures.shape
    _, _, _, d, _, f = (each[:, None] for each in coefficients.numpy().T)
    shift = np.clip((d * np.arange(width) + f) >> 16, -height, height)
    above, below = max(0, -int(shift.min())), max(0, int(shift.max()))
    canvas = torch.from_numpy(framed(pictures, fill, (above, below), (0, 0))).flatten(2)
    source = (shift + above)[:, None] * width + np.arange(height * width).reshape(height, width)
    which = torch.from_numpy(source).view(count, 1, -1).expand(-1, channels, -1)
    return canvas.gather(2, which).view_as(pictures)


def framed(pictures: Tensor, fill: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> NDArray[np.uint8]:
    """The pictures with margins: above and below, left and right."""
    count, channels, height, width = pictures.shape
    canvas = np.empty((count, channels, sum(rows) + height, sum(columns) + width), np.uint8)
    canvas[:] = fill.numpy().astype(np.uint8)[:, None, None, None]
    canvas[:, :, rows[0] : rows[0] + height, columns[0] : columns[0] + width] = pictures.numpy()
    return canvas


def quarter_turn(pictures: Tensor, quarters: Tensor) -> Tensor:
    """`kernels.quarter_turn`, for all that turn alike at once."""
    out = torch.empty_like(pictures)
    for turn in range(4):
        rows = np.flatnonzero(quarters.numpy() == turn)
        if len(rows):
            turned = torch.rot90(pictures.index_select(0, torch.from_numpy(rows)), turn, (2, 3))
            out.numpy()[rows] = turned.contiguous().numpy()
    return out


def by_channel(kernel: Kernel, pictures: Tensor, *params: Tensor) -> Tensor:
    """A kernel on one channel after the other, where a picture is too large for the cache."""
    if pictures.numel() <= CHUNK_BYTES:
        return kernel(pictures, *params)
    return torch.cat([kernel(plane, *params) for plane in pictures.split(1, dim=1)], dim=1)


FASTER: dict[Kernel, Kernel] = {
    kernels.quarter_turn: quarter_turn,
    **{
        kernel: partial(by_channel, kernel)
        for kernel in (kernels.gaussian_blur, kernels.resize, kernels.sobel, kernels.sharpness)
    },
}
"""The second forms of kernels, `warp`'s apart."""
